"""A run over time, from its raw samples where they are kept and from its windows where not.

Decides how many cores worked between two readings. Where a reading is missing, or the next came
late, nothing is known: that becomes a gap in the picture and not a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ouvrage.base.time import SECOND
from ouvrage.console.pictures import Bar, Step, Timeline
from ouvrage.metering.phases import Phases
from ouvrage.metering.run_view import RunView
from ouvrage.metering.units import Units
from ouvrage.metering.windows import GAP_PERIODS, Columns
from ouvrage.model.runs import Host

MOST_STEPS = 800
"""More steps than this are finer than the picture's pixels."""


def timeline_of(view: RunView, columns: Columns | None, units: Units, phases: Phases) -> Timeline:
    """The timeline of a run; without ``columns`` (its raw samples) from its windows."""
    steps = list(_sampled(columns, view.started.period_us)) if columns else []
    return Timeline(
        wall_s=view.wall_us / SECOND,
        cores_allowed=cores_allowed(view.started.host),
        steps=tuple(fewer(steps or list(_windowed(view)))),
        phases=tuple(_bands(phases)),
        bars=tuple(bars_of(units, phases.warmup_laps)),
        unit=units.name,
    )


def _bands(phases: Phases) -> Iterator[tuple[str, float, float]]:
    ends = (0, phases.startup_end, phases.warmup_end, phases.steady_end, phases.wall_us)
    for words, (begin, end) in zip(
        ("start-up", "warm-up", "steady", "rest"), pairwise(ends), strict=True
    ):
        if begin is not None and end is not None and end > begin:
            yield words, begin / SECOND, end / SECOND


def cores_allowed(host: Host) -> float:
    """How many cores the run could keep busy: its affinity or its quota, whichever is less."""
    if host.cpu_quota_ppm is None:
        return float(host.cpus_allowed)
    return min(float(host.cpus_allowed), host.cpu_quota_ppm / 1_000_000)


def bars_of(units: Units, warmup_laps: int) -> list[Bar]:
    """The timed units as bars, numbered as they finished; the first few were warm-up."""
    finished = 0 if units.first_timed or not units.untimed else 1
    bars = []
    for index, lap in enumerate(units.laps):
        finished += lap.count
        bars.append(
            Bar(
                n=finished,
                end_s=lap.to_us / SECOND,
                seconds=float(lap.per_unit_us) / SECOND,
                warm_up=index < warmup_laps,
            )
        )
    return bars


def _sampled(columns: Columns, period_us: int) -> Iterator[Step]:
    last = len(columns.times) - 1
    if last < 1:
        return
    users = columns.rows("cpu_user_us", 0, last)
    systems = columns.rows("cpu_system_us", 0, last)
    readings = zip(columns.times, users, systems, strict=True)
    for (begin, user, system), (end, later_user, later_system) in pairwise(readings):
        if end <= begin:
            continue
        cores = None
        told = None not in (user, system, later_user, later_system)
        if told and end - begin <= GAP_PERIODS * period_us:
            worked = (later_user or 0) + (later_system or 0) - (user or 0) - (system or 0)
            cores = worked / (end - begin) if worked >= 0 else None
        yield Step(from_s=begin / SECOND, to_s=end / SECOND, cores=cores)


def _windowed(view: RunView) -> Iterator[Step]:
    for window in view.windows:
        cores = None
        if window.cpu_user_us is not None and window.cpu_system_us is not None:
            cores = (window.cpu_user_us + window.cpu_system_us) / (window.to_us - window.from_us)
        yield Step(from_s=window.from_us / SECOND, to_s=window.to_us / SECOND, cores=cores)


def fewer(steps: Sequence[Step]) -> Iterator[Step]:
    """Neighbours merged until the picture can show them; a gap never disappears in a mean."""
    size = -(-len(steps) // MOST_STEPS) or 1
    for i in range(0, len(steps), size):
        group = steps[i : i + size]
        if any(step.cores is None for step in group):
            yield from group
            continue
        begin, end = group[0].from_s, group[-1].to_s
        worked = sum((step.cores or 0) * (step.to_s - step.from_s) for step in group)
        yield Step(from_s=begin, to_s=end, cores=worked / (end - begin))
