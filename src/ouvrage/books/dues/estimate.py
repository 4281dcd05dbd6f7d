"""What a job will probably cost before it is submitted, from what earlier runs of the same job took.

Decides that only runs that finished are counted, those on the same configuration before any other, and that a
run's cost is its time under the offer's plan, by the calculation that makes the bill. Where there are none the
cost is unknown: it is never zero, and never guessed from the price alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import SECOND
from ouvrage.books.dues.lease import Ended, Lease, amount_text, cost_until
from ouvrage.model.selling import OwnOffer


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """An attempt that ended well: how long its lease was held, what it finished, on which offer.

    ``finished`` is None where nobody counted units.
    """

    attempt: str
    name: str
    offer: OwnOffer
    us: int
    unit: str | None
    finished: int | None
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle of some values and how far they reach."""

    median: Fraction
    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, values: Sequence[int | Fraction]) -> Spread:
        """The spread of at least one value, exact."""
        exact = [Fraction(value) for value in values]
        return cls(median=Fraction(median(exact)), low=min(exact), high=max(exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is to be expected of a job on an offer; ``cost`` in nano-units, ``us`` of its lease.

    All None where ``count`` is 0, and then ``why`` says so. ``per_unit`` is None where no run counted its ``unit``.
    ``grade`` is the weakest of the runs' and the listed price; ``same`` says whether they ran on this configuration.
    """

    name: str
    offer: str
    currency: str
    count: int
    same: bool
    us: Spread | None
    cost: Spread | None
    unit: str | None
    per_unit: Spread | None
    time_grade: Grade | None
    grade: Grade | None
    why: str

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` and the API print of it."""
        return {
            "name": self.name, "offer": self.offer, "currency": self.currency, "runs": self.count,
            "same_configuration": self.same, "seconds": _json(self.us, lambda v: decimal_text(v / SECOND)),
            "cost": _json(self.cost, _amount), "unit": self.unit, "cost_per_unit": _json(self.per_unit, _amount),
            "time_grade": self.time_grade.word if self.time_grade is not None else None,
            "grade": self.grade.word if self.grade is not None else None, "why": self.why,
        }  # fmt: skip


def _amount(value: Fraction) -> str:
    return amount_text(round(value))


def _json(spread: Spread | None, text: Callable[[Fraction], str]) -> dict[str, str] | None:
    if spread is None:
        return None
    return {"median": text(spread.median), "low": text(spread.low), "high": text(spread.high)}


def estimate(
    name: str,
    unit: str | None,
    offer: OwnOffer,
    runs: Sequence[EarlierRun],
    at_us: int,
    limit_us: int | None = None,
) -> Estimate:
    """What a job of this name would cost on an offer from ``at_us`` on, by the tenant's ``runs``.

    ``limit_us`` is the job's time limit, which no attempt outlasts.
    """
    named = [run for run in runs if run.name == name and (unit is None or run.unit in (unit, None))]
    same = [run for run in named if _configuration(run.offer) == _configuration(offer)]
    used = same or named
    if not used:
        why = f"no run of {name} has finished yet, so what it costs is not known"
        return Estimate(
            name=name, offer=offer.name, currency=offer.currency, count=0, same=False, us=None, cost=None,
            unit=unit, per_unit=None, time_grade=None, grade=None, why=why,
        )  # fmt: skip
    times = [run.us if limit_us is None else min(run.us, limit_us) for run in used]
    costs = [cost_of(offer, us, at_us) for us in times]
    counted = [(c, r) for c, r in zip(costs, used, strict=True) if r.finished]
    time_grade = max(run.grade for run in used)
    weakest = max(time_grade, Grade.LISTED if same else Grade.ASSUMED)
    where = (
        "on this configuration" if same else "on other configurations, so that the time may differ"
    )
    return Estimate(
        name=name, offer=offer.name, currency=offer.currency, count=len(used), same=bool(same),
        us=Spread.of(times), cost=Spread.of(costs), unit=unit or next((r.unit for _, r in counted), None),
        per_unit=Spread.of([Fraction(c, r.finished or 1) for c, r in counted]) if counted else None,
        time_grade=time_grade, grade=weakest,
        why=f"from {len(used)} finished {'run' if len(used) == 1 else 'runs'} of {name} {where}",
    )  # fmt: skip


def cost_of(offer: OwnOffer, us: int, at_us: int) -> int:
    """What a lease of this length costs under an offer if it begins at ``at_us``, in nano-units."""
    lease = Lease(
        lease="estimate", org="", project="", kind="job", attempt=None, job=None, node="", devices=(),
        offer=offer, from_us=at_us, until_us=None,
    )  # fmt: skip
    ended = Ended(at_us=at_us + us, billable_us=us, outcome=None)
    return cost_until(replace(lease, ended=ended), at_us + us)


def _configuration(offer: OwnOffer) -> tuple[str | None, int, int]:
    return (offer.gpu, offer.gpus, offer.cpus)
