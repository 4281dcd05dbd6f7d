"""How much of what was paid for became finished work, and what an hour or a unit of it cost for that.

Decides that only completed jobs, or units that somebody accepted, are good; that all other time is paid by them; and
that every part is named: a job that failed, ran out of time or was cancelled, time that was paid and not
used. The multiple, all GPU time over that of completed jobs, is an upper bound where only the end of a job is known:
one that was cancelled may have left a checkpoint that somebody uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import HOUR
from ouvrage.books.cluster_jobs import GOING, Attempt
from ouvrage.books.period import Period
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import WAITS
from ouvrage.pricing.campaign import Campaign

BOUND = "an upper bound: a job that failed or was cancelled may have left a checkpoint that somebody uses"
WORDS = {
    "completed": "jobs that completed",
    "failed": "jobs that failed",
    "timeout": "jobs that ran out of time",
    "cancelled": "jobs that were cancelled",
    "preempted": "jobs that were sent away for others, or begun anew",
    "going": "jobs that are not over",
    "idle": "paid for, and no job ran",
}
_SORT = {
    "COMPLETED": "completed", "CANCELLED": "cancelled", "REVOKED": "cancelled", "TIMEOUT": "timeout",
    "DEADLINE": "timeout", "PREEMPTED": "preempted", "REQUEUED": "preempted",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """GPU-hours by what became of them; ``good`` names the part that the others are paid for.

    ``unknown`` counts jobs whose GPU time is not known and therefore in no part; ``waited_us`` is the
    median time from submission to beginning, None where no export says it.
    """

    hours: Mapping[str, Fraction]
    good: str = "completed"
    jobs: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    waited_us: int | None = None

    @property
    def total(self) -> Fraction:
        """All GPU-hours that were paid for, as far as they are known."""
        return sum(self.hours.values(), Fraction(0))

    @property
    def share(self) -> Fraction | None:
        """Good hours of all; None where nothing is known."""
        return self.hours.get(self.good, Fraction(0)) / self.total if self.total else None

    @property
    def multiple(self) -> Fraction | None:
        """What one good hour costs, in prices of an hour; None where there is none."""
        good = self.hours.get(self.good, Fraction(0))
        return self.total / good if good else None


def sort_of(state: str) -> str:
    """What became of a job, by the state in which accounting has it."""
    if state in _SORT:
        return _SORT[state]
    return "going" if state in GOING else "failed"


def cluster_goodput(
    attempts: Iterable[Attempt], period: Period | None = None, paid_gpus: int | None = None
) -> Goodput:
    """The GPU time of a cluster's jobs, within a period; with ``paid_gpus`` also what was idle.

    Raises ``OuvrageError`` ``goodput/capacity`` where jobs had more GPUs than were paid for.
    """
    hours: dict[str, Fraction] = {}
    jobs: dict[str, int] = {}
    waits: list[int] = []
    unknown = 0
    for each in attempts:
        if period is not None and not meets(each, period):
            continue
        used = hours_in(each, period)
        unknown += used is None
        sort = sort_of(each.state)
        jobs[sort] = jobs.get(sort, 0) + 1
        hours[sort] = hours.get(sort, Fraction(0)) + (used or 0)
        if each.start_us is not None and each.submit_us is not None:
            waits.append(each.start_us - each.submit_us)
    if paid_gpus is not None and period is not None:
        hours["idle"] = _idle(
            Fraction(paid_gpus * period.us, HOUR), sum(hours.values(), Fraction(0))
        )
    return Goodput(
        hours=hours, jobs=jobs, unknown=unknown, waited_us=int(median(waits)) if waits else None
    )


def _idle(paid: Fraction, used: Fraction) -> Fraction:
    if used > paid:
        raise OuvrageError(
            "goodput/capacity",
            f"jobs had {float(used):.1f} GPU-hours, and {float(paid):.1f} were paid for",
            hint="--gpus is how many GPUs the cluster has; idle time is never less than nothing",
        )
    return paid - used


def meets(each: Attempt, period: Period) -> bool:
    """Whether an attempt has any time in a period; one that never began where it was known then."""
    begins = each.start_us if each.start_us is not None else each.known.valid_from
    ends = each.until_us if each.until_us is not None else begins + 1
    return begins < period.to_us and period.from_us < max(ends, begins + 1)


def hours_in(each: Attempt, period: Period | None) -> Fraction | None:
    """GPU-hours of an attempt within a period, in proportion where it reaches beyond; None where unknown."""
    if each.gpu_us is None:
        return None
    used = Fraction(each.gpu_us, HOUR)
    if period is None or not each.gpu_us or each.start_us is None or each.until_us is None:
        return used
    return used * period.overlap(each.start_us, each.until_us) / (each.until_us - each.start_us)


PARTS = {
    "compute": "the work itself, and what came after its last unit",
    "waits": "accepted work waited for data, storage, network or a GPU",
    "start-up": "start-up and warm-up of accepted work",
    "unexplained": "time of accepted work that no sample explains",
    "rejected": "finished units that were not accepted",
    "failed": "work that failed",
    "cancelled": "work that was cancelled",
    "unjudged": "work that nobody has judged",
    "held idle": "rented, and nothing ran",
    "other runs": "rented, and other runs ran",
}
STATED = ("reserved unused", "storage", "traffic", "energy", "tax")
"""Parts that no run shows: they are stated, or said to be unknown, never taken for nothing."""
_SAME = {"rejected": "rejected", "failed": "failed", "cancelled": "cancelled",
         "unjudged": "unjudged", "held": "held idle", "other": "other runs"}  # fmt: skip


def parts_of(campaign: Campaign) -> dict[str, Fraction]:
    """What was spent on a campaign by part; they add up to what is known to have been spent.

    Accepted work is split by where the time of its run went: its phases, then what it waited for.
    """
    parts = dict.fromkeys(PARTS, Fraction(0))
    for sort, cost in campaign.parts.items():
        if sort != "accepted":
            parts[_SAME[sort]] += cost
    for attempt in campaign.attempts:
        accepted = attempt.parts.get("accepted", Fraction(0))
        if not accepted:
            continue
        wall = attempt.view.wall_us
        for name, us in _accepted_us(attempt.view).items():
            parts[name] += accepted * us / wall
    return parts


def _accepted_us(view: RunView) -> dict[str, int]:
    reckoning = reckon(view)
    lengths = reckoning.phases.lengths()
    started = (lengths["startup"] or 0) + (lengths["warmup"] or 0)
    use = reckoning.steady.us if started else reckoning.whole.us
    waits = sum(use.get(key, 0) for key in WAITS)
    unexplained = use.get("unknown", 0)
    rest = reckoning.whole.total_us - started - waits - unexplained
    return {"start-up": started, "waits": waits, "unexplained": unexplained, "compute": rest}
