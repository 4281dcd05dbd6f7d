"""The processors' own energy counters (RAPL), from ``/sys/class/powercap``.

Decides which counters make the host's figure: each package, and the memory beside it where it has a
counter of its own. Cores and graphics lie inside a package, and the platform counter contains all:
none of these is added. A counter wraps at a range that the kernel tells; that is unwound here. Since
2020 the kernel lets only root read them, so on most machines there are none.
"""

from __future__ import annotations

import os

from ouvrage.adapters.kept_file import KeptFile, Room

ROOT = "/sys/class/powercap"


class RaplCounter:
    """One counter: microjoules since it was first read, rising."""

    def __init__(self, name: str, path: str, range_uj: int, room: Room) -> None:
        self.name = name
        self._file = KeptFile(path, room, 64)
        self._range = range_uj
        self._last: int | None = None
        self._turns = 0

    def read(self) -> int | None:
        """The count now; None where it cannot be read."""
        data = self._file.read()
        if data is None or not data.strip().isdigit():
            return None
        value = int(data)
        if self._last is not None and value < self._last:
            if not self._range or value > self._range:
                return None
            self._turns += 1
        self._last = value
        return value + self._turns * self._range


def rapl_counters(room: Room, root: str = ROOT) -> list[RaplCounter]:
    """The counters of this machine that may be read; none is no error."""
    found: list[RaplCounter] = []
    try:
        zones = sorted(os.listdir(root))
    except OSError:
        return []
    for zone in zones:
        place = f"{root}/{zone}"
        name = _text(f"{place}/name")
        if not zone.startswith("intel-rapl") or name is None:
            continue
        if not name.startswith("package-") and name != "dram":
            continue
        if _text(f"{place}/energy_uj") is None:
            continue
        greatest = _text(f"{place}/max_energy_range_uj") or "0"
        range_uj = int(greatest) if greatest.isdigit() else 0
        found.append(RaplCounter(f"{zone} {name}", f"{place}/energy_uj", range_uj, room))
    return found


def _text(path: str) -> str | None:
    data = KeptFile(path, Room(0), 128).read()
    return None if data is None else data.decode("ascii", "replace").strip()
