"""What the node's processors, memory and GPUs do, each second: gathered, kept on the disk, sent batch by batch.

Decides when a batch is cut and how much waits while the server is away: then the oldest go, and their absence shows as a gap in the
moments, not as zeros. A runner that starts begins a new source and first sends what one before it left. The GPUs are read by a child that
may hang or die; its readings are missing then, and nothing else is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from ouvrage.adapters import nvml_place
from ouvrage.adapters.clock import monotonic_us, new_id, now_us
from ouvrage.adapters.gpu_port import PLACE
from ouvrage.adapters.kept_file import Room
from ouvrage.adapters.procfs import HostCounters, Values, memory_bytes
from ouvrage.agent.link import Away, Link, Refused
from ouvrage.base.time import SECOND
from ouvrage.meter.feed import Feed, Reads, command
from ouvrage.store.samples import write_whole
from ouvrage.wire.samples import GPU, MOST_DEVICES, NODE, Batch, Column, decode, encode

BATCH_US = 10 * SECOND
MOST_WAITING = 2160
"""Batches that wait for the server: six hours."""
_PERIOD_US = SECOND
_FRESH_US = 2 * SECOND
_HOPELESS = frozenset((400, 413, 422))
"""Refusals of a batch that will never be another one; of a key that is not known, somebody may think again."""
_POWER = ("power_average_mw", "power_usage_mw", "power_instant_mw")
_PLAIN = {
    "busy_percent": "busy_percent",
    "energy_mj": "energy_mj",
    "temperature_c": "temperature_c",
}
_log = structlog.get_logger()
Row = Mapping[str, "int | None"]


class Telemetry(threading.Thread):
    """Runs until told to stop. ``link`` is the runner's, enrolled already."""

    def __init__(self, state: Path, link: Link) -> None:
        super().__init__(name="telemetry", daemon=True)
        self._spool = Spool(state / "telemetry", new_id())
        self._link = link
        self._over = threading.Event()
        self._away_s = 0.0

    def run(self) -> None:
        """Gather each second, cut and send every ten."""
        node, cards, moments = NodeReader(), Cards(), Moments()
        cards.begin()
        due = monotonic_us()
        cut_at = due + BATCH_US
        send_at = due
        while not self._over.is_set():
            moments.add(now_us(), node.read(), cards.read())
            now = monotonic_us()
            if now >= cut_at:
                cut_at = now + BATCH_US
                self._spool.keep(moments.cut)
            if now >= send_at and not self._send():
                self._away_s = min(60.0, max(5.0, self._away_s * 2))
                send_at = now + round(self._away_s * SECOND)
            due = max(due + _PERIOD_US, monotonic_us())
            self._over.wait((due - monotonic_us()) / SECOND)
        cards.finish()
        self._spool.keep(moments.cut)

    def stop(self) -> None:
        """Keep what was gathered, and end."""
        self._over.set()
        if self.ident is not None:
            self.join(10)

    def _send(self) -> bool:
        """Send what waits, the oldest first; whether the server took it."""
        try:
            while not self._over.is_set() and (first := self._spool.first()):
                self._offer(*first)
            self._away_s = 0.0
        except Away as away:
            _log.info("telemetry.waits", why=str(away))
            return False
        return True

    def _offer(self, path: Path, content: bytes) -> None:
        try:
            self._link.samples(content)
        except Refused as refused:
            if refused.status not in _HOPELESS and refused.code != "samples/gap":
                raise Away(refused.message) from refused
            if refused.status in _HOPELESS:
                _log.warning("telemetry.refused", why=refused.message)
                path.unlink()
            # What is missing before the others does not come any more.
            self._spool.begin_anew(new_id())
            return
        path.unlink()


class Spool:
    """Batches that wait, as files below a directory for each source; the last source is this process's own."""

    def __init__(self, place: Path, source: str) -> None:
        self._place = place
        self._source = source
        self._sequence = 0
        self._waiting = sum(1 for _ in place.glob("*/*.gz"))

    def keep(self, make: Callable[[str, int], Batch | None]) -> None:
        """Keep the next batch, where there is one to make."""
        batch = make(self._source, self._sequence + 1)
        if batch is None:
            return
        self._sequence += 1
        write_whole(self._path(self._sequence), encode(batch))
        self._waiting += 1
        if self._waiting > MOST_WAITING:
            self._thin()

    def _path(self, sequence: int) -> Path:
        return self._place / self._source / f"{sequence:012}.gz"

    def first(self) -> tuple[Path, bytes] | None:
        """The oldest batch that waits."""
        for directory in sorted(path for path in self._place.glob("*") if path.is_dir()):
            files = sorted(directory.glob("*.gz"))
            if files:
                return files[0], files[0].read_bytes()
            if directory.name != self._source:
                directory.rmdir()
        self._waiting = 0
        return None

    def _thin(self) -> None:
        """Give up the older half: the newer figures are worth more."""
        files = sorted(self._place.glob("*/*.gz"))
        for path in files[: len(files) // 2]:
            path.unlink()
        self.begin_anew(new_id())

    def begin_anew(self, source: str) -> None:
        """Number all that waits from 1 again under a new source; killed in between, some may be told twice, none is lost."""
        files = sorted(self._place.glob("*/*.gz"))
        self._source, self._sequence = source, 0
        for path in files:
            self._sequence += 1
            batch = replace(decode(path.read_bytes()), source=source, sequence=self._sequence)
            write_whole(self._path(self._sequence), encode(batch))
            path.unlink()
        self._waiting = len(files)


class Moments:
    """What was read since the last cut."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, Row, Mapping[str, Row]]] = []
        self._latest = 0

    def add(self, at_us: int, node: Row, cards: Mapping[str, Row]) -> None:
        """One moment; moments only rise, whatever the clock does."""
        self._latest = max(at_us, self._latest + 1)
        self._rows.append((self._latest, node, cards))

    def cut(self, source: str, sequence: int) -> Batch | None:
        """All of them as a batch; None where there are none."""
        rows, self._rows = self._rows, []
        if not rows:
            return None
        devices = sorted({card for _, _, cards in rows for card in cards})[:MOST_DEVICES]
        return Batch(
            source=source,
            sequence=sequence,
            times=tuple(at for at, _, _ in rows),
            devices=tuple(devices),
            gpu=_told(
                {
                    name: [
                        cards.get(card, {}).get(name) for card in devices for _, _, cards in rows
                    ]
                    for name in GPU
                }
            ),
            node=_told({name: [node.get(name) for _, node, _ in rows] for name in NODE}),
        )


def _told(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Columns in which anything was read."""
    return {name: values for name, values in columns.items() if any(v is not None for v in values)}


class NodeReader:
    """The processors' load since the moment before, and the memory in use."""

    def __init__(self) -> None:
        self._counters = HostCounters(Room(16))
        self._memory = memory_bytes()
        self._before = self._counters.read()

    def read(self) -> Row:
        """One moment."""
        before, now = self._before, self._counters.read()
        self._before = now
        free = now["memory_available_bytes"]
        used = None if free is None or self._memory is None else max(0, self._memory - free) >> 20
        return {"cpu_permille": _busy(before, now), "memory_mib": used}


def _busy(before: Values, now: Values) -> int | None:
    """Thousandths of all processors that were busy between two readings; None where the kernel did not tell."""
    steps: dict[str, int] = {}
    for name in ("host_busy_us", "host_idle_us", "host_iowait_us", "host_steal_us"):
        first, last = before[name], now[name]
        if first is None or last is None:
            return None
        steps[name] = max(0, last - first)
    whole = sum(steps.values())
    return steps["host_busy_us"] * 1000 // whole if whole else None


class Cards:
    """The GPUs, as a child reads them."""

    def __init__(self) -> None:
        self._feed: Feed | None = None
        self._names: dict[int, str] = {}
        self._rows: dict[str, Row] = {}
        self._read_at = 0
        if nvml_place.is_here(os.environ):
            reads = Reads(code="gpu", what="the GPUs", words=command("ouvrage.meter.gpu_probe"))
            origin = monotonic_us()
            self._feed = Feed(reads, self.hear, _Notes(), _Starts(), origin, _PERIOD_US)

    def begin(self) -> None:
        """Start reading, where there is anything to read."""
        if self._feed is not None:
            self._feed.begin(monotonic_us())

    def read(self) -> Mapping[str, Row]:
        """What the GPUs said last, by their ids; nothing where that was too long ago."""
        if self._feed is None:
            return {}
        now = monotonic_us()
        self._feed.read(now)
        return dict(self._rows) if now - self._read_at <= _FRESH_US else {}

    def finish(self) -> None:
        """Let the child go."""
        if self._feed is not None:
            self._feed.finish(monotonic_us())

    def hear(self, said: dict[str, Any], now: int) -> None:
        """One object that the child said. Errors of cards are for whoever watches health."""
        if said["k"] == "gpu":
            about = said["about"]
            self._names[int(about["index"])] = str(about.get("uuid") or about["index"])
        elif said["k"] == "read":
            self._read_at = min(int(said["t"]), now)
            self._rows = {
                self._names[index]: card_row(values)
                for index, values in enumerate(said["v"])
                if values is not None and index in self._names
            }


def card_row(values: list[int | None]) -> Row:
    """A reading in the columns of telemetry; what cannot be is None."""
    row = {name: values[PLACE[source]] for name, source in _PLAIN.items()}
    memory = values[PLACE["memory_used_bytes"]]
    row["memory_mib"] = None if memory is None else memory >> 20
    powers = (values[PLACE[name]] for name in _POWER)
    row["power_mw"] = next((power for power in powers if power is not None), None)
    return {
        name: value if value is not None and 0 <= value <= GPU[name] else None
        for name, value in row.items()
    }


class _Notes:
    """What the child's keeper notes goes to the log."""

    def note(self, t: int, code: str, text: str) -> None:
        """Something about the child; ``t`` is of no use here."""
        _log.info("telemetry.note", code=code, text=text)


class _Starts:
    """Starts the child as it is: nobody counts processes here."""

    def apart(self, start: Callable[[], int]) -> int:
        """Start it."""
        return start()
