"""What an accepted result cost in all: every attempt, every sweep, every hour of rent behind it.

Decides how attempts and rentals are added up without counting anything twice:

- time on a rented machine is paid by the rental: a run there costs its share of the rental's price,
  and its own price counts only for the part of it outside any rental;
- a rental that belongs to the campaign is paid whole: what no attempt worked is ``held`` (nothing
  ran) or ``other`` (runs that are no attempts of the campaign, or not over);
- what an attempt cost is split by what became of its work; ``unjudged`` until somebody says.

The parts add up to the total, exactly. Where the cost of an attempt is not known, neither is the
total; what is known is given beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, weakest
from ouvrage.base.ids import code_of
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.units import Units
from ouvrage.pricing.accepted import SORTS as WORK_SORTS
from ouvrage.pricing.accepted import countable, split_us
from ouvrage.pricing.rental_cost import RentalAccount

SORTS: tuple[str, ...] = (*WORK_SORTS, "unjudged", "held", "other")
NO_COST = "it has no price and was not on a rented machine all the time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run: what it cost (None: not known) and that by what became of its work."""

    view: RunView
    code: str
    units: Units
    cost: Fraction | None
    parts: Mapping[str, Fraction]
    rentals: tuple[str, ...]

    @property
    def judged(self) -> bool:
        """Whether somebody said how much of its work is accepted, in units that are counted."""
        return split_us(self.view, reckon(self.view)) is not None

    @property
    def accepted(self) -> int:
        """Accepted units; none before somebody says so."""
        said = self.view.acceptance
        return said.units if said and self.judged else 0

    @property
    def countable(self) -> int:
        """Units that could be accepted."""
        return countable(self.units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """A rental that the campaign pays for, and what of it no attempt worked."""

    account: RentalAccount
    held: Fraction
    other: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """All that was spent on one campaign, as known at ``as_of``.

    ``accounts`` are all rentals that an attempt stood in, those of others included.
    """

    name: str
    as_of: int
    currency: str
    attempts: tuple[Attempt, ...]
    rented: tuple[Rented, ...]
    accounts: tuple[RentalAccount, ...]
    grade: Grade

    @property
    def unknown(self) -> tuple[Attempt, ...]:
        """The attempts whose cost is not known."""
        return tuple(each for each in self.attempts if each.cost is None)

    @property
    def parts(self) -> Mapping[str, Fraction]:
        """What is known to have been spent, by what became of it."""
        sums = dict.fromkeys(SORTS, Fraction(0))
        for attempt in self.attempts:
            for sort, cost in attempt.parts.items():
                sums[sort] += cost
        for rented in self.rented:
            sums["held"] += rented.held
            sums["other"] += rented.other
        return sums

    @property
    def known_cost(self) -> Fraction:
        """What is known to have been spent."""
        return sum(self.parts.values(), Fraction(0))

    @property
    def unit(self) -> str | None:
        """The one unit of all accepted work; None where there are several, or nothing accepted."""
        names = {each.units.name for each in self.attempts if each.accepted}
        return names.pop() if len(names) == 1 else None

    @property
    def units_accepted(self) -> int:
        """Accepted units of all attempts, whatever they are called."""
        return sum(each.accepted for each in self.attempts)

    @property
    def results_accepted(self) -> int:
        """Attempts of which something was accepted."""
        return sum(each.accepted > 0 for each in self.attempts)


def campaign_of(
    name: str, runs: Sequence[RunView], accounts: Sequence[RentalAccount], as_of: int
) -> Campaign:
    """Add up a campaign; ``accounts`` are its own rentals and those that its runs stood in.

    Raises ``OuvrageError`` ``campaign/currency`` where there is more than one currency.
    """
    ours = {run.run for run in runs}
    codes = _codes([run.run for run in runs])
    rented = tuple(_rented(each, ours) for each in accounts if name in each.view.campaigns)
    used = [each for each in accounts if ours & each.time.shares.keys()]
    attempts = tuple(_attempt(run, codes[run.run], used) for run in runs)
    grades = [*(run.grade for run in runs), *(each.view.grade for each in accounts)]
    return Campaign(
        name=name,
        as_of=as_of,
        currency=_currency(runs, accounts),
        attempts=attempts,
        rented=rented,
        accounts=tuple(used),
        grade=weakest([Grade.ASSUMED, *grades]),
    )


def _codes(runs: Sequence[str]) -> dict[str, str]:
    """Short codes, as long as it takes to tell these runs apart."""
    length = 4
    while len({code_of(run, length) for run in runs}) < len(set(runs)) and length < 12:
        length += 2
    return {run: code_of(run, length) for run in runs}


def _currency(runs: Iterable[RunView], accounts: Iterable[RentalAccount]) -> str:
    prices = [run.started.price for run in runs if run.started.price]
    prices += [account.view.started.price for account in accounts]
    found = sorted({price.currency for price in prices})
    if len(found) > 1:
        raise OuvrageError(
            "campaign/currency",
            f"the campaign was paid for in several currencies: {', '.join(found)}",
            hint="no exchange rate is assumed; keep a campaign for each",
        )
    return found[0] if found else "1"


def _rented(account: RentalAccount, ours: set[str]) -> Rented:
    shares = account.time.shares
    others = sum((share for run, share in shares.items() if run not in ours), Fraction(0))
    return Rented(
        account=account,
        held=account.cost_of(account.time.held_us),
        other=account.cost_of(others),
    )


def _attempt(view: RunView, code: str, accounts: Sequence[RentalAccount]) -> Attempt:
    reckoning = reckon(view)
    cost = _cost(view, accounts)
    return Attempt(
        view=view,
        code=code,
        units=reckoning.units,
        cost=cost,
        parts={} if cost is None else _parts(cost, view),
        rentals=tuple(each.view.code for each in accounts if view.run in each.time.shares),
    )


def _cost(view: RunView, accounts: Sequence[RentalAccount]) -> Fraction | None:
    """Its share of the rentals it stood in, and its own price for the time outside them."""
    there = [each for each in accounts if view.run in each.time.shares]
    inside = sum((each.cost_of(each.time.shares[view.run]) for each in there), Fraction(0))
    outside = view.wall_us - covered_us(view, there)
    if not outside:
        return inside
    price = view.started.price
    return None if price is None else inside + price.cost_of(outside)


def covered_us(view: RunView, accounts: Iterable[RentalAccount]) -> int:
    """How much of the run lies in any of these rentals."""
    begin, end = view.started.started_us, view.started.started_us + view.wall_us
    spans = sorted((max(begin, a.time.from_us), min(end, a.time.to_us)) for a in accounts)
    covered, reached = 0, begin
    for start, stop in spans:
        covered += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return covered


def _parts(cost: Fraction, view: RunView) -> dict[str, Fraction]:
    split = split_us(view, reckon(view))
    if split is None or not view.wall_us:
        return {"unjudged": cost}
    return {sort: cost * us / view.wall_us for sort, us in split.items() if us}
