"""What an accepted unit cost, and what was paid for work that nobody accepted.

Decides how the cost of a run is split by what became of its work. Nothing is split before somebody
has judged the run: its exit code says how the command ended, not whether the work is good. The
parts add up to the cost of the run:

- the time after the last unit whose end is known, in a run that did not complete, is ``failed`` or
  ``cancelled``;
- all other time is shared evenly among the finished units, start-up included: those accepted are
  ``accepted``, the others ``rejected``;
- where no unit was counted, or the command itself is the unit, what is not accepted is
  ``rejected``, ``failed`` or ``cancelled`` as a whole, by how the command ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.text import safe
from ouvrage.evidence.figures import Figure, known, unknown
from ouvrage.metering.judgement import Acceptance
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView
from ouvrage.metering.units import Units
from ouvrage.pricing.words import counted

SORTS: tuple[str, ...] = ("accepted", "rejected", "failed", "cancelled")
NOT_JUDGED = "nobody has judged the work; ouvrage accept RUN --units N --why TEXT"
NO_PRICE = "no price was given"
SPLIT_RULE = (
    "the time after the last finished unit of a run that did not complete is failed or cancelled; "
    "the rest is shared evenly among the units, accepted and rejected"
)
_ENDED = {
    "completed": "rejected",
    "failed": "failed",
    "lost": "failed",
    "interrupted": "cancelled",
}


def countable(units: Units) -> int:
    """How many units could be accepted: those finished, or the command itself however it ended."""
    return max(units.finished, 1) if units.is_command else units.finished


def acceptance_fault(acceptance: Acceptance, units: Units) -> str | None:
    """Why an acceptance does not fit what the meter counts, or None."""
    if acceptance.unit != units.name:
        said = counted(acceptance.units, acceptance.unit)
        return f"{said} accepted, but the unit that the meter counts is {safe(units.name)}"
    if not 0 <= acceptance.units <= countable(units):
        return f"{acceptance.units} accepted of {counted(countable(units), units.name)}"
    return None


def split_us(view: RunView, reckoning: Reckoning) -> Mapping[str, Fraction] | None:
    """The run's microseconds by what became of its work, exactly; None where nobody has judged it."""
    said, units = view.acceptance, reckoning.units
    if said is None or acceptance_fault(said, units) is not None:
        return None
    parts = dict.fromkeys(SORTS, Fraction(0))
    ended, whole = _ENDED[view.outcome], units.is_command or not units.finished
    tail = 0 if whole or ended == "rejected" else _tail_us(reckoning)
    body, many = Fraction(view.wall_us - tail), countable(units)
    parts["accepted"] = body * said.units / many if many else Fraction(0)
    parts[ended if whole else "rejected"] += body - parts["accepted"]
    parts[ended] += tail
    return parts


def _tail_us(reckoning: Reckoning) -> int:
    """Time after the last unit whose end is known; none where no end is known."""
    return reckoning.phases.lengths()["rest"] or 0


def accepted_figures(view: RunView, reckoning: Reckoning) -> Iterable[Figure]:
    """The figures about acceptance; all unknown until somebody has judged the run."""
    said = view.acceptance
    fault = NOT_JUDGED if said is None else acceptance_fault(said, reckoning.units)
    yield from _unit_figures(view, reckoning, fault)
    price = view.started.price
    why = fault or (NO_PRICE if price is None else None)
    currency = price.currency if price else "1"
    method = f"price x the run's time by what became of its work; {SPLIT_RULE}"
    split = split_us(view, reckoning)
    for sort in SORTS:
        path = f"cost.{sort}"
        if why is not None or price is None or split is None:
            yield unknown(path, currency, method, why or NOT_JUDGED)
        else:
            inputs = ("price.amount", "wall_s", "units", "units_accepted", "phases.rest_s")
            cost = price.cost_of(split[sort])
            yield known(path, cost, currency, _assumed(view), method, inputs=inputs)
    yield _per_accepted(view, why)


def _unit_figures(view: RunView, reckoning: Reckoning, fault: str | None) -> Iterable[Figure]:
    said, units = view.acceptance, reckoning.units
    words = (
        "finished units that were accepted",
        "finished units that were judged and not accepted",
    )
    if said is None or fault is not None:
        for name, method in zip(("units_accepted", "units_rejected"), words, strict=True):
            yield unknown(name, units.name, method, fault or NOT_JUDGED)
        return
    grade = weakest((said.grade, view.grade))
    yield known(
        "units_accepted",
        said.units,
        units.name,
        said.grade,
        f"{words[0]}: {safe(said.why)}",
        facts=(said.key,),
    )
    yield known(
        "units_rejected",
        countable(units) - said.units,
        units.name,
        grade,
        words[1],
        inputs=("units", "units_accepted"),
    )


def _per_accepted(view: RunView, why: str | None) -> Figure:
    path, method = "cost_per_accepted_unit", "cost of the whole run / accepted units"
    price, said = view.started.price, view.acceptance
    if why is not None or price is None or said is None:
        return unknown(path, price.currency if price else "1", method, why or NOT_JUDGED)
    inputs = ("cost.total", "units_accepted")
    if not said.units:
        return unknown(path, price.currency, method, "no unit was accepted", inputs=inputs)
    cost = price.cost_of(view.wall_us) / said.units
    return known(path, cost, price.currency, _assumed(view), method, inputs=inputs)


def _assumed(view: RunView) -> Grade:
    """A price is typed by its user, so what is made with it is assumed at best."""
    return weakest((Grade.ASSUMED, view.grade))
