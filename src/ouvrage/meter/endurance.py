"""A sustained load on all of a machine, and what it did to it: errors, heat, clocks, power at the wall.

Decides which parts are kept busy, how often the machine is looked at, and what is told of each part; what it must be like is
``health/needs``'s. Every part is a child that ends with this process; Ctrl-C ends all of them and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ouvrage.adapters import temperatures
from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.load_work import memory_share
from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.procfs import memory_bytes
from ouvrage.meter.feed import command
from ouvrage.meter.host_gpus import Load, Running, kept_busy, watched_gpus
from ouvrage.model.hosts import HostReading, reading

US = 1_000_000
LOOK_US = 5 * US
REMOTE_S = 5
"""Seconds between two questions to a BMC: it is slow, and others ask it too."""
DISK_BYTES = 256 << 20
GPU_DEADLINE_S = 30
LEAST_TOLD = 10
"""Times that a core must have told in a fifth of the load, for it to show whether it got slower."""
Tell = Callable[[Fraction, str], None]
"""How much of the load is over, from 0 to 1, and words about the machine now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long, on what, and by which meter. ``gpu``: what keeps the GPUs busy.

    ``wall`` is a plug's address; without one ``remote`` is asked for watts, which is the machine's BMC or plug.
    """

    seconds: float
    directory: str
    memory_percent: int
    gpu: str | None
    wall: str | None
    sys: str = "/sys"
    remote: PowerPort | None = None


@dataclass(slots=True)
class Part:
    """One child and what it has said: its kind, work with its processor time, errors, whether it came to its end."""

    kind: str
    child: subprocess.Popen[bytes]
    rest: bytes = b""
    rates: list[tuple[int, int, int]] = field(default_factory=list)
    done: int = 0
    wrong: int = 0
    over: bool = False

    def hear(self) -> bool:
        """Take what it says; False once it says no more."""
        assert self.child.stdout is not None
        data = os.read(self.child.stdout.fileno(), 65_536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            told: dict[str, Any] = json.loads(line)
            self.rates.append((told["t"], told["done"], told["cpu"]))
            self.done += told["done"]
            self.wrong += told["wrong"]
            self.over = self.over or told["over"]
        return bool(data)


@dataclass(slots=True)
class Watched:
    """What was seen of the machine meanwhile: the hottest of each sensor, clocks, and the wall."""

    hottest: dict[str, temperatures.Temperature] = field(default_factory=dict)
    clocks_khz: list[int] = field(default_factory=list)
    wall: list[tuple[int, int | None, int | None]] = field(default_factory=list)
    wall_fault: str = ""
    gpus: list[HostReading] = field(default_factory=list)

    def look(self, sys: str) -> str:
        """Look at the machine once; words about it."""
        for each in temperatures.temperatures(sys):
            if each.milli_c >= self.hottest.get(each.part, each).milli_c:
                self.hottest[each.part] = each
        clocks = sorted(temperatures.clocks_khz(sys))
        if clocks:
            self.clocks_khz.append(clocks[len(clocks) // 2])
        words = [f"{max(e.milli_c for e in self.hottest.values()) // 1000} °C"] if self.hottest else []  # fmt: skip
        if self.wall and self.wall[-1][1] is not None:
            words.append(f"{self.wall[-1][1] // 1000} W")
        return ", ".join(words)


def endure(plan: Plan, tell: Tell) -> list[HostReading]:
    """Keep the machine busy for so long; every reading of it. The load ends with this call, whatever ends it."""
    watched, before = Watched(), temperatures.throttles(plan.sys)
    parts = [_started(kind, settings) for kind, settings in _settings(plan)]
    wall = None if plan.wall is None else _wall_child(plan.wall)
    load = None if plan.gpu is None else Load(command=plan.gpu, seconds=plan.seconds)
    began, over = monotonic_us(), threading.Event()
    try:
        with kept_busy(load) as running:
            gpus = threading.Thread(target=_watch_gpus, args=(running, watched), daemon=True)
            gpus.start()
            if wall is None and plan.remote is not None:
                ask = (plan.remote, watched, over)
                threading.Thread(target=_ask_remote, args=ask, daemon=True).start()
            _listen(plan, parts, wall, watched, began, tell)
            gpus.join(GPU_DEADLINE_S)
    finally:
        over.set()
        for child in (*(part.child for part in parts), *([wall] if wall else [])):
            _end(child)
    took = max((part.rates[-1][0] for part in parts if part.rates), default=began) - began
    rises = None if before is None else (temperatures.throttles(plan.sys) or before) - before
    return [*_of_parts(plan, parts, took), *_of_machine(plan, watched, rises), *watched.gpus]


def _settings(plan: Plan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part's kind and settings: one for each core, the memory, the disk."""
    for cpu in sorted(os.sched_getaffinity(0)):
        yield "cpu", {"seconds": plan.seconds, "cpu": cpu}
    size = memory_share(plan.memory_percent)
    yield "memory", {"seconds": plan.seconds, "size": size}
    yield "disk", {"seconds": plan.seconds, "directory": plan.directory, "size": DISK_BYTES}


def _started(kind: str, settings: dict[str, Any]) -> Part:
    child = subprocess.Popen(
        command("ouvrage.meter.load_child", kind, json.dumps(settings)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return Part(kind=kind, child=child)


def _wall_child(url: str) -> subprocess.Popen[bytes]:
    """The meter's own child that asks a plug once a second; its pipe holds hours of readings."""
    return subprocess.Popen(
        command("ouvrage.meter.wall_probe", url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _watch_gpus(running: Running | None, watched: Watched) -> None:
    watched.gpus = watched_gpus(GPU_DEADLINE_S, running)


def _ask_remote(port: PowerPort, watched: Watched, over: threading.Event) -> None:
    """What the machine draws, as its BMC or plug says, until the load is over; one question at a time."""
    while not over.is_set():
        try:
            told = port.power_w()
        except PowerFault as fault:
            watched.wall_fault = f"{port.kind} does not tell: {fault}"
        else:
            watts = None if told is None else told.value
            watched.wall_fault = f"{port.kind} measures no power" if watts is None else ""
            if watts is not None:
                watched.wall.append((monotonic_us(), round(watts * 1000), None))
        over.wait(REMOTE_S)


def _listen(
    plan: Plan, parts: Sequence[Part], wall: subprocess.Popen[bytes] | None, watched: Watched,
    began: int, tell: Tell,
) -> None:  # fmt: skip
    """Hear every child until the time is up, and look at the machine now and then."""
    poller = select.poll()
    by_pipe: dict[int, Callable[[], bool]] = {}
    for part in parts:
        assert part.child.stdout is not None
        by_pipe[part.child.stdout.fileno()] = part.hear
    speaks = len(by_pipe)
    if wall is not None and wall.stdout is not None:
        by_pipe[wall.stdout.fileno()] = _WallLines(wall.stdout.fileno(), watched).hear
    for pipe in by_pipe:
        poller.register(pipe, select.POLLIN)
    whole = round(plan.seconds * US)
    every, due = min(LOOK_US, whole // 10), began
    while speaks and (now := monotonic_us()) < began + whole + LOOK_US:
        if now >= due:
            due = now + every
            tell(Fraction(min(now - began, whole), whole), watched.look(plan.sys))
        for pipe, _ in poller.poll(max(1, min(every, due - now) // 1000)):
            if not by_pipe[pipe]():
                poller.unregister(pipe)
                speaks -= wall is None or wall.stdout is None or pipe != wall.stdout.fileno()
    watched.look(plan.sys)


class _WallLines:
    """What the child that asks the plug says."""

    def __init__(self, pipe: int, watched: Watched) -> None:
        self._pipe = pipe
        self._watched = watched
        self._rest = b""

    def hear(self) -> bool:
        data = os.read(self._pipe, 65_536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            told: dict[str, Any] = json.loads(line)
            if told["k"] == "read":
                self._watched.wall.append((told["t"], *told["v"]))
            else:
                self._watched.wall_fault = str(told["text"])
        return bool(data)


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
            break
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _of_parts(plan: Plan, parts: Sequence[Part], took_us: int) -> Iterator[HostReading]:
    """What the load itself says: how long, how much, how much of it was wrong."""
    cpus = [part for part in parts if part.kind == "cpu"]
    (memory,) = (part for part in parts if part.kind == "memory")
    (disk,) = (part for part in parts if part.kind == "disk")
    lost = [part.kind for part in parts if not part.over]
    yield _exact("load.time", "min", f"{len(parts)} parts at once", Fraction(took_us, 60 * US))
    how = f"ended early: {', '.join(lost)}" if lost else f"each of {len(parts)} came to its end"
    yield _exact("load.lost", "parts", how, len(lost))
    done = sum(part.done for part in cpus)
    how = f"{len(cpus)} cores compressed {done // 1_000_000} MB and compared"
    yield _checked("cpu.errors", "results", how, sum(p.wrong for p in cpus), done)
    yield _kept(cpus)
    how = f"{memory.done >> 20} MiB written and read back, {memory_share(plan.memory_percent) >> 20} MiB at a time"
    yield _checked("memory.errors", "blocks", how, memory.wrong, memory.done)
    tested = min(memory.done, memory_share(plan.memory_percent))
    share = Fraction(100 * tested, memory_bytes() or max(1, tested))
    yield _exact("memory.tested", "%", how, share)
    how = f"{disk.done >> 20} MiB written and read back in {plan.directory}"
    yield _checked("disk.errors", "blocks", how, disk.wrong, disk.done)


def _exact(id: str, unit: str, how: str, value: Fraction | int) -> HostReading:
    value = Fraction(round(Fraction(value) * 1000), 1000)
    return reading(id, unit, how, value, value)


def _checked(id: str, unit: str, how: str, wrong: int, done: int) -> HostReading:
    """Errors among what was compared; where nothing was, none were looked for."""
    if not done:
        return reading(id, unit, f"nothing was compared: {how}")
    return _exact(id, unit, how, wrong)


def _kept(cpus: Sequence[Part]) -> HostReading:
    """The speed at the end as a share of that at the begin: of the last fifth and the first.

    By processor time, so that neighbours on this machine do not pass for heat.
    """
    early, late = Fraction(0), Fraction(0)
    for part in cpus:
        rates = part.rates[1:-1]  # the first holds the start, the last is shorter than the others
        fifth = len(rates) // 5
        if fifth >= LEAST_TOLD:
            early += _speed(rates[:fifth])
            late += _speed(rates[-fifth:])
    if not early:
        return reading("cpu.kept", "%", "the load was too short to tell")
    how = "what a core compressed for its time in the last fifth, of that in the first"
    return _exact("cpu.kept", "%", how, 100 * late / early)


def _speed(rates: Sequence[tuple[int, int, int]]) -> Fraction:
    return Fraction(sum(done for _, done, _ in rates), max(1, sum(cpu for _, _, cpu in rates)))


def _of_machine(plan: Plan, seen: Watched, rises: int | None) -> Iterator[HostReading]:
    """What the machine says of itself: heat, clocks, how often it throttled, power at the wall."""
    for sort in (temperatures.PROCESSOR, temperatures.DISK):
        sensors = [each for each in seen.hottest.values() if each.sort == sort]
        if sensors:
            hot = max(sensors, key=lambda each: each.milli_c)
            yield _exact(f"{sort}.temperature", "°C", hot.part, Fraction(hot.milli_c, 1000))
        else:
            yield reading(f"{sort}.temperature", "°C", "no sensor tells it")
    if rises is None:
        yield reading("cpu.throttles", "times", "the kernel does not count it here")
    else:
        yield _exact("cpu.throttles", "times", "as the kernel counts them", rises)
    if seen.clocks_khz:
        clocks = sorted(seen.clocks_khz)
        how = f"median of {len(clocks)} looks at every core, the least {clocks[0] // 1000}"
        yield _exact("cpu.clock", "MHz", how, Fraction(clocks[len(clocks) // 2], 1000))
    yield from _of_wall(plan, seen)


def _meter(plan: Plan) -> str:
    return plan.remote.kind if plan.wall is None and plan.remote is not None else "plug"


def _of_wall(plan: Plan, seen: Watched) -> Iterator[HostReading]:
    watts = [mw for _, mw, _ in seen.wall if mw is not None]
    if not watts:
        how = seen.wall_fault or "it said nothing"
        if plan.wall is None and plan.remote is None:
            how = "no meter at the wall: --wall-meter URL names a plug, or remote.toml a BMC"
        yield reading("power.wall", "W", how)
        yield reading("power.wall_most", "W", how)
        return
    counted = [(at, uj) for at, _, uj in seen.wall if uj is not None]
    mean, how = (
        Fraction(sum(watts), len(watts)),
        f"mean of {len(watts)} readings of the {_meter(plan)}",
    )
    if len(counted) >= 2 and counted[-1][1] - counted[0][1] > 100 * 3_600_000_000:
        # Its counter is better than its readings once it moved by far more than a step of a watt-hour.
        mean = Fraction((counted[-1][1] - counted[0][1]) * 1000, counted[-1][0] - counted[0][0])
        how = "by the plug's own counter"
    yield _exact("power.wall", "W", how, mean / 1000)
    yield _exact("power.wall_most", "W", f"most of {len(watts)} readings", Fraction(max(watts), 1000))  # fmt: skip
