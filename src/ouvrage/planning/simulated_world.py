"""A made-up owner's world: its prices, its demand, what happens in its year, and what is true of it.

Decides how a simulated machine is let: each GPU is free or let through one of two channels, from hour to
hour, by chances that are known. Because they are known, what to expect of any stretch of days can be
computed without drawing anything (a Markov chain's distribution, hour by hour), and that is the truth
against which estimates and decisions are scored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache

from ouvrage.base.time import HOUR
from ouvrage.books.period import day_start
from ouvrage.planning.average_day import Average
from ouvrage.planning.chance import Chance

ZONE = "Europe/Paris"
FIRST = date(2025, 1, 1)
DAYS = 365
GPUS = 4
MARKET, OWN = "vast", "own"
FREE, DOWN, MAINTENANCE = "free", "down", "maintenance"
ANCHOR = "studio-m"
SMALL_TENANTS = ("lab-k", "ines", "render-co", "thesis-7")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The parameters of one owner's year; money in EUR, days counted from 1 January 2025.

    ``ask`` is what the owner asks per GPU-hour on the marketplace, ``market`` what competitors ask until
    ``cut_day`` and ``cut`` (a share) less from then on; ``follows`` says how much of a cut the owner
    takes over, three weeks later. A free GPU waits ``gap_h`` hours on average at equal prices and longer
    by ``elasticity`` where it is dearer; ``lease_h`` is how long a tenant stays; ``discount`` what is
    paid of what is asked; ``own_share`` of the demand are own tenants, who pay ``own_price``.
    ``step`` raises or lowers both prices as a repricing would; demand answers. ``anchors`` GPUs are let
    to one tenant at ``anchor_price`` until ``leaves_day``. GPU ``fails`` is broken for
    ``down_days`` from ``fail_day`` on. Power in watts at the wall, a GPU with its share of the machine.
    """

    ask: Fraction
    market: Fraction
    cut_day: int
    cut: Fraction
    follows: Fraction
    elasticity: float
    gap_h: float
    lease_h: float
    discount: Fraction
    own_share: float
    own_price: Fraction
    anchors: int
    anchor_price: Fraction
    leaves_day: int
    fails: int
    fail_day: int
    down_days: int
    kwh: Fraction
    summer_kwh: Fraction
    idle_w: int
    load_w: int
    pue: Fraction
    market_fee: Fraction
    own_fee: Fraction
    rent: Fraction
    bandwidth: Fraction
    insurance: Fraction
    tax: Fraction
    support_price: Fraction
    support_per_day: float
    support_min: int
    machine_price: Fraction
    gpu_price: Fraction
    life_months: int
    borrowed: Fraction
    loan_rate: Fraction
    own_use_price: Fraction
    opportunity: Fraction
    step: Fraction = Fraction(0)

    def ask_on(self, day: int) -> Fraction:
        """What the owner asks per hour on the marketplace."""
        followed = self.cut * self.follows if day >= self.cut_day + 21 else Fraction(0)
        return self.ask * (1 - followed) * (1 + self.step)

    @property
    def own_asked(self) -> Fraction:
        """What own tenants but the long one pay."""
        return self.own_price * (1 + self.step)

    def market_on(self, day: int) -> Fraction:
        """What competitors ask."""
        return self.market * (1 - self.cut) if day >= self.cut_day else self.market

    def kwh_on(self, month: int) -> Fraction:
        """What a kilowatt-hour costs in a month."""
        return self.summer_kwh if month in SUMMER else self.kwh

    def anchored(self, gpu: int, day: int) -> bool:
        """Whether the long tenant has this GPU."""
        return gpu < self.anchors and day < self.leaves_day

    def broken(self, gpu: int, day: int) -> bool:
        """Whether this GPU is out of order."""
        return gpu == self.fails and self.fail_day <= day < self.fail_day + self.down_days


SUMMER = (6, 7, 8)
DEMO = World(
    ask=Fraction("0.48"), market=Fraction("0.47"), cut_day=248, cut=Fraction("0.24"),
    follows=Fraction(0), elasticity=2.2, gap_h=19.0, lease_h=30.0, discount=Fraction("0.96"),
    own_share=0.22, own_price=Fraction("0.52"), anchors=2, anchor_price=Fraction("0.44"),
    leaves_day=262, fails=2, fail_day=191, down_days=24, kwh=Fraction("0.21"),
    summer_kwh=Fraction("0.34"), idle_w=58, load_w=395, pue=Fraction("1.08"),
    market_fee=Fraction("0.20"), own_fee=Fraction("0.03"), rent=Fraction(35), bandwidth=Fraction(39),
    insurance=Fraction(11), tax=Fraction("0.25"), support_price=Fraction(25), support_per_day=0.07,
    support_min=35, machine_price=Fraction(2400), gpu_price=Fraction(1650), life_months=60,
    borrowed=Fraction(6000), loan_rate=Fraction("0.06"), own_use_price=Fraction("0.18"),
    opportunity=Fraction("0.03"),
)  # fmt: skip
"""The world of ``ouvrage demo``: ordinary sums of 2025, none of them anybody's."""


def world_of(seed: int) -> World:
    """A world near the demonstration's, of good or bad fortune as the seed has it."""
    chance = Chance(seed * 7919 + 17)

    def some(low: float, high: float) -> Fraction:
        return Fraction(round(chance.between(low, high) * 1000), 1000)

    ask = some(0.26, 0.72)
    return replace(
        DEMO,
        ask=ask,
        market=ask * some(0.80, 1.15),
        cut_day=round(chance.between(90, 262)),
        cut=some(0.0, 0.3),
        follows=some(0.0, 1.0),
        elasticity=chance.between(1.0, 3.0),
        gap_h=chance.between(3.0, 40.0),
        lease_h=chance.between(12.0, 40.0),
        own_share=chance.between(0.1, 0.4),
        own_price=ask * some(0.95, 1.2),
        anchors=chance.below(3),
        anchor_price=ask * some(0.85, 1.0),
        leaves_day=round(chance.between(120, 420)),
        fails=chance.below(GPUS),
        fail_day=round(chance.between(60, 240)),
        down_days=round(chance.between(5, 30)),
        kwh=some(0.12, 0.38),
        summer_kwh=some(0.25, 0.45),
        load_w=round(chance.between(330, 450)),
        support_per_day=chance.between(0.02, 0.2),
        gpu_price=Fraction(round(chance.between(900, 2000))),
        own_use_price=some(0.05, 0.35),
    )


@lru_cache(maxsize=4096)
def date_of(day: int) -> date:
    """The date of a day of the year."""
    return FIRST + timedelta(days=day)


@lru_cache(maxsize=4096)
def start_of(day: int) -> int:
    """The first moment of a day of the year."""
    return day_start(date_of(day), ZONE)


@lru_cache(maxsize=1024)
def hours_of(day: int) -> int:
    """23, 24 or 25."""
    return (start_of(day + 1) - start_of(day)) // HOUR


@lru_cache(maxsize=4096)
def maintenance(day: int) -> tuple[int, ...]:
    """Two hours of updates on the second Tuesday of each month, from nine."""
    found = date_of(day)
    return (9, 10) if found.weekday() == 1 and 8 <= found.day <= 14 else ()


def arrival(world: World, day: int) -> tuple[float, float]:
    """The chances that a free GPU is let in an hour: through the marketplace, to a tenant of one's own.

    Demand is a quarter lower at weekends.
    """
    base = 1.0 / world.gap_h * (0.75 if date_of(day).weekday() >= 5 else 1.0)
    dearer = float(world.ask_on(day) / world.market_on(day))
    taken = base * (1.0 - world.own_share) * dearer**-world.elasticity
    own = base * world.own_share * float(1 + world.step) ** -world.elasticity
    return min(taken, 0.7), min(own, 0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is to be expected of one GPU on a day, in hours: let by channel, to the anchor, owned, lost.

    ``lost`` are hours out of order or in maintenance.
    """

    market_h: float
    own_h: float
    anchor_h: float
    owned_h: int
    lost_h: float

    @property
    def sold_h(self) -> float:
        """Hours let through any channel."""
        return self.market_h + self.own_h + self.anchor_h


MEMORY_DAYS = 45
"""After so many days the chain has forgotten how it began, far beyond the digits of a float."""


def expectation(world: World, gpu: int, first: int, after: int) -> Iterator[tuple[int, Expected]]:
    """The truth of each day for one GPU, by the chain's distribution from hour to hour."""
    market = own = 0.0
    leave = 1.0 / world.lease_h
    for day in range(max(0, first - MEMORY_DAYS), after):
        owned, lost = hours_of(day), maintenance(day)
        broken, anchored = world.broken(gpu, day), world.anchored(gpu, day)
        to_market, to_own = (0.0, 0.0) if broken or anchored else arrival(world, day)
        sums = [0.0, 0.0]
        for hour in range(owned):
            if broken or anchored or hour in lost:
                market = own = 0.0
                continue
            free = 1.0 - market - own
            market += free * to_market - market * leave
            own += free * to_own - own * leave
            sums[0] += market
            sums[1] += own
        if day >= first:
            gone = owned if broken else len(lost)
            yield day, Expected(
                market_h=sums[0], own_h=sums[1], anchor_h=owned - gone if anchored else 0,
                owned_h=owned, lost_h=gone,
            )  # fmt: skip


def _expected(world: World, first: int, after: int) -> Iterator[tuple[int, Expected]]:
    """The truth of each day for every GPU; those to which the same happens are reckoned once."""
    found: dict[tuple[bool, bool], list[tuple[int, Expected]]] = {}
    for gpu in range(GPUS):
        kind = (gpu == world.fails, gpu < world.anchors)
        if kind not in found:
            found[kind] = list(expectation(world, gpu, first, after))
        yield from found[kind]


def truth(world: World, first: int, after: int) -> Average:
    """What was to be expected of a day from ``first`` up to, not with, ``after``, by the parameters alone."""
    days = after - first
    sums = _Sums()
    for day, each in _expected(world, first, after):
        _add(world, day, each, sums)
    months = _months(first, after)
    worn = float((world.machine_price + GPUS * world.gpu_price) / world.life_months)
    support = world.support_per_day * world.support_min / 60 * float(world.support_price)
    return Average(
        owned=sums.owned / days,
        sold=sums.sold / days,
        lost=sums.lost / days,
        revenue=sums.revenue / days,
        gpu=sums.revenue / days,
        fees=sums.fees / days,
        power=sums.power / days,
        line=float(world.bandwidth) * months / days,
        running=float(world.rent + world.insurance) * months / days + support,
        depreciation=worn * months / days,
        interest=_interest(world, first, after) / days,
        tax=0.0,
        kwh=sums.kwh / days,
        idle_kwh=sums.owned / days * world.idle_w / 1000,
        load_kwh=sums.owned / days * world.load_w / 1000,
    )


def top_tenant(world: World, first: int, after: int) -> float:
    """The expected share of the tenant with the most hours: the long one, or one of the small ones."""
    anchor = own = sold = 0.0
    for _, each in _expected(world, first, after):
        anchor += each.anchor_h
        own += each.own_h
        sold += each.sold_h
    return max(anchor, own / len(SMALL_TENANTS)) / sold if sold else 0.0


@dataclass(slots=True)
class _Sums:
    """Sums over GPUs and days: hours, money, kWh."""

    owned: float = 0.0
    sold: float = 0.0
    lost: float = 0.0
    revenue: float = 0.0
    fees: float = 0.0
    power: float = 0.0
    kwh: float = 0.0


def _add(world: World, day: int, each: Expected, sums: _Sums) -> None:
    market = each.market_h * float(world.ask_on(day) * world.discount)
    own = each.own_h * float(world.own_asked) + each.anchor_h * float(world.anchor_price)
    kwh = (each.sold_h * world.load_w + (each.owned_h - each.sold_h) * world.idle_w) / 1000
    sums.owned += each.owned_h
    sums.sold += each.sold_h
    sums.lost += each.lost_h
    sums.revenue += market + own
    sums.fees += market * float(world.market_fee) + own * float(world.own_fee)
    sums.power += kwh * float(world.kwh_on(date_of(day).month) * world.pue)
    sums.kwh += kwh


def _months(first: int, after: int) -> float:
    """Days as months of their own lengths."""
    total = 0.0
    for day in range(first, after):
        found = date_of(day)
        following = date(found.year + found.month // 12, found.month % 12 + 1, 1)
        total += 1 / (following - found.replace(day=1)).days
    return total


def _interest(world: World, first: int, after: int) -> float:
    """Interest of an annuity over 36 months from the first day on, by the months of the days."""
    rate, balance, total = float(world.loan_rate) / 12, float(world.borrowed), 0.0
    growth = (1 + rate) ** 36
    payment = balance * rate * growth / (growth - 1)
    at = 0
    for month in range(36):
        begins = FIRST.replace(year=FIRST.year + month // 12, month=month % 12 + 1)
        following = date(begins.year + begins.month // 12, begins.month % 12 + 1, 1)
        length = (following - begins).days
        inside = max(0, min(after, at + length) - max(first, at))
        total += balance * rate * inside / length
        balance -= payment - balance * rate
        at += length
    return total
