"""What else tells energy beside the command: the processors' counters, and a meter at the wall.

Decides when each is read: the counters with every sample, since they are small files; the meter at
the wall in a child of its own, as it is reached over a network. Both go on record as meters with a
number, a name and what they cover, and are never added to one another here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ouvrage.adapters.rapl import rapl_counters
from ouvrage.meter.feed import Feed, Reads, command

if TYPE_CHECKING:
    from ouvrage.adapters.kept_file import Room
    from ouvrage.adapters.process_tree import ProcessTree
    from ouvrage.meter.record import Record


class HostEnergy:
    """The processors' counters of this machine; none on most."""

    def __init__(self, record: Record, room: Room) -> None:
        self._record = record
        self._counters = rapl_counters(room)
        self._numbers: dict[str, int] = {}

    def sample(self, t: int) -> None:
        """Read every counter."""
        for counter in self._counters:
            value = counter.read()
            if counter.name not in self._numbers:
                covers = "memory" if counter.name.endswith("dram") else "processor package"
                number = self._record.meter("rapl", counter.name, covers, t)
                self._numbers[counter.name] = number
            self._record.meter_sample(self._numbers[counter.name], t, None, value)


def wall_feed(url: str, record: Record, tree: ProcessTree, origin: int, period_us: int) -> Feed:
    """A feed of the meter behind a URL."""
    reads = Reads(
        code="wall", what="the meter at the wall", words=command("ouvrage.meter.wall_probe", url)
    )
    return Feed(reads, _Wall(record, origin).hear, record, tree, origin, period_us)


class _Wall:
    def __init__(self, record: Record, origin: int) -> None:
        self._record = record
        self._origin = origin
        self._number: int | None = None

    def hear(self, said: dict[str, Any], now: int) -> None:
        t = min(int(said["t"]), now) - self._origin
        power, energy = said["v"]
        if t < 0:
            return
        if self._number is None:
            self._number = self._record.meter("wall", "plug", "everything behind the plug", t)
        self._record.meter_sample(self._number, t, power, energy)
