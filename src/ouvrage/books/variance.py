"""Why a margin differs from that of the period before: price, volume, mix, efficiency, fixed costs.

Decides how a difference is divided so that the parts add up to it, exactly. For each class of GPU on
each channel: hours sold, what an hour earned and what it took (fees, credits, power). Volume is more or
fewer hours at the old average contribution; mix the same hours on better or worse channels and GPUs;
price what an hour earned more; efficiency what an hour took less; fixed everything that does not depend
on hours sold. Where hours sold are not known there is no such division, and none is made up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.time import HOUR
from ouvrage.books.account import Account, money, profit_nano
from ouvrage.books.calendar import SOLD
from ouvrage.books.cells import Cell
from ouvrage.books.pnl import LEAST_COVERED, LEAST_SEEN, class_name

PARTS = ("price", "volume", "mix", "efficiency", "fixed")
PER_HOUR = ("cost.fee", "cost.failed", "cost.electricity", "cost.cooling")
"""Costs that depend on the hours sold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """The margin before and after in one currency, and its parts; ``parts`` None where ``why`` says."""

    before: Fraction
    after: Fraction
    parts: dict[str, Fraction] | None
    why: str | None = None


@dataclass(slots=True)
class Item:
    """Hours, revenue and cost of what is sold, of one class of GPU on one channel."""

    hours: Fraction = Fraction(0)
    revenue: Fraction = Fraction(0)
    cost: Fraction = Fraction(0)


def variance(before: Account, after: Account) -> Variance:
    """The difference of two accounts of one site, divided."""
    totals = [money(profit_nano(made.sums, lambda _: True)) for made in (before, after)]
    for made in (before, after):
        why = next((w for ds in made.unknown.values() for w in ds.values()), None) or blind(made)
        if why is not None:
            return Variance(before=totals[0], after=totals[1], parts=None, why=why)
    parts = divided(items_of(before), items_of(after), totals[0], totals[1])
    return Variance(before=totals[0], after=totals[1], parts=parts)


def divided(
    olds: dict[tuple[str, str], Item],
    news: dict[tuple[str, str], Item],
    before: Fraction,
    after: Fraction,
) -> dict[str, Fraction]:
    """The difference of two results, divided by what was sold in each; what is left of it is fixed."""
    parts = _parts(olds, news)
    fixed = [
        total - sum((item.revenue - item.cost for item in items.values()), Fraction(0))
        for total, items in ((before, olds), (after, news))
    ]
    parts["fixed"] = fixed[1] - fixed[0]
    return parts


def blind(made: Account, ours: Callable[[Cell], bool] = lambda _: True) -> str | None:
    """Why hours sold in some cells or what they earned are not known well enough, or None."""
    cells = [cell for cell in made.cells if ours(cell)]
    covered = [made.covered[d] for d in {cell.device for cell in cells} if d in made.covered]
    told, owned = (sum(both[i] for both in covered) for i in (0, 1))
    blank = sum(made.hours.get(cell, {}).get("unknown", 0) for cell in cells)
    if owned and (Fraction(told, owned) < LEAST_COVERED or Fraction(blank, owned) > 1 - LEAST_SEEN):
        return f"too little says what the devices did and earned in {made.grid.period.name}"
    return None


def items_of(
    made: Account,
    ours: Callable[[Cell], bool] = lambda _: True,
    costs: Collection[str] = PER_HOUR,
) -> dict[tuple[str, str], Item]:
    """What was sold in some cells, by class of GPU and channel; of its costs those that are wanted."""
    found: dict[tuple[str, str], Item] = {}

    def item(cell: Cell) -> Item:
        key = (class_name(made.grid.models.get(cell.device)), cell.channel or "")
        return found.setdefault(key, Item())

    for cell, states in made.hours.items():
        if cell.channel is not None and ours(cell):
            item(cell).hours += Fraction(sum(us for s, us in states.items() if s in SOLD), HOUR)
    for (line, cell), held in made.sums.items():
        if cell.channel is None or not ours(cell):
            continue
        if line.startswith("revenue."):
            item(cell).revenue += money(held.nano)
        elif line in PER_HOUR and line in costs:
            item(cell).cost += money(held.nano)
    return {key: each for key, each in found.items() if each.hours}


def _parts(
    olds: dict[tuple[str, str], Item], news: dict[tuple[str, str], Item]
) -> dict[str, Fraction]:
    zero, none = Fraction(0), Item()
    old_hours = sum((item.hours for item in olds.values()), zero)
    new_hours = sum((item.hours for item in news.values()), zero)
    old_left = sum((item.revenue - item.cost for item in olds.values()), zero)
    parts: dict[str, Fraction] = dict.fromkeys(PARTS, zero)
    if not old_hours:  # nothing to compare an hour with: all of it is volume
        parts["volume"] = sum((item.revenue - item.cost for item in news.values()), zero)
        return parts
    average = Item(
        hours=old_hours,
        revenue=sum((item.revenue for item in olds.values()), zero),
        cost=sum((item.cost for item in olds.values()), zero),
    )
    parts["volume"] = (new_hours - old_hours) * old_left / old_hours
    for key in sorted(olds.keys() | news.keys()):
        was, now = olds.get(key, none), news.get(key, none)
        usual = was if was.hours else average
        rate, took = usual.revenue / usual.hours, usual.cost / usual.hours
        parts["mix"] += (now.hours - was.hours * new_hours / old_hours) * (rate - took)
        parts["price"] += now.revenue - now.hours * rate
        parts["efficiency"] -= now.cost - now.hours * took
    return parts
