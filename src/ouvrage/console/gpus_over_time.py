"""GPUs over time: their mean load and their power together, as timelines beside the cores'.

Decides how many cards become one line: their mean load, and the sum of their power, where every
card of the run has spoken; where one is silent nothing is drawn, since a mean of the others would
pass for the mean of all. From raw readings where they are kept, from windows where not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ouvrage.base.time import SECOND
from ouvrage.console.over_time import fewer
from ouvrage.console.pictures import Step, Timeline
from ouvrage.metering.gpus import GAP_PERIODS, GpuTrack
from ouvrage.metering.run_view import RunView

POWER = ("power_average_mw", "power_usage_mw", "power_instant_mw")


def gpu_timelines(
    view: RunView, tracks: Sequence[GpuTrack], cores: Timeline
) -> Iterator[tuple[str, Timeline]]:
    """Load and power with their headings; ``cores`` lends its phases and units."""
    chosen = [device for device in view.devices if device.chosen]
    numbers = {device.gpu for device in chosen}
    held = [track for track in tracks if track.device.gpu in numbers]
    whose = "GPU" if len(chosen) == 1 else f"{len(chosen)} GPUs"
    limits = [device.power_limit_mw for device in chosen]
    watts = sum(limit or 0 for limit in limits) / 1000
    rows = (
        (f"Load of the {whose} in percent", "percent of load", ("busy_percent",), 1.0, 100.0),
        (f"Power of the {whose} in watts", "watts drawn", POWER, 1000.0, watts),
    )
    for heading, what, names, scale, limit in rows:
        whole = scale == 1.0
        steps = list(_sampled(held, names, scale, whole, view.started.period_us))
        steps = steps or list(_windowed(view, numbers, whole))
        if any(step.cores is not None for step in steps):
            line = replace(cores, cores_allowed=limit, steps=tuple(fewer(steps)), what=what)
            yield heading, line


def _sampled(
    tracks: Sequence[GpuTrack], names: Sequence[str], scale: float, mean: bool, period_us: int
) -> Iterator[Step]:
    if not tracks:
        return
    leading = tracks[0].columns.times
    columns = [_first_told(track, names) for track in tracks]
    for row, (begin, end) in enumerate(pairwise(leading), 1):
        values = [column.get(end) for column in columns]
        known = [value for value in values if value is not None]
        told = len(known) == len(values) and end - begin <= GAP_PERIODS * period_us
        if end > begin and row:
            total = sum(known) / scale / (len(known) if mean and known else 1)
            yield Step(
                from_s=begin / SECOND, to_s=end / SECOND, cores=float(total) if told else None
            )


def _first_told(track: GpuTrack, names: Sequence[str]) -> dict[int, int]:
    """The first of these columns that says anything, by moment."""
    for name in names:
        held = track.columns.values.get(name)
        if held:
            pairs = zip(track.columns.times, held, strict=True)
            return {t: value for t, value in pairs if value is not None}
    return {}


def _windowed(view: RunView, numbers: set[int], mean: bool) -> Iterator[Step]:
    by_edges: dict[tuple[int, int], list[float | None]] = {}
    for window in view.gpu_windows:
        if window.gpu in numbers:
            amount, covered = (
                (window.busy_us, window.busy_covered_us)
                if mean
                else (window.power_uj, window.power_covered_us)
            )
            value = None if amount is None or not covered else amount / covered
            by_edges.setdefault((window.from_us, window.to_us), []).append(value)
    for (begin, end), values in sorted(by_edges.items()):
        known = [value for value in values if value is not None]
        told = len(known) == len(numbers)
        total = 100 * sum(known) / len(known) if mean and known else sum(known)
        yield Step(from_s=begin / SECOND, to_s=end / SECOND, cores=total if told else None)
