"""The GPUs of a host: who they are, at rest or while somebody's own load runs on them.

Decides what their readings are worth: an idle card slows its link down, so its link counts only while it is
busy; the clock that it holds is the median while it is busy. The driver is read in a child alone (``gpu_probe``),
under a deadline; a child that is stuck is asked to end, once, and left: killing it in the middle of a
driver's call has been seen to freeze a card.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import IO, Any

from ouvrage.adapters import nvml_place
from ouvrage.adapters.clock import monotonic_us, new_id
from ouvrage.adapters.gpu_port import PLACE, Identity, Rare, Reading
from ouvrage.adapters.nvml import RARELY
from ouvrage.meter.feed import command
from ouvrage.metering.gpus import FAULTS, USED_PERCENT, reason_names
from ouvrage.model.hosts import HostReading, reading
from ouvrage.pricing.market.host_checks import device_readings, link_reading

US = 1_000_000
ASK_MS = 250
BUSY_PERCENT = 50
LEAST_BUSY = 4
MOST_KEPT = 7200
"""Readings of the cards that are kept: those of two hours, each second."""
_END_S = 5
_MARK = "OUVRAGE_LOAD"
NO_LIBRARY = "NVIDIA's library is not on this machine; no GPU can be read"
NO_LOAD = "not read: it takes a load, --load-command CMD"


@dataclass(slots=True)
class Said:
    """What the child has said: the cards, their readings in order, and why there is nothing more."""

    cards: list[Identity] = field(default_factory=list)
    readings: list[list[Reading | None]] = field(default_factory=list)
    stride: int = 1
    seen: int = 0
    fault: str | None = None
    nothing: bool = False
    rare: Rare = field(default_factory=Rare)

    def keep(self, row: list[Reading | None]) -> None:
        """A reading more; of a load of days every second one goes, again and again, and the hotter of two stays."""
        self.seen += 1
        if self.seen % self.stride == 0:
            self.readings.append(row)
        elif _heat_of(row) > _heat_of(self.readings[-1]):
            self.readings[-1] = row
        if len(self.readings) > MOST_KEPT:
            pairs = zip(self.readings[::2], self.readings[1::2], strict=False)
            self.readings = [max(pair, key=_heat_of) for pair in pairs]
            self.stride *= 2


def _heat_of(row: Sequence[Reading | None]) -> int:
    """The hottest card of a reading; 0 where none tells."""
    return max((v[PLACE["temperature_c"]] or 0 for v in row if v is not None), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A person's own command that keeps the GPUs busy, and for how long it is watched."""

    command: str
    seconds: float


def gpu_readings(deadline_s: float, load: Load | None) -> list[HostReading]:
    """Everything about the GPUs; one reading that says why where they cannot be read."""
    with kept_busy(load) as running:
        return watched_gpus(deadline_s, running)


def watched_gpus(deadline_s: float, running: Running | None) -> list[HostReading]:
    """The same for a load that somebody else began, until its time is up or it ends."""
    if not nvml_place.is_here(os.environ):
        return [reading("gpu.count", "", NO_LIBRARY)]
    return _readings(_listened(deadline_s, running), running)


class Running:
    """The load while it runs: its process group is ended with it."""

    def __init__(self, load: Load, words: IO[bytes]) -> None:
        self.load = load
        self.words = words
        self._mark = f"{_MARK}={new_id()}".encode()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", load.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            start_new_session=True,
            env={**os.environ, _MARK: self._mark.decode().partition("=")[2]},
        )

    @property
    def alive(self) -> bool:
        """Whether the command has not ended yet."""
        return self.process.poll() is None

    def end(self) -> None:
        """End it and everything it started, also what left its process group."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)
            for pid in self._apart():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_S)

    def _apart(self) -> list[int]:
        """Processes that were born with this load's mark in their environment."""
        found: list[int] = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if self._mark in file.read().split(b"\0"):
                    found.append(int(name))
        return found

    def complaint(self) -> str:
        """Why it ended by itself: its exit code and the last line that it wrote to its standard error."""
        if self.words.closed:
            return "the load was ended"
        self.words.seek(0, os.SEEK_END)
        self.words.seek(max(0, self.words.tell() - 400))
        lines = self.words.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in lines[::-1] if line.strip()), "")
        return f"the load ended with {self.process.returncode}{f': {last[:160]}' if last else ''}"


@contextlib.contextmanager
def kept_busy(load: Load | None) -> Iterator[Running | None]:
    """A load that runs, and has ended with all it started; None without one, or where no GPU can be read."""
    if load is None or not nvml_place.is_here(os.environ):
        yield None
        return
    with tempfile.TemporaryFile() as words:
        running = Running(load, words)
        try:
            yield running
        finally:
            running.end()


def _listened(deadline_s: float, running: Running | None) -> Said:
    """What the child says: one reading of each card at rest, under a load as many as there is time for."""
    child = subprocess.Popen(
        command("ouvrage.meter.gpu_probe"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    said = Said()
    try:
        _listen(child.stdin, child.stdout.fileno(), said, deadline_s, running)
    finally:
        with contextlib.suppress(OSError):
            child.stdin.close()
        _let_go(child)
        child.stdout.close()
    return said


def _listen(
    ask: IO[bytes], lines: int, said: Said, deadline_s: float, running: Running | None
) -> None:
    """Hear the child until enough was said, nothing more comes, or it is silent for too long."""
    poller = select.poll()
    poller.register(lines, select.POLLIN)
    deadline = round(deadline_s * US)
    silent, until, rest = monotonic_us() + deadline, 0, b""
    while not _enough(said, until, running):
        if monotonic_us() >= silent:
            said.fault = said.fault or f"the driver did not answer within {deadline_s:g} s"
            return
        if not poller.poll(ASK_MS):
            _ask(ask, said)
            continue
        data = os.read(lines, 65_536)
        if not data:
            said.fault = said.fault or "the process that reads the GPUs ended"
            return
        *whole, rest = (rest + data).split(b"\n")
        before = len(said.readings)
        for line in whole:
            _hear(line, said)
        if len(said.readings) > before:
            now = monotonic_us()
            silent = now + deadline
            until = until or now + round((running.load.seconds if running else 0) * US)


def _enough(said: Said, until_us: int, running: Running | None) -> bool:
    """Whether nothing more is to be heard: there are no GPUs, the time is up, or the load has ended."""
    if said.nothing:
        return True
    over = running is None or monotonic_us() >= until_us or not running.alive
    return bool(said.readings) and over


def _ask(ask: IO[bytes], said: Said) -> None:
    """Ask for another reading now, once the child has begun to read; it reads each second anyway."""
    if said.readings:
        with contextlib.suppress(OSError):
            os.write(ask.fileno(), b"!")


def _hear(line: bytes, said: Said) -> None:
    """One line of the child's; what is none of them says nothing."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        told: dict[str, Any] = json.loads(line)
        if told["k"] == "gpu":
            said.cards.append(told["about"])
            said.rare.forget(int(told["about"]["index"]))
        elif told["k"] == "read":
            said.keep([v and said.rare.completed(index, v) for index, v in enumerate(told["v"])])
        elif told["k"] == "fault":
            said.fault = str(told["text"])[:200]
        elif told["k"] == "nothing":
            said.nothing = True


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """Its input is closed, so it ends; one that is stuck is asked once and left."""
    for ask in (False, True):
        if ask:
            with contextlib.suppress(OSError):
                child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1)
            return
    child.returncode = 0  # nobody waits for it any more; Python must not warn that it lives


def _readings(said: Said, running: Running | None) -> list[HostReading]:
    if said.nothing:
        return [reading("gpu.count", "", "NVIDIA's library lists no GPU", 0, 0)]
    if not said.cards or not said.readings:
        return [reading("gpu.count", "", said.fault or "no GPU answered")]
    found = device_readings(said.cards)
    for number, about in enumerate(said.cards):
        index = about.get("index")
        rows = [
            values
            for at in said.readings
            if isinstance(index, int) and index < len(at) and (values := at[index]) is not None
        ]
        found += _card(f"GPU {number}", about, rows, running)
    return found


def _card(
    part: str, about: Identity, rows: Sequence[Reading], running: Running | None
) -> list[HostReading]:
    found = [
        _link(id, name, part, about, rows)
        for id, name in (
            ("gpu.pcie_generation", "pcie_generation"),
            ("gpu.pcie_width", "pcie_width"),
        )
    ]
    if running is None:
        return [*found, reading("gpu.clock", "MHz", NO_LOAD, part=part)]
    return [*found, *_held(part, rows, running)]


def _link(id: str, name: str, part: str, about: Identity, rows: Sequence[Reading]) -> HostReading:
    """The link while the card was busy, of readings fresh since then; else the one at rest."""
    best = about.get(f"{name}_max")
    busy = [row for row in rows if (row[PLACE["busy_percent"]] or 0) >= BUSY_PERCENT]
    fresh = [v for row in busy[RARELY:] if (v := row[PLACE[name]]) is not None]
    if fresh:
        return link_reading(id, max(fresh), None, part, busy=True)
    seen = [v for row in rows if (v := row[PLACE[name]]) is not None]
    at_rest = max(seen, default=None)
    return link_reading(id, at_rest, best if isinstance(best, int) else None, part, busy=False)


def _held(part: str, rows: Sequence[Reading], running: Running) -> list[HostReading]:
    """The clock that a busy card held, and the share of that time in which a fault held it down."""
    busy = [row for row in rows if (row[PLACE["busy_percent"]] or 0) >= BUSY_PERCENT]
    clocks = sorted(v for row in busy if (v := row[PLACE["clock_sm_mhz"]]) is not None)
    if len(clocks) < LEAST_BUSY:
        how = "the load did not keep it busy"
        if running.process.returncode:
            how = running.complaint()
        elif all((row[PLACE["busy_percent"]] or 0) < USED_PERCENT for row in rows):
            how = "the load did not use it"
        return [reading("gpu.clock", "MHz", how, part=part)]
    median = clocks[len(clocks) // 2]
    masks = [v for row in busy if (v := row[PLACE["clock_reasons"]]) is not None]
    faulty = sum(1 for mask in masks if FAULTS & set(reason_names(mask)))
    how = f"median of {len(clocks)} readings under {running.load.command[:80]!r}, the least {clocks[0]}"
    reasons = sorted({name for mask in masks for name in reason_names(mask)})
    if reasons:
        how += f"; held by {', '.join(reasons).replace('_', ' ')}"
    found = [reading("gpu.clock", "MHz", how, median, median, part=part)]
    if masks:
        share = 100 * Fraction(faulty, len(masks))
        found.append(
            reading("gpu.throttled", "%", "of the readings under load", share, share, part=part)
        )
    return [*found, *_heat(part, busy)]


def _heat(part: str, busy: Sequence[Reading]) -> list[HostReading]:
    """How hot a busy card became, and what it took on average by its own sensor."""
    found: list[HostReading] = []
    heats = [v for row in busy if (v := row[PLACE["temperature_c"]]) is not None]
    if heats:
        most, how = max(heats), f"the most of {len(heats)} readings under load"
        found.append(reading("gpu.temperature", "°C", how, most, most, part=part))
    taken = [v for row in busy if (v := row[PLACE["power_usage_mw"]]) is not None]
    if taken:
        watts = Fraction(round(Fraction(sum(taken), len(taken))), 1000)
        how = f"mean of {len(taken)} readings of its own sensor under load"
        found.append(reading("gpu.power", "W", how, watts, watts, part=part))
    return found
