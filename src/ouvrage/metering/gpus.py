"""Readings of GPUs and energy meters to windows: load, energy, clocks, each with what it covers.

Windows of a card tile the run as those of the host do, on the card's own readings. Every sum is
taken step by step between two readings that came when they were due (``GAP_PERIODS``); a step
without one is a gap and not covered. A load reported at a moment stands for the step before it;
power is the mean of both ends. A counter that steps back, or rises faster than any card can draw,
was reset: that step is not covered, and no total is ever negative.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ouvrage.metering.windows import Columns, edges_of
from ouvrage.model.gpus import ReasonTime, RunDevice, RunEnergyMeter, RunEnergyWindow, RunGpuWindow

GAP_PERIODS = 3
GREATEST_W = 20_000
USED_PERCENT = 10
"""A GPU with less load than this shows a desktop or is asked how it is; it does no work."""
REASONS = {
    0x1: "idle",
    0x2: "clocks_set",
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
    0x100: "display_clocks",
    0x200: "board_limit",
    0x400: "reliability",
}
FAULTS = frozenset({"hardware_slowdown", "software_thermal", "hardware_thermal", "power_brake"})
"""Reasons that mean something is wrong. A card at its power cap does what it was bought for."""
_FAULT_BITS = sum(bit for bit, name in REASONS.items() if name in FAULTS)
_KNOWN_BITS = sum(REASONS)
_KB = 1000

Step = tuple[int, int, int]
"""Length, row of its begin and row of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTrack:
    """One GPU of a run and everything it said."""

    device: RunDevice
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterTrack:
    """One energy meter of a run and everything it said."""

    meter: RunEnergyMeter
    columns: Columns


def gpu_windows(
    track: GpuTrack, *, wall_us: int, period_us: int, window_us: int
) -> list[RunGpuWindow]:
    """The windows of one GPU; none where it never said anything."""
    cut = _Cut(track.columns, wall_us, period_us)
    return [
        _gpu_window(track.device, cut, index, start, end)
        for index, (start, end) in enumerate(cut.windows(window_us, period_us))
    ]


def meter_windows(
    track: MeterTrack, *, wall_us: int, period_us: int, window_us: int
) -> list[RunEnergyWindow]:
    """The windows of one energy meter."""
    cut = _Cut(track.columns, wall_us, period_us)
    found: list[RunEnergyWindow] = []
    for index, (start, end) in enumerate(cut.windows(window_us, period_us)):
        steps = cut.steps(start, end)
        energy = cut.risen("energy_uj", steps, 1)
        method = "counter"
        if not energy.covered_us:
            energy, method = cut.drawn("power_mw", steps), "power"
        found.append(
            RunEnergyWindow(
                run=track.meter.run,
                meter=track.meter.meter,
                index=index,
                from_us=start,
                to_us=end,
                energy_uj=energy.amount if energy.covered_us else None,
                covered_us=energy.covered_us,
                method=method,
                resets=energy.resets,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class _Sum:
    """An amount, the time it covers, and how often a counter stepped back."""

    amount: int
    covered_us: int
    resets: int = 0

    @property
    def told(self) -> int | None:
        """The amount, None where it covers nothing."""
        return self.amount if self.covered_us else None


class _Cut:
    """Readings, and sums over steps of them."""

    def __init__(self, columns: Columns, wall_us: int, period_us: int) -> None:
        self.values: Mapping[str, Sequence[int | None]] = columns.values
        self.times = [min(t, wall_us) for t in columns.times]
        self._wall = wall_us
        self._longest = GAP_PERIODS * period_us

    def windows(self, window_us: int, period_us: int) -> Iterator[tuple[int, int]]:
        """The edges of each window; none without readings."""
        if not self.times or self._wall <= 0:
            return iter(())
        return pairwise(edges_of(self.times, self._wall, window_us, period_us))

    def steps(self, start: int, end: int) -> list[Step]:
        """The steps that lie in a window, gaps left out."""
        first = bisect_left(self.times, start)
        last = bisect_left(self.times, end)
        if last == len(self.times) or self.times[last] > end:
            last -= 1
        rows = range(first, last)
        lengths = ((self.times[row + 1] - self.times[row], row, row + 1) for row in rows)
        return [step for step in lengths if 0 < step[0] <= self._longest]

    def rows(self, start: int, end: int) -> range:
        """The readings of a window: its opening edge belongs to the window before."""
        first = bisect_left(self.times, start)
        if start and first < len(self.times) and self.times[first] == start:
            first += 1
        return range(first, bisect_left(self.times, end + 1))

    def column(self, name: str) -> Sequence[int | None]:
        """A column; of one that nobody told every value is None."""
        return self.values.get(name) or [None] * len(self.times)

    def known(self, name: str, rows: range) -> list[int]:
        """The values of a column that were told in these rows."""
        held = self.column(name)
        return [value for row in rows if (value := held[row]) is not None]

    def summed(self, name: str, steps: Sequence[Step], weigh: Callable[[int], int] = int) -> _Sum:
        """Value x length over the steps that end in a known value."""
        held = self.column(name)
        amount = covered = 0
        for length, _, end in steps:
            value = held[end]
            if value is not None:
                amount += weigh(value) * length
                covered += length
        return _Sum(amount, covered)

    def drawn(self, name: str, steps: Sequence[Step]) -> _Sum:
        """Microjoules: the mean of milliwatts at both ends, over the steps that have both."""
        held = self.column(name)
        amount = covered = 0
        for length, begin, end in steps:
            before, after = held[begin], held[end]
            if before is not None and after is not None:
                amount += (before + after) * length
                covered += length
        return _Sum(amount // 2000, covered)

    def risen(self, name: str, steps: Sequence[Step], unit_uj: int) -> _Sum:
        """What an energy counter rose by, in microjoules, over the steps that it can be right in."""
        held = self.column(name)
        amount = covered = resets = 0
        for length, begin, end in steps:
            before, after = held[begin], held[end]
            if before is None or after is None:
                continue
            rise = (after - before) * unit_uj
            if rise < 0 or rise > GREATEST_W * max(length, 1_000_000):
                resets += 1
                continue
            amount += rise
            covered += length
        return _Sum(amount, covered, resets)

    def counted(self, name: str, steps: Sequence[Step]) -> _Sum:
        """What a counter of things rose by, steps back left out."""
        held = self.column(name)
        amount = covered = 0
        for length, begin, end in steps:
            before, after = held[begin], held[end]
            if before is not None and after is not None and after >= before:
                amount += after - before
                covered += length
        return _Sum(amount, covered)


def _gpu_window(device: RunDevice, cut: _Cut, index: int, start: int, end: int) -> RunGpuWindow:
    steps, rows = cut.steps(start, end), cut.rows(start, end)
    busy = cut.summed("busy_percent", steps)
    return RunGpuWindow(
        run=device.run,
        gpu=device.gpu,
        index=index,
        from_us=start,
        to_us=end,
        covered_us=sum(length for length, _, _ in steps),
        samples=len(rows),
        busy_us=busy.amount // 100 if busy.covered_us else None,
        busy_covered_us=busy.covered_us,
        busy_max_percent=max(cut.known("busy_percent", rows), default=None),
        memory_used_min_bytes=min(cut.known("memory_used_bytes", rows), default=None),
        memory_used_max_bytes=max(cut.known("memory_used_bytes", rows), default=None),
        temperature_max_c=max(cut.known("temperature_c", rows), default=None),
        memory_temperature_max_c=max(cut.known("memory_temperature_c", rows), default=None),
        clock_sm_min_mhz=min(cut.known("clock_sm_mhz", rows), default=None),
        clock_sm_max_mhz=max(cut.known("clock_sm_mhz", rows), default=None),
        pcie_generation_min=min(cut.known("pcie_generation", rows), default=None),
        pcie_width_min=min(cut.known("pcie_width", rows), default=None),
        ecc_corrected=cut.counted("ecc_corrected", steps).told,
        ecc_uncorrected=cut.counted("ecc_uncorrected", steps).told,
        power_limit_mw=next(iter(cut.known("power_limit_mw", rows)[-1:]), None),
        **_used(cut, steps),
        **_slowed(device, cut, steps),
        **_energy(cut, steps, rows),
        **_traffic(cut, steps),
        **_held_by(cut, steps),
    )


def _energy(cut: _Cut, steps: Sequence[Step], rows: range) -> dict[str, Any]:
    """Energy by both roads: the counter, and power in the order of belief."""
    counter = cut.risen("energy_mj", steps, 1000)
    method: str | None = None
    power, most = _Sum(0, 0), None
    for name in ("average", "usage", "instant"):
        drawn = cut.drawn(f"power_{name}_mw", steps)
        if drawn.covered_us > power.covered_us:
            method, power = name, drawn
            most = max(cut.known(f"power_{name}_mw", rows), default=None)
    return {
        "power_method": method,
        "power_uj": power.told,
        "power_covered_us": power.covered_us,
        "power_max_mw": most,
        "counter_uj": counter.told,
        "counter_covered_us": counter.covered_us,
        "counter_resets": counter.resets,
    }


def _traffic(cut: _Cut, steps: Sequence[Step]) -> dict[str, Any]:
    """Bytes over the link: by the card's counters, else from readings of kilobytes a second."""
    sent, received = cut.counted("pcie_tx_bytes", steps), cut.counted("pcie_rx_bytes", steps)
    if not sent.covered_us:
        sent, received = (
            _Sum(found.amount * _KB // 1_000_000, found.covered_us)
            for found in (cut.summed(f"pcie_{way}_kb_s", steps) for way in ("tx", "rx"))
        )
    return {
        "pcie_tx_bytes": sent.told,
        "pcie_rx_bytes": received.told,
        "pcie_covered_us": min(sent.covered_us, received.covered_us),
    }


def _held_by(cut: _Cut, steps: Sequence[Step]) -> dict[str, Any]:
    """How long each reason held the clocks."""
    held = cut.column("clock_reasons")
    times: dict[str, int] = {}
    covered = 0
    for length, _, end in steps:
        bits = held[end]
        if bits is None:
            continue
        covered += length
        for name in reason_names(bits):
            times[name] = times.get(name, 0) + length
    reasons = tuple(ReasonTime(name=name, us=us) for name, us in sorted(times.items()))
    return {"reasons": reasons, "reasons_covered_us": covered}


def reason_names(bits: int) -> list[str]:
    """The reasons in a mask, by name; bits that are not known here are ``other``."""
    names = [name for bit, name in REASONS.items() if bits & bit]
    return [*names, "other"] if bits & ~_KNOWN_BITS else names


def _used(cut: _Cut, steps: Sequence[Step]) -> dict[str, int | None]:
    """From when to when it was seen working."""
    held = cut.column("busy_percent")
    used = [(begin, end) for _, begin, end in steps if (held[end] or 0) >= USED_PERCENT]
    return {
        "used_from_us": cut.times[used[0][0]] if used else None,
        "used_to_us": cut.times[used[-1][1]] if used else None,
    }


def _slowed(device: RunDevice, cut: _Cut, steps: Sequence[Step]) -> dict[str, int | None]:
    """Time under a fault, and the busy time lost to it: the share that the clock is below its best."""
    greatest = device.clock_sm_max_mhz
    busy, clocks = cut.column("busy_percent"), cut.column("clock_sm_mhz")
    reasons = cut.column("clock_reasons")
    lost = fault = 0
    known = False
    for length, _, end in steps:
        bits, load, clock = reasons[end], busy[end], clocks[end]
        known = known or bits is not None
        if not bits or not bits & _FAULT_BITS:
            continue
        fault += length
        if load is not None and clock is not None and greatest and clock < greatest:
            lost += load * length * (greatest - clock) // (100 * greatest)
    return {"fault_us": fault if known else None, "slowed_us": lost if known else None}


def gpu_window_fault(window: RunGpuWindow) -> str | None:
    """What cannot be in a window of a GPU; None where all is well."""
    length = window.to_us - window.from_us
    parts = {
        name: getattr(window, f"{name}_us")
        for name in ("covered", "busy_covered", "power_covered", "counter_covered")
    } | {"reasons": window.reasons_covered_us, "link": window.pcie_covered_us}
    for name, covered in parts.items():
        if not 0 <= covered <= length:
            return f"{name}: {covered} of {length} us"
    if window.busy_us is not None and window.busy_us > window.busy_covered_us:
        return f"busy for {window.busy_us} of {window.busy_covered_us} us covered"
    if (window.slowed_us or 0) > (window.busy_us or 0):
        return f"slowed for {window.slowed_us} of {window.busy_us} us busy"
    for name in window.__dataclass_fields__:
        value = getattr(window, name)
        if isinstance(value, int) and value < 0:
            return f"{name} is {value}, which nothing counts"
    return None
