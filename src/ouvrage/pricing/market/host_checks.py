"""What a host showed, held to what was promised of it: held, broken, or unknown.

A reading says between which bounds the truth lies; a promise is held where even the worse bound keeps
it, broken where even the better one does not, and unknown between them, without a reading or without a
promise. Unknown is never taken as held. Several GPUs are as good as the worst of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from ouvrage.metering.run_view import RunView
from ouvrage.model.gpus import RunGpuWindow
from ouvrage.model.hosts import (
    BROKEN,
    HELD,
    OUTCOMES,
    UNKNOWN,
    HostChecked,
    HostLine,
    HostPromise,
    HostReading,
    reading,
)
from ouvrage.model.runs import Host
from ouvrage.pricing.market.gpus import MODELS, model_of
from ouvrage.pricing.market.promises import AT_LEAST, IS, KINDS, NAMED
from ouvrage.pricing.words import rounded

NOTHING_PROMISED = "nothing was promised"
NOT_READ = "not read"
GIB, PPM = 1 << 30, 1_000_000
_SHORT = 4
BUSY = Fraction(1, 2)
"""A link is as fast as it gets while a GPU is busy for at least this share of a window."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    outcome: str
    reason: str


def held_to(
    promises: Iterable[HostPromise], readings: Sequence[HostReading]
) -> tuple[HostLine, ...]:
    """A line for each thing that was promised or read, in the order of ``KINDS``."""
    told = {each.id: each for each in promises}
    lines: list[HostLine] = []
    for id in KINDS:
        found = [each for each in readings if each.id == id]
        if id in told or found:
            lines.append(_line(id, told.get(id), found, readings))
    return tuple(lines)


def _line(
    id: str,
    promise: HostPromise | None,
    found: Sequence[HostReading],
    readings: Sequence[HostReading],
) -> HostLine:
    none = reading(id, KINDS[id].unit, NOT_READ)
    judged = [(each, _judged(promise, each, readings)) for each in found or [none]]
    worst, verdict = min(judged, key=lambda pair: _badness(pair[0], pair[1]))
    return HostLine(
        id=id,
        part=worst.part if len(found) > 1 else None,
        low=worst.low,
        high=worst.high,
        text=worst.text,
        promised=None if promise is None else promise.value,
        operator=KINDS[id].operator if promise is None else promise.operator,
        margin_percent=0 if promise is None else promise.margin_percent,
        unit=worst.unit if promise is None else promise.unit,
        outcome=verdict.outcome,
        reason=verdict.reason,
    )


def _badness(each: HostReading, verdict: _Verdict) -> tuple[int, Fraction]:
    """Broken before unknown before held; of several alike the least (or latest) reading."""
    order = (BROKEN, UNKNOWN, HELD).index(verdict.outcome)
    value = each.low if each.low is not None else each.high
    number = Fraction(value) if value is not None else Fraction(0)
    return order, number if KINDS[each.id].operator == AT_LEAST else -number


def _judged(
    promise: HostPromise | None, each: HostReading, readings: Sequence[HostReading]
) -> _Verdict:
    if promise is None:
        return _Verdict(UNKNOWN, f"{NOTHING_PROMISED}; {each.how}")
    if (each.low, each.high, each.text) == (None, None, None):
        return _Verdict(UNKNOWN, each.how)
    if promise.operator in NAMED:
        return _named(promise, each, readings)
    if promise.unit != each.unit:
        return _Verdict(UNKNOWN, f"read in {each.unit}, promised in {promise.unit}")
    return _measured(promise, each)


def _measured(promise: HostPromise, each: HostReading) -> _Verdict:
    """Numbers: the worse bound must keep the promise for it to be held, the better one break it."""
    least = promise.operator == AT_LEAST
    share = 100 - promise.margin_percent if least else 100 + promise.margin_percent
    limit = Fraction(promise.value) * share / 100
    low, high = (None if each.low is None else Fraction(each.low)), each.high
    worse, better = (low, high) if least else (high, low)
    within = (lambda value: value >= limit) if least else (lambda value: value <= limit)
    if worse is not None and within(Fraction(worse)):
        return _Verdict(HELD, each.how)
    if better is not None and not within(Fraction(better)):
        return _Verdict(BROKEN, each.how)
    return _Verdict(UNKNOWN, each.how)


def digits(text: str) -> str:
    """Three significant digits of a decimal text; whole and short numbers as they are."""
    value = Fraction(text)
    return text if value.denominator == 1 or len(text) <= _SHORT else rounded(value)


def _named(promise: HostPromise, each: HostReading, readings: Sequence[HostReading]) -> _Verdict:
    text = each.text or ""
    if promise.operator != IS:
        held = _squeezed(promise.value) in _squeezed(text)
        return _Verdict(HELD if held else BROKEN, each.how)
    memory = next(
        (r.low for r in readings if r.id == "gpu.memory" and r.part == each.part and r.low), None
    )
    model = model_of(text, None if memory is None else round(Fraction(memory) * 1024))
    if promise.value == model or _squeezed(promise.value) == _squeezed(text):
        return _Verdict(HELD, each.how)
    if {promise.value, model} <= MODELS.keys():
        return _Verdict(BROKEN, each.how)
    if _squeezed(promise.value.partition("-")[0]) not in _squeezed(text):
        return _Verdict(BROKEN, each.how)
    return _Verdict(UNKNOWN, f"whether {text} is what is sold as {promise.value} is not known here")


def _squeezed(text: str) -> str:
    return re.sub("[^A-Z0-9]", "", text.upper())


def outcome_of(lines: Iterable[HostLine]) -> str:
    """Broken where any promise is, else unknown where any promised thing is, else held."""
    outcomes = {line.outcome for line in lines if line.promised is not None}
    return next((each for each in (BROKEN, UNKNOWN, HELD) if each in outcomes), UNKNOWN)


def check_fault(value: HostChecked) -> str | None:
    """Why a recorded check does not stand; None where its lines are made again from what it read."""
    try:
        lines = held_to(value.promises, value.readings)
    except (ValueError, KeyError, ZeroDivisionError) as error:
        return f"its readings cannot be held to its promises: {error}"
    if lines == value.lines:
        return None
    if any(line.outcome not in OUTCOMES for line in value.lines):
        return "an outcome of an unknown sort"
    return "its lines are not those of its readings and promises"


def host_readings(host: Host) -> list[HostReading]:
    """What the limits of a host say: the cores and the memory that its user may use."""
    cores = Fraction(host.cpus_allowed)
    how = "CPUs that the affinity mask admits"
    if host.cpu_quota_ppm is not None and Fraction(host.cpu_quota_ppm, PPM) < cores:
        cores, how = Fraction(host.cpu_quota_ppm, PPM), "the control group's quota"
    found = [reading("cpu.allowed", "cores", how, cores, cores)]
    if host.cpu_model is not None:
        found.append(reading("cpu.model", "", "as the kernel names it", text=host.cpu_model))
    sizes = {
        "the machine's memory": host.memory_bytes,
        "the control group's limit": host.memory_limit_bytes,
    }
    told = {words: size for words, size in sizes.items() if size is not None}
    if told:
        words = min(told, key=lambda each: told[each])
        size = Fraction(told[words], GIB)
        found.append(reading("memory.limit", "GiB", words, size, size))
    return found


def device_readings(devices: Sequence[Mapping[str, str | int | None]]) -> list[HostReading]:
    """What GPUs say of themselves once, whatever they do: the names are those of ``gpu_port.ABOUT``."""
    said = "as the driver says"
    found = [reading("gpu.count", "", said, len(devices), len(devices))]
    for index, about in enumerate(devices):
        part = f"GPU {index}"
        name, memory, limit = (about.get(k) for k in ("name", "memory_bytes", "power_limit_mw"))
        if isinstance(name, str):
            found.append(reading("gpu.model", "", said, text=name, part=part))
        if isinstance(memory, int):
            size = Fraction(memory, GIB)
            found.append(reading("gpu.memory", "GiB", said, size, size, part=part))
        if isinstance(limit, int):
            watts = Fraction(limit, 1000)
            found.append(
                reading(
                    "gpu.power_limit", "W", "the limit that is enforced", watts, watts, part=part
                )
            )
        found += _own_best(about, part)
    return found


_BEST = (
    ("gpu.power_default", "W", "power_limit_default_mw", 1000),
    ("gpu.pcie_generation_max", "", "pcie_generation_max", 1),
    ("gpu.pcie_width_max", "lanes", "pcie_width_max", 1),
    ("gpu.clock_max", "MHz", "clock_sm_max_mhz", 1),
    ("gpu.ecc", "", "ecc", 1),
)


def _own_best(about: Mapping[str, str | int | None], part: str) -> list[HostReading]:
    """What a card was built for; no offer promises it, notices compare with it."""
    return [
        reading(
            id,
            unit,
            "as the driver says",
            Fraction(value, scale),
            Fraction(value, scale),
            part=part,
        )
        for id, unit, name, scale in _BEST
        if isinstance(value := about.get(name), int)
    ]


def link_reading(
    id: str, now: int | None, best: int | None, part: str, *, busy: bool
) -> HostReading:
    """A PCIe link. An idle card slows its link down, so that idle it may be up to its best."""
    unit = KINDS[id].unit
    if now is None:
        return reading(id, unit, "the driver does not say", part=part)
    if busy:
        return reading(id, unit, "read under load", now, now, part=part)
    how = "read idle, when a card slows its link down; --load-command tells"
    if best is None:
        return reading(id, unit, how, now, None, part=part)
    if now >= best:
        return reading(id, unit, "read idle, at the best of card and slot", now, now, part=part)
    return reading(id, unit, how, now, best, part=part)


def run_readings(view: RunView) -> list[HostReading]:
    """What a run saw of its host at its start and while it worked."""
    found = host_readings(view.started.host)
    devices = [each for each in view.devices if each.chosen]
    if not devices:
        return found
    found += device_readings([asdict(each) for each in devices])
    for index, device in enumerate(devices):
        windows = [each for each in view.gpu_windows if each.gpu == device.gpu]
        part = f"GPU {index}"
        for id, name in (("gpu.pcie_generation", "generation"), ("gpu.pcie_width", "width")):
            now, busy = _link(windows, f"pcie_{name}_min")
            best = getattr(device, f"pcie_{name}_max")
            found.append(link_reading(id, now, best, part, busy=busy))
    return found


def _link(windows: Sequence[RunGpuWindow], name: str) -> tuple[int | None, bool]:
    """The best that the link kept for a whole window, and whether its card was busy meanwhile.

    A link is read every ten seconds and the reading kept, so that a busy window may still hold one
    from before: only windows that follow a busy one count as read under load.
    """
    held = [getattr(each, name) for each in windows]
    worked = [
        each.busy_us is not None and each.busy_us >= BUSY * each.busy_covered_us > 0
        for each in windows
    ]
    busy = [
        value
        for value, before, now in zip(held[1:], worked, worked[1:], strict=False)
        if before and now and value is not None
    ]
    return max(busy or [value for value in held if value is not None], default=None), bool(busy)


def notices(readings: Sequence[HostReading]) -> list[str]:
    """What stands out though nobody promised otherwise: a card held below its own, a core not got."""
    said: list[str] = []
    exact = {(r.id, r.part): r.low for r in readings if r.low and r.low == r.high}
    for (id, part), value in exact.items():
        best = exact.get((_BEST_OF.get(id, ""), part))
        if best is not None and Fraction(value) < Fraction(best):
            unit = f" {KINDS[id].unit}" if KINDS[id].unit else ""
            said.append(
                f"{part}: {KINDS[id].words} {digits(value)}{unit}, of {digits(best)}{unit} that the card has"
            )
        if id in _TAKEN and Fraction(value) >= 2:
            said.append(f"{f'{part}: ' if part else ''}{_TAKEN[id]} {digits(value)} % of the time")
    return said


_BEST_OF = {
    "gpu.power_limit": "gpu.power_default",
    "gpu.pcie_generation": "gpu.pcie_generation_max",
    "gpu.pcie_width": "gpu.pcie_width_max",
}
_TAKEN = {
    "cpu.steal": "the hypervisor gave this machine's cores to others for",
    "gpu.throttled": "heat or a power brake held the clocks down for",
}
