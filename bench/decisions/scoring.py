"""One simulated owner decided upon, and set against the truth of its world.

Decides what counts as true: the figures that the world's parameters make one expect of the very days
looked at, and the course that is worth the most on them, by the same limits of the owner's, with the
world's own demand in place of what the rules assume of it. Nothing of the truth reaches the decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.books.record import OwnerRecord, owner_record
from ouvrage.books.scope import Scope
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.planning import average_day as a
from ouvrage.planning.average_day import Average
from ouvrage.planning.decide import (
    HOLD,
    MONTH_DAYS,
    REPRICE,
    Course,
    Decision,
    Weighed,
    best,
    decide,
)
from ouvrage.planning.decision_case import Asked, case_of
from ouvrage.planning.intervals import Draws, Range
from ouvrage.planning.rules import Numbers, rules_of
from ouvrage.planning.simulated_owner import NODE, SITE, simulated_owner
from ouvrage.planning.simulated_world import (
    DAYS,
    MEMORY_DAYS,
    World,
    start_of,
    top_tenant,
    truth,
    world_of,
)

FIGURES = ("margin_per_day", "utilisation", "rate", "keep_per_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was decided for one seed, what was best, and each figure's interval with its truth.

    ``lost`` is what the decision costs a day against the best one, in EUR, by the truth, and
    ``lost_by_holding`` what to hold on would.
    """

    seed: int
    decided: str
    best: str
    lost: float
    lost_by_holding: float
    revenue: float
    figures: Mapping[str, tuple[Range, float]]

    def holds(self, figure: str) -> bool:
        """Whether the interval contains the truth."""
        found, true = self.figures[figure]
        return found.low <= true <= found.high


def record_of(world: World, seed: int, window: int) -> OwnerRecord:
    """The record of the end of a simulated year, as a ledger would give it."""
    first = DAYS - window - MEMORY_DAYS
    facts = (
        fact_of(
            each.value, source="simulated", id=each.id, subject=each.subject,
            valid_from=each.valid_from, valid_to=each.valid_to, grade=Grade.SIMULATED,
        )
        for each in simulated_owner(world, seed, first=first)
    )  # fmt: skip
    return owner_record(
        Recorded(seq=seq, recorded_at=0, fact=fact) for seq, fact in enumerate(facts, 1)
    )


def outcome(seed: int, window: int) -> Outcome:
    """Decide upon the owner of a seed by the last days of its year, and score it."""
    world, rules = world_of(seed), rules_of({"window_days": window})
    asked = case_of(record_of(world, seed, window), SITE, Scope(node=NODE), start_of(DAYS), rules)
    found = decide(asked.case, rules, changes=False)
    known = Known(world=world, window=window, row=truth(world, DAYS - window, DAYS))
    row = known.row
    courses = true_courses(known, asked, rules)
    worth = {course.action: course.gain.value for course in courses} | {HOLD: 0.0}
    right = best(courses)
    decided = found.action or HOLD
    taken = worth[decided]
    if found.course is not None and found.course.step is not None:
        taken = known.repriced(found.course.step)
    return Outcome(
        seed=seed,
        decided=decided,
        best=right,
        lost=worth[right] - taken,
        lost_by_holding=worth[right],
        revenue=row.revenue,
        figures=_figures(found, row, float(world.tax), rules),
    )


def _figures(
    found: Decision, row: Average, tax: float, rules: Numbers
) -> dict[str, tuple[Range, float]]:
    true = {
        "margin_per_day": a.margin(row, tax),
        "utilisation": a.utilisation(row),
        "rate": a.rate(row),
        "keep_per_day": a.keep(row, rules),
    }
    return {name: (found.figures[name], true[name]) for name in FIGURES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is true of the last days of a world's year: what to expect of a day, and by another price."""

    world: World
    window: int
    row: Average

    def repriced(self, step: float) -> float:
        """What a price changed by a share would have added a day to what running it leaves."""
        share = Fraction(step).limit_denominator(1000)
        other = truth(replace(self.world, step=share), DAYS - self.window, DAYS)
        return _left(other) - _left(self.row)


def _left(row: Average) -> float:
    return row.revenue - row.fees - row.power


def true_courses(known: Known, asked: Asked, rules: Numbers) -> list[Course]:
    """Every course, weighed by what is true: the expected day, and demand as the world has it."""
    world, row = known.world, known.row
    support = world.support_per_day * world.support_min / 60 * MONTH_DAYS
    share = top_tenant(world, DAYS - known.window, DAYS)
    case = replace(asked.case, support_h=support)
    weighed = Weighed(case=case, rules=rules, top=("the largest", share))
    courses = weighed.courses(Draws(mean=row, drawn=[row, row], widen=1.0))
    return [_by_demand(known, course, rules) for course in courses]


def _by_demand(known: Known, course: Course, rules: Numbers) -> Course:
    """A repricing to the best of the prices tried, by the world's own demand; other courses as they are."""
    if course.action != REPRICE:
        return course
    gains = {step: known.repriced(step * rules["price_step"]) for step in (-2, -1, 1, 2)}
    step = max(gains, key=lambda each: gains[each])
    gain = Range(value=gains[step], low=gains[step], high=gains[step])
    worth = course.reasons[0]
    reason = replace(worth, value=gain, holds=gain.value > worth.limit)
    return replace(course, gain=gain, reasons=(reason,), step=step * rules["price_step"])


def outcomes(seeds: range, window: int, workers: int) -> list[Outcome]:
    """The outcome of each seed, as many at a time as there are workers."""
    if workers < 2:
        return [outcome(seed, window) for seed in seeds]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(outcome, seeds, [window] * len(seeds), chunksize=4))


def coverage(scored: Sequence[Outcome], figure: str) -> tuple[int, int]:
    """How many intervals of a figure contain the truth, of how many."""
    return sum(each.holds(figure) for each in scored), len(scored)


def confusion(scored: Sequence[Outcome]) -> Counter[tuple[str, str]]:
    """How often each course was best and each decided."""
    return Counter((each.best, each.decided) for each in scored)
