"""Which machine of a job holds its units up, if one does, and what speaks for a reason.

Decides when there is a straggler: one machine is slowest in more than half of the units that all machines
timed, by at least a fiftieth of a unit. Each time is taken by that machine's own clock, so clocks that
disagree do not matter. Machines that wait for each other in every step take equally long whoever is at
fault; then only the differences in what they waited for are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.metering.cause import NAMES
from ouvrage.metering.gpu_use import device_uses
from ouvrage.metering.jobs import Job, laps_of, leads_of
from ouvrage.metering.reckoning import neighbours_cpu, reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.statistics import median
from ouvrage.metering.timeuse import WAITS

LEAST_UNITS = 3
LEAST_SHARE = Fraction(1, 50)
LEAST_DIFFERENCE = Fraction(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """A machine's units among those that all machines timed: its median, how often it was slowest."""

    host: int
    median_us: Fraction
    slowest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A machine spent ``share`` of its time so, the others ``others`` at the median."""

    host: int
    what: str
    share: Fraction
    others: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggling:
    """``host`` is the straggler (None: there is none, and ``why``); ``later_us`` what it costs a unit.

    ``units`` were timed on every machine that marks them.
    """

    host: int | None
    why: str
    units: int
    later_us: Fraction | None
    paces: tuple[Pace, ...]
    differences: tuple[Difference, ...]


def straggling(job: Job) -> Straggling:
    """Whether a machine of the job is slower than the others, by their units."""
    leads = leads_of(job)
    differences = _differences(job)
    if len(job.hosts) < 2:
        return _none("none: the job is on one machine", 0, (), differences)
    if len(leads) < 2:
        why = "not known: fewer than two machines mark numbered units; let every rank print its epochs"
        return _none(why, 0, (), differences)
    laps = {index: laps_of(run) for index, run in leads.items()}
    shared = sorted(set.intersection(*(set(each) for each in laps.values())))
    if len(shared) < LEAST_UNITS:
        return _none(
            f"not known: {len(shared)} units were timed on every machine",
            len(shared),
            (),
            differences,
        )
    paces = _paces(laps, shared)
    worst = max(paces, key=lambda pace: (pace.slowest, pace.median_us, -pace.host))
    later = median([_lead_over(laps, worst.host, n) for n in shared])
    if worst.slowest * 2 <= len(shared) or later < LEAST_SHARE * worst.median_us:
        why = "none: in most units no machine is slower by a fiftieth"
        return _none(why, len(shared), paces, differences)
    return Straggling(
        host=worst.host,
        why=f"slowest in {worst.slowest} of {len(shared)} units",
        units=len(shared),
        later_us=later,
        paces=paces,
        differences=differences,
    )


def _none(
    why: str, units: int, paces: tuple[Pace, ...], differences: tuple[Difference, ...]
) -> Straggling:
    return Straggling(
        host=None, why=why, units=units, later_us=None, paces=paces, differences=differences
    )


def _paces(laps: Mapping[int, Mapping[int, int]], shared: Sequence[int]) -> tuple[Pace, ...]:
    slowest = Counter(max(laps, key=lambda index: (laps[index][n], -index)) for n in shared)
    return tuple(
        Pace(
            host=index,
            median_us=median([Fraction(each[n]) for n in shared]),
            slowest=slowest[index],
        )
        for index, each in sorted(laps.items())
    )


def _lead_over(laps: Mapping[int, Mapping[int, int]], host: int, n: int) -> Fraction:
    """By how much a machine was later than the slowest other one in a unit; negative where it was not."""
    return Fraction(laps[host][n] - max(each[n] for index, each in laps.items() if index != host))


def _differences(job: Job) -> tuple[Difference, ...]:
    """What one machine did for longer than the others did, by at least a tenth of the time."""
    if len(job.hosts) < 2:
        return ()
    shares = [_shares(host.runs) for host in job.hosts]
    found: list[Difference] = []
    for index, mine in enumerate(shares):
        for what, share in mine.items():
            others = [each.get(what, Fraction(0)) for i, each in enumerate(shares) if i != index]
            usual = median(others)
            if share - usual >= LEAST_DIFFERENCE and share > max(others):
                found.append(Difference(host=index, what=what, share=share, others=usual))
    return tuple(
        sorted(found, key=lambda each: (-(each.share - each.others), each.host, each.what))
    )


def _shares(runs: Sequence[RunView]) -> dict[str, Fraction]:
    """Shares of a machine's time by what was waited for, of all runs on it together."""
    total = sum(reckon(run).steady.total_us for run in runs)
    found = {
        NAMES[key]: Fraction(sum(reckon(run).steady.us[key] for run in runs), total)
        for key in WAITS
        if total
    }
    uses = [use for run in runs for use in device_uses(run, 0, run.wall_us)]
    held = [use.throttled for use in uses if use.throttled is not None]
    if held:
        found["clocks of its GPUs held down by a fault"] = max(held)
    others = [share for run in runs if (share := neighbours_cpu(run)) is not None]
    if others and len(runs) == 1:
        found["other programs on its CPU"] = max(others)
    return found
