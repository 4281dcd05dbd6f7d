"""Why a margin differs from that of the period before: price, volume, mix, efficiency, fixed costs.

Decides how a difference is divided so that the parts add up to it, exactly. For each class of GPU on
each channel: hours sold, what an hour earned and what it took (fees, credits, power). Volume is more or
fewer hours at the old average contribution; mix the same hours on better or worse channels and GPUs;
price what an hour earned more; efficiency what an hour took less; fixed everything that does not depend
on hours sold. Where hours sold are not known there is no such division, and none is made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.time import HOUR
from ouvrage.books.account import Account, money, profit_nano
from ouvrage.books.calendar import SOLD
from ouvrage.books.pnl import LEAST_COVERED, LEAST_SEEN, class_name

PARTS = ("price", "volume", "mix", "efficiency", "fixed")
_PER_HOUR = ("cost.fee", "cost.failed", "cost.electricity", "cost.cooling")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """The margin before and after in one currency, and its parts; ``parts`` None where ``why`` says."""

    before: Fraction
    after: Fraction
    parts: dict[str, Fraction] | None
    why: str | None = None


@dataclass(slots=True)
class _Item:
    """Hours, revenue and cost of what is sold, of one class of GPU on one channel."""

    hours: Fraction = Fraction(0)
    revenue: Fraction = Fraction(0)
    cost: Fraction = Fraction(0)


def variance(before: Account, after: Account) -> Variance:
    """The difference of two accounts of one site, divided."""
    totals = [money(profit_nano(made.sums, lambda _: True)) for made in (before, after)]
    for made in (before, after):
        why = next((w for ds in made.unknown.values() for w in ds.values()), None) or _blind(made)
        if why is not None:
            return Variance(before=totals[0], after=totals[1], parts=None, why=why)
    olds, news = _items(before), _items(after)
    parts = _parts(olds, news)
    fixed = [
        total - sum(item.revenue - item.cost for item in items.values())
        for total, items in zip(totals, (olds, news), strict=True)
    ]
    parts["fixed"] = Fraction(fixed[1] - fixed[0])
    return Variance(before=totals[0], after=totals[1], parts=parts)


def _blind(made: Account) -> str | None:
    """Why hours sold or what they earned are not known well enough, or None."""
    told, owned = (sum(both[i] for both in made.covered.values()) for i in (0, 1))
    blank = sum(states.get("unknown", 0) for states in made.hours.values())
    if owned and (Fraction(told, owned) < LEAST_COVERED or Fraction(blank, owned) > 1 - LEAST_SEEN):
        return f"too little says what the devices did and earned in {made.grid.period.name}"
    return None


def _items(made: Account) -> dict[tuple[str, str], _Item]:
    found: dict[tuple[str, str], _Item] = {}
    for cell, states in made.hours.items():
        if cell.channel is not None:
            item = found.setdefault(
                (class_name(made.grid.models.get(cell.device)), cell.channel), _Item()
            )
            item.hours += Fraction(sum(us for state, us in states.items() if state in SOLD), HOUR)
    for (line, cell), held in made.sums.items():
        if cell.channel is None:
            continue
        item = found.setdefault(
            (class_name(made.grid.models.get(cell.device)), cell.channel), _Item()
        )
        if line.startswith("revenue."):
            item.revenue += money(held.nano)
        elif line in _PER_HOUR:
            item.cost += money(held.nano)
    return {key: item for key, item in found.items() if item.hours}


def _parts(
    olds: dict[tuple[str, str], _Item], news: dict[tuple[str, str], _Item]
) -> dict[str, Fraction]:
    zero, none = Fraction(0), _Item()
    old_hours = sum((item.hours for item in olds.values()), zero)
    new_hours = sum((item.hours for item in news.values()), zero)
    old_left = sum((item.revenue - item.cost for item in olds.values()), zero)
    parts: dict[str, Fraction] = dict.fromkeys(PARTS, zero)
    if not old_hours:  # nothing to compare an hour with: all of it is volume
        parts["volume"] = sum((item.revenue - item.cost for item in news.values()), zero)
        return parts
    average = _Item(
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
