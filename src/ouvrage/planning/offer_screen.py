"""A hundred thousand offers narrowed to the few that can be among the cheapest, in milliseconds.

The formula of ``pricing.market.quote`` for the likely case over columns of binary floats. Its results
are never shown: they are lower bounds, from which follows who may be among the best; those few are
computed exactly and sorted. So the order is that of the exact core, whatever the floats do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

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
_ROUNDING = {"up": 0, "down": 1, "nearest": 2}


@dataclass(frozen=True, slots=True)
class Columns:
    """Offers by column. ``unit_s`` and the columns of billing are looked up by ``shape`` and ``bill``."""

    hour: Floats
    worth: Floats
    mtbf_s: Floats
    shape: NDArray[np.intp]
    bill: NDArray[np.intp]
    unit_s: Floats
    increment_s: Floats
    minimum_s: Floats
    rounding: NDArray[np.intp]
    later_s: Floats
    arriving_s: Floats
    waiting_s: Floats
    kept_h: Floats
    once: Floats
    tax: Floats


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
    shape = [shapes.index(time) for _, time in able]
    found = [ranker.billing(each.offer) for each, _ in able]
    bill = [bills.index(each) for each in found]
    profile, offers = ranker.profile, [each.offer for each, _ in able]
    mtbf = [mtbf_h(profile, offer) for offer in offers]
    return Columns(
        hour=_floats([_hour(offer) for offer in offers]),
        worth=_floats([float(ranker.rate(offer.currency) or 0) for offer in offers]),
        mtbf_s=_floats([float("inf") if each is None else float(each) * H for each in mtbf]),
        shape=np.array(shape, dtype=np.intp),
        bill=np.array(bill, dtype=np.intp),
        unit_s=_floats([float(time.seconds.likely) for time in shapes.values]),
        **_bill_columns(profile, bills.values),
    )


def _hour(offer: MarketOffer) -> float:
    return (
        float(offer.price) if offer.per == "h" and offer.split == "node" else float(hourly(offer))
    )


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


def _bill_columns(profile: Profile, bills: Sequence[Billing]) -> dict[str, Any]:
    once = profile.units is not None
    image = profile.moves.image_gb
    pull = float(image / PULL_GB_S.likely) if once and image is not None else 0.0
    steps = [bill.steps for bill in bills]
    beside = [beside_of(profile, bill) for bill in bills]
    clock = [each.increment_us / 2e6 if each.align == "clock" else 0.0 for each in steps]
    return {
        "increment_s": _floats([each.increment_us / 1e6 if once else 0.0 for each in steps]),
        "minimum_s": _floats([each.minimum_us / 1e6 if once else 0.0 for each in steps]),
        "rounding": np.array([_ROUNDING[each.rounding] for each in steps], dtype=np.intp),
        "later_s": _floats(clock if once else [0.0] * len(steps)),
        "arriving_s": _floats([0.0 if bill.healthy else pull for bill in bills]),
        "waiting_s": _floats([pull if bill.healthy else 0.0 for bill in bills]),
        "kept_h": _floats([float(each.per_h) for each in beside]),
        "once": _floats([float(each.once) for each in beside]),
        "tax": _floats([float(each.tax) for each in beside]),
    }


def lower_bounds(columns: Columns, work: Work) -> Floats:
    """For each offer a cost per unit that is no higher than the exact one, by ``SLACK`` at most."""
    bill = columns.bill
    done = columns.unit_s.take(columns.shape)
    if work.units:
        done *= work.units
    metered = done + (work.startup_s + columns.arriving_s).take(bill)
    if np.isfinite(columns.mtbf_s).any():
        half = np.minimum(done, work.every_s) * 0.5 + work.restart_s
        metered += done / columns.mtbf_s * half
    billed = _billed(columns, metered)
    cost = billed * columns.hour
    if work.reserved_s:
        cost += np.maximum(0.0, work.reserved_s - billed) * columns.hour
    if columns.kept_h.any():
        cost += (metered + columns.waiting_s.take(bill)) * columns.kept_h.take(bill)
    cost /= H
    if columns.once.any():
        cost += columns.once.take(bill)
    if columns.tax.any():
        cost *= (1.0 + columns.tax).take(bill)
    cost *= columns.worth
    cost *= (1.0 - SLACK) / (work.units or 1.0)
    return cost


def _billed(columns: Columns, metered: Floats) -> Floats:
    """Seconds in whole increments, never more than the exact core makes them."""
    increments = columns.increment_s
    if not increments.any() and not columns.minimum_s.any():
        return metered
    bill = columns.bill
    step = np.where(increments > 0, increments, 1.0).take(bill)
    count = metered + columns.later_s.take(bill) if columns.later_s.any() else metered.copy()
    count /= step
    count *= 1.0 - SLACK
    kind = columns.rounding
    if (kind == 0).all():
        np.ceil(count, out=count)
    else:
        by = kind.take(bill)
        count = np.where(by == 0, np.ceil(count), np.floor(count + np.where(by == 2, 0.5, 0.0)))
    count *= step
    stepped = increments.take(bill) > 0 if not increments.all() else None
    billed = count if stepped is None else np.where(stepped, count, metered)
    return np.maximum(billed, columns.minimum_s.take(bill), out=billed)


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
    bounds = lower_bounds(columns_of(ranker, able), work_of(ranker.profile))
    return cheapest(bounds, lambda index: ranker.cost(*able[index]), top)
