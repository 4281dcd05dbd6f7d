"""Why a result differs from what was planned: price, volume, mix, efficiency, fixed costs.

Decides which plan holds for a time (the one of the shortest period that covers it, in proportion to the
time where it is longer) and what is compared: revenue less the costs that the plan names, on both sides. A
cost that no plan names is told beside it and never taken for a plan of nothing. What the difference is
made of follows the same rules as the difference from the period before, with one exception: the power of
idle hours belongs to the hours sold here, since a plan states one sum for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import number
from ouvrage.books.account import Account, money
from ouvrage.books.cells import Cell
from ouvrage.books.period import Period
from ouvrage.books.pnl import COSTS
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.variance import PER_HOUR, Item, Variance, blind, divided, items_of
from ouvrage.model.plans import OwnerPlan

_BY_REVENUE = ("cost.fee", "cost.failed")
Piece = tuple[Known[OwnerPlan], Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstPlan:
    """A result against its plans: ``planned`` are the lines compared, ``beside`` costs that none names.

    ``numbers`` are the versions of the plans, ``whole`` says whether they are of just this period, and
    ``facts`` their keys.
    """

    about: str
    numbers: tuple[int, ...]
    whole: bool
    found: Variance
    planned: tuple[str, ...]
    beside: dict[str, Fraction]
    grade: Grade
    facts: tuple[str, ...]


def against_plan(made: Account) -> tuple[AgainstPlan, ...]:
    """A site and its nodes, each that has a plan for all of the account's period, against it."""
    grid = made.grid
    site = f"site:{grid.site}"
    found = [
        _compared(made, site, lambda _: True),
        *(_compared(made, f"node:{name}", _in(name)) for name in grid.nodes),
    ]
    return tuple(each for each in found if each is not None)


def _in(node: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.node == node


def _compared(made: Account, about: str, ours: Callable[[Cell], bool]) -> AgainstPlan | None:
    period = made.grid.period
    pieces = plans_over(made.record, about, period)
    if not pieces:
        return None
    lines = tuple(
        f"cost.{name}" for name in COSTS
        if any(cost.line == name for plan, _ in pieces for cost in plan.value.costs)
    )  # fmt: skip
    sold = {(s.gpu_class, s.channel) for plan, _ in pieces for s in plan.value.sales}
    olds, before = _planned(pieces, lines)
    news = _merged(items_of(made, ours, lines), sold)
    _spread(news, made, ours, lines)
    after = sum((_sum(made, line, ours) for line in _revenue(made)), Fraction(0))
    after -= sum((_sum(made, line, ours) for line in lines), Fraction(0))
    why = _unknown(made, ours, lines) or blind(made, ours)
    parts = None if why else divided(olds, news, before, after)
    return AgainstPlan(
        about=about,
        numbers=tuple(sorted({plan.value.number for plan, _ in pieces})),
        whole=all(share == 1 for _, share in pieces),
        found=Variance(before=before, after=after, parts=parts, why=why),
        planned=lines,
        beside={
            line: amount for name in COSTS
            if (line := f"cost.{name}") not in lines and (amount := _sum(made, line, ours))
        },
        grade=weakest(plan.grade for plan, _ in pieces),
        facts=tuple(plan.key for plan, _ in pieces),
    )  # fmt: skip


def plans_over(record: OwnerRecord, about: str, period: Period) -> list[Piece]:
    """The plans of an object for a period, each with the share of it; none where a moment has no plan.

    At each moment the plan of the shortest period counts, of equal ones the later.
    """
    ours = [
        p for p in record.plans if p.value.about == about and p.meets(period.from_us, period.to_us)
    ]
    edges = {period.from_us, period.to_us}
    edges |= {
        at
        for plan in ours
        for at in (plan.valid_from, plan.end)
        if period.from_us < at < period.to_us
    }
    shares: dict[str, Piece] = {}
    turns = sorted(edges)
    for begins, ends in pairwise(turns):
        held = [plan for plan in ours if plan.at(begins)]
        if not held:
            return []
        plan = min(held, key=lambda p: (p.end - p.valid_from, -p.valid_from, p.key))
        share = Fraction(ends - begins, plan.end - plan.valid_from)
        shares[plan.key] = (plan, shares.get(plan.key, (plan, Fraction(0)))[1] + share)
    return list(shares.values())


def _planned(
    pieces: Sequence[Piece], lines: Sequence[str]
) -> tuple[dict[tuple[str, str], Item], Fraction]:
    """What plans say was to be sold, by class and channel, and what was to be left."""
    items: dict[tuple[str, str], Item] = {}
    costs = dict.fromkeys(lines, Fraction(0))
    for plan, share in pieces:
        for sale in plan.value.sales:
            item = items.setdefault(_key(sale.gpu_class, sale.channel), Item())
            hours = number(sale.hours) * share
            item.hours += hours
            item.revenue += hours * number(sale.rate)
        for cost in plan.value.costs:
            costs[f"cost.{cost.line}"] += number(cost.amount) * share
    items = {key: item for key, item in items.items() if item.hours}
    for line, amount in costs.items():
        if line in PER_HOUR:
            _give(items, line, amount)
    left = sum((item.revenue for item in items.values()), Fraction(0)) - sum(costs.values())
    return items, left


def _give(items: dict[tuple[str, str], Item], line: str, amount: Fraction) -> None:
    """Give a cost to what was sold: a fee by what it earned, else by its hours."""
    by_revenue = line in _BY_REVENUE and any(item.revenue for item in items.values())
    weights = {key: item.revenue if by_revenue else item.hours for key, item in items.items()}
    total = sum(weights.values(), Fraction(0))
    for key, weight in weights.items():
        items[key].cost += amount * weight / total if total else 0


def _key(gpu_class: str | None, channel: str | None) -> tuple[str, str]:
    return (gpu_class or "", channel or "")


def _merged(
    items: dict[tuple[str, str], Item], sold: set[tuple[str | None, str | None]]
) -> dict[tuple[str, str], Item]:
    """What was sold under the keys of the plan: the narrowest that fits, else its own."""
    found: dict[tuple[str, str], Item] = {}
    for (gpu_class, channel), item in items.items():
        wider = ((gpu_class, channel), (None, channel), (gpu_class, None), (None, None))
        key = next((_key(*each) for each in wider if each in sold), (gpu_class, channel))
        into = found.setdefault(key, Item())
        into.hours += item.hours
        into.revenue += item.revenue
        into.cost += item.cost
    return found


def _spread(
    items: dict[tuple[str, str], Item],
    made: Account,
    ours: Callable[[Cell], bool],
    lines: Iterable[str],
) -> None:
    """Give what the hours that nobody bought took in power to those that somebody did."""
    hours = sum((item.hours for item in items.values()), Fraction(0))
    idle = [
        held.nano for (line, cell), held in made.sums.items()
        if line in PER_HOUR and line in lines and cell.channel is None and ours(cell)
    ]  # fmt: skip
    for item in items.values():
        item.cost += money(sum(idle)) * item.hours / hours


def _revenue(made: Account) -> Iterator[str]:
    yield from dict.fromkeys(line for line, _ in made.sums if line.startswith("revenue."))


def _sum(made: Account, wanted: str, ours: Callable[[Cell], bool]) -> Fraction:
    return money(
        sum(h.nano for (line, cell), h in made.sums.items() if line == wanted and ours(cell))
    )


def _unknown(made: Account, ours: Callable[[Cell], bool], lines: Sequence[str]) -> str | None:
    """Why a cost that the plan names is not known, or None."""
    devices = {cell.device for cell in made.cells if ours(cell)}
    for line in lines:
        for device, why in made.unknown.get(line.removeprefix("cost."), {}).items():
            if device in devices:
                return why
    return None
