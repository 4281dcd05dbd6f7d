"""A hundred thousand offers narrowed to the few that can be among the cheapest, in milliseconds.

The formula of ``pricing.market.quote`` for the likely case over columns of binary floats. Its results
are never shown: they are lower bounds, from which follows who may be among the best; those few are
computed exactly and sorted. So the order is that of the exact core, whatever the floats do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.billing import Billing
from ouvrage.pricing.market.listed import Listed, hourly
from ouvrage.pricing.market.profile import Profile
from ouvrage.pricing.market.quote import PULL_GB_S, RESTART_S, beside_of, mtbf_h
from ouvrage.pricing.market.ranking import Ranker
from ouvrage.pricing.market.scaling import Carried

Floats = NDArray[np.float64]
H = 3600.0
SLACK = 1e-9
"""Far above what adding a few dozen doubles can lose, far below any price's last digit."""
LARGE = 2000
"""Below so many offers the exact core alone is as fast as starting NumPy."""


@dataclass(frozen=True, slots=True)
class Group:
    """The offers from ``start`` to ``end``, which bill alike, and the numbers of their billing."""

    start: int
    end: int
    increment_s: float
    minimum_s: float
    rounding: str
    later_s: float
    arriving_s: float
    waiting_s: float
    kept_h: float
    once: float
    tax: float
    may_stop: bool


@dataclass(frozen=True, slots=True)
class Columns:
    """Offers by column, those that bill alike side by side; ``order`` says which one each is."""

    order: NDArray[np.intp]
    hour: Floats
    worth: Floats
    mtbf_s: Floats
    shape: NDArray[np.intp]
    unit_s: Floats
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """The numbers of a profile on which a cost depends. ``units`` 0 asks for the marginal unit."""

    units: float
    startup_s: float
    every_s: float
    restart_s: float
    reserved_s: float


def work_of(profile: Profile) -> Work:
    """A profile's numbers."""
    moves = profile.moves
    every = moves.checkpoint_every_s
    restart = RESTART_S if profile.restart_s is None else profile.restart_s
    once = profile.units is not None
    return Work(
        units=float(profile.units) if profile.units is not None else 0.0,
        startup_s=float(profile.startup_s) if once else 0.0,
        every_s=float("inf") if every is None else float(every),
        restart_s=float(restart),
        reserved_s=float(moves.reserved_h or 0) * H if once else 0.0,
    )


def columns_of(ranker: Ranker, able: Sequence[tuple[Listed, Carried]]) -> Columns:
    """The columns of some offers, each different machine and way of billing taken once."""
    shapes, bills = _Table[Carried](), _Table[Billing]()
    bill = np.array([bills.index(ranker.billing(each.offer)) for each, _ in able], dtype=np.intp)
    order = np.argsort(bill, kind="stable")
    sorted_ = [able[index] for index in order]
    shape = [shapes.index(time) for _, time in sorted_]
    profile, offers = ranker.profile, [each.offer for each, _ in sorted_]
    mtbf = [mtbf_h(profile, offer) for offer in offers]
    mtbf_s = _floats([np.inf if each is None else float(each) * H for each in mtbf])
    bounds = np.searchsorted(bill[order], np.arange(len(bills.values) + 1))
    groups = [
        _group(profile, each, int(bounds[i]), int(bounds[i + 1]), mtbf_s)
        for i, each in enumerate(bills.values)
    ]
    return Columns(
        order=order,
        hour=_floats([_hour(offer) for offer in offers]),
        worth=_floats([float(ranker.rate(offer.currency) or 0) for offer in offers]),
        mtbf_s=mtbf_s,
        shape=np.array(shape, dtype=np.intp),
        unit_s=_floats([float(time.seconds.likely) for time in shapes.values]),
        groups=tuple(groups),
    )


def _hour(offer: MarketOffer) -> float:
    plain = offer.per == "h" and offer.split == "node"
    return float(offer.price) if plain else float(hourly(offer))


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


T = TypeVar("T")


class _Table(Generic[T]):
    """Different values in the order in which they came, each with its index."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._places: dict[int, int] = {}

    def index(self, value: T) -> int:
        """The place of a value, which is kept alive here so that its identity stays its own."""
        place = self._places.setdefault(id(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return place


def _group(profile: Profile, bill: Billing, start: int, end: int, mtbf_s: Floats) -> Group:
    once = profile.units is not None
    image = profile.moves.image_gb
    pull = float(image / PULL_GB_S.likely) if once and image is not None else 0.0
    steps, beside = bill.steps, beside_of(profile, bill)
    clock = once and steps.align == "clock"
    return Group(
        start=start,
        end=end,
        increment_s=steps.increment_us / 1e6 if once else 0.0,
        minimum_s=steps.minimum_us / 1e6 if once else 0.0,
        rounding=steps.rounding,
        later_s=steps.increment_us / 2e6 if clock else 0.0,
        arriving_s=0.0 if bill.healthy else pull,
        waiting_s=pull if bill.healthy else 0.0,
        kept_h=float(beside.per_h),
        once=float(beside.once),
        tax=float(beside.tax),
        may_stop=bool(np.isfinite(mtbf_s[start:end]).any()),
    )


def lower_bounds(columns: Columns, work: Work) -> Floats:
    """For each offer, in the order of the columns, a cost per unit no higher than the exact one."""
    found = columns.unit_s.take(columns.shape)
    if work.units:
        found *= work.units
    for group in columns.groups:
        part = slice(group.start, group.end)
        _cost(found[part], columns.hour[part], columns.mtbf_s[part], group, work)
    if not (columns.worth == 1.0).all():
        found *= columns.worth
    return found


def _cost(done: Floats, hour: Floats, mtbf_s: Floats, group: Group, work: Work) -> None:
    """Turn seconds of work into a lower bound of the cost, in place."""
    metered = done
    if group.may_stop:
        half = np.minimum(done, work.every_s)
        half *= 0.5
        half += work.restart_s
        half /= mtbf_s
        half += 1.0
        metered *= half
    metered += work.startup_s + group.arriving_s
    kept = None
    if group.kept_h:
        kept = (metered + group.waiting_s) * (group.kept_h / H)
    billed = _billed(metered, group)
    if work.reserved_s:
        np.maximum(billed, work.reserved_s, out=billed)
    billed *= hour
    billed /= H
    if kept is not None:
        billed += kept
    if group.once:
        billed += group.once
    billed *= (1.0 + group.tax) * (1.0 - SLACK) / (work.units or 1.0)


def _billed(seconds: Floats, group: Group) -> Floats:
    """Seconds in whole increments, in place, and never more than the exact core makes them."""
    if group.increment_s:
        seconds += group.later_s
        seconds *= (1.0 - SLACK) / group.increment_s
        if group.rounding == "nearest":
            seconds += 0.5
        round_ = np.ceil if group.rounding == "up" else np.floor
        round_(seconds, out=seconds)
        seconds *= group.increment_s
    if group.minimum_s:
        np.maximum(seconds, group.minimum_s, out=seconds)
    return seconds


def cheapest(bounds: Floats, exact: Callable[[int], Fraction], top: int) -> list[int]:
    """The ``top`` cheapest in exact order, and any more that cost the same as the last of them.

    Who is left out has a bound above the exact cost of all that are taken: the limit is raised until
    that is so.
    """
    top = min(top, len(bounds))
    limit = float(np.partition(bounds, top - 1)[top - 1]) * (1.0 + 4.0 * SLACK)
    known: dict[int, Fraction] = {}
    while True:
        among = [int(index) for index in np.flatnonzero(bounds <= limit)]
        known.update((index, exact(index)) for index in among if index not in known)
        best = sorted((known[index], index) for index in among)
        last = best[top - 1][0]
        needed = float(last) * (1.0 + SLACK)
        if needed <= limit:
            return [index for cost, index in best if cost <= last]
        limit = needed


def screen(ranker: Ranker, able: Sequence[tuple[Listed, Carried]], top: int) -> list[int]:
    """The offers among which the cheapest are; all of them where there are few."""
    if len(able) < LARGE:
        return list(range(len(able)))
    columns = columns_of(ranker, able)
    order = [int(index) for index in columns.order]
    bounds = lower_bounds(columns, work_of(ranker.profile))
    return [order[i] for i in cheapest(bounds, lambda i: ranker.cost(*able[order[i]]), top)]
