"""What energy costs with all that a supplier charges beside it: tiers, standing charges, the peak.

Decides that tiers count energy from the beginning of a calendar month of the tariff's zone, so that any
cut of the month adds up to the month; that a standing charge of a day belongs to the day however long it
is; and that the charge on a month's highest quarter-hour is spread evenly over the month.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.base.time import DAY, MINUTE, SECOND
from ouvrage.books.money import converted
from ouvrage.books.period import Period, day_of, months_in, span
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.tariffs import KWH, PriceBook
from ouvrage.model.tariffs import Tariff, TariffTier

QUARTER = 15 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was used in one band at one price, in kWh, and what it cost."""

    band: str
    kwh: Fraction
    price: Fraction | None
    amount: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """What a supplier charges beside the kilowatt-hours: ``tiers``, ``standing``, ``demand``.

    ``peak_kw`` is the highest quarter-hour that the demand was charged on, 0 where none was.
    """

    tiers: Fraction
    standing: Fraction
    demand: Fraction
    peak_kw: Fraction
    grade: Grade
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What energy cost: ``total`` with everything, ``lines`` by band, the ``charges`` beside them.

    ``unpriced_kwh`` is energy at moments for which nobody states a price; it is not in the total.
    """

    total: Fraction
    lines: tuple[Line, ...]
    charges: Charges
    unpriced_kwh: Fraction
    grade: Grade


Pieces = Sequence[tuple[int, int, Fraction]]
"""Stretches of time with the joules used evenly over each; they may overlap and are then added."""


def energy_cost(record: OwnerRecord, site: str, pieces: Pieces, period: Period) -> Priced:
    """What energy over a period cost. Pieces outside it count for the tiers and peaks of its months."""
    book = PriceBook(record, site, period.from_us, period.to_us)
    kwh: dict[tuple[str, Fraction | None], Fraction] = {}
    grades = [Grade.MEASURED]
    for begins, ends, joules in pieces:
        for from_us, to_us, step in book.within(
            max(begins, period.from_us), min(ends, period.to_us)
        ):
            if from_us < to_us:
                key = (step.band, step.price)
                part = joules * Fraction(to_us - from_us, (ends - begins) * KWH)
                kwh[key] = kwh.get(key, Fraction(0)) + part
                grades += [step.source.grade] if step.source else []
    charges = charged(record, site, pieces, period)
    lines = [
        Line(band=band, kwh=used, price=price, amount=used * (price or 0))
        for (band, price), used in kwh.items()
    ]
    beside = charges.tiers + charges.standing + charges.demand
    return Priced(
        total=sum((line.amount for line in lines), beside),
        lines=tuple(sorted(lines, key=lambda line: (line.band, line.price or 0))),
        charges=charges,
        unpriced_kwh=sum((line.kwh for line in lines if line.price is None), Fraction(0)),
        grade=max([*grades, charges.grade]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A tariff in a calendar month: from where on it held in it, and the part that is asked for."""

    tariff: Known[Tariff]
    month: Period
    holds_us: int
    from_us: int
    to_us: int


def needs_load(record: OwnerRecord, site: str, period: Period) -> bool:
    """Whether a charge depends on how much was used in a month, and not only on how long it was."""
    return any(
        each.tariff.value.tiers or each.tariff.value.demand_per_kw_month
        for each in _months(record, site, period)
    )


def charged(record: OwnerRecord, site: str, pieces: Pieces, period: Period) -> Charges:
    """Tiers, standing charges and peaks of a period, in the currency of the site's books."""
    tiers = standing = demand = highest = Fraction(0)
    held: dict[str, Grade] = {}
    for each in _months(record, site, period):
        value = each.tariff.value
        rate = _rate(record, site, each.tariff)
        tiers += rate * _tiers(each, pieces)
        standing += rate * _standing(each)
        if value.demand_per_kw_month is not None:
            peak = peak_kw(pieces, max(each.holds_us, each.month.from_us), each.month.to_us)
            share = Fraction(each.to_us - each.from_us, each.month.us)
            demand += rate * number(value.demand_per_kw_month) * peak * share
            highest = max(highest, peak)
        held[each.tariff.key] = each.tariff.grade
    return Charges(
        tiers=tiers,
        standing=standing,
        demand=demand,
        peak_kw=highest,
        grade=max(held.values(), default=Grade.MEASURED),
        keys=tuple(held),
    )


def _months(record: OwnerRecord, site: str, period: Period) -> Iterator[Charged]:
    """Each calendar month of each tariff, as far as it lies in the period and in the tariff's time."""
    ours = [each for each in record.tariffs if each.value.site == site]
    for index, each in enumerate(ours):
        later = [other.valid_from for other in ours[index + 1 :] if other.valid_from < each.end]
        begins, ends = each.valid_from, min([each.end, *later])
        from_us, to_us = max(begins, period.from_us), min(ends, period.to_us)
        for month in months_in(from_us, to_us, each.value.zone) if from_us < to_us else ():
            yield Charged(
                tariff=each,
                month=month,
                holds_us=begins,
                from_us=max(from_us, month.from_us),
                to_us=min(to_us, month.to_us),
            )


def _rate(record: OwnerRecord, site: str, tariff: Known[Tariff]) -> Fraction:
    held = record.site(site)
    into = held.value.currency if held else tariff.value.currency
    money = converted(record, "1", tariff.value.currency, into, tariff.valid_from, tariff)
    return money.amount


def _tiers(each: Charged, pieces: Pieces) -> Fraction:
    """What the tiers add in the part asked for: up to its end less what was used before it."""
    tiers = each.tariff.value.tiers
    if not tiers:
        return Fraction(0)
    begins = max(each.holds_us, each.month.from_us)
    before = used_kwh(pieces, begins, each.from_us)
    within = used_kwh(pieces, each.from_us, each.to_us)
    return added(tiers, before + within) - added(tiers, before)


def added(tiers: tuple[TariffTier, ...], kwh: Fraction) -> Fraction:
    """What some energy of one month costs more by the tiers it goes through."""
    total, passed = Fraction(0), Fraction(0)
    for tier in tiers:
        end = kwh if tier.up_to_kwh is None else min(kwh, number(tier.up_to_kwh))
        total += max(Fraction(0), end - passed) * number(tier.add_per_kwh)
        passed = max(passed, end)
    return total


def used_kwh(pieces: Pieces, from_us: int, to_us: int) -> Fraction:
    """The energy of a stretch of time."""
    total = Fraction(0)
    for begins, ends, joules in pieces:
        within = min(ends, to_us) - max(begins, from_us)
        if within > 0:
            total += joules * Fraction(within, (ends - begins) * KWH)
    return total


def _standing(each: Charged) -> Fraction:
    value, total = each.tariff.value, Fraction(0)
    if value.standing_per_month is not None:
        share = Fraction(each.to_us - each.from_us, each.month.us)
        total += number(value.standing_per_month) * share
    if value.standing_per_day is not None:
        days = Fraction(0)
        for day in _days(each.from_us, each.to_us, value.zone):
            days += Fraction(day.overlap(each.from_us, each.to_us), day.us)
        total += number(value.standing_per_day) * days
    return total


def _days(from_us: int, to_us: int, zone: str) -> Iterator[Period]:
    at = from_us
    while at < to_us:
        first = day_of(at, zone)
        following = day_of(span(first, first, zone, "").from_us + DAY + DAY // 2, zone)
        day = span(first, following, zone, first.isoformat())
        yield day
        at = day.to_us


def peak_kw(pieces: Pieces, from_us: int, to_us: int) -> Fraction:
    """The highest average power of a quarter-hour; a lower bound where a piece is longer than that."""
    quarters: dict[int, Fraction] = {}
    steady: list[tuple[int, Fraction]] = []
    for begins, ends, joules in pieces:
        first, last = max(begins, from_us), min(ends, to_us)
        if first < last:
            watts = joules * SECOND / (ends - begins)
            _lay(first, last, watts, quarters, steady)
    return _highest(quarters, steady) / 1000


def _lay(
    first: int,
    last: int,
    watts: Fraction,
    quarters: dict[int, Fraction],
    steady: list[tuple[int, Fraction]],
) -> None:
    """Spread a piece: its cut quarters by their share, its whole quarters as a step up and down."""
    low, high = -(-first // QUARTER), last // QUARTER
    if low > high:  # within one quarter
        share = watts * Fraction(last - first, QUARTER)
        quarters[high] = quarters.get(high, Fraction(0)) + share
        return
    for quarter, us in ((low - 1, low * QUARTER - first), (high, last - high * QUARTER)):
        if us:
            quarters[quarter] = quarters.get(quarter, Fraction(0)) + watts * Fraction(us, QUARTER)
    if low < high:
        steady += [(low, watts), (high, -watts)]


def _highest(quarters: dict[int, Fraction], steady: list[tuple[int, Fraction]]) -> Fraction:
    level, highest = Fraction(0), max(quarters.values(), default=Fraction(0))
    levels: list[tuple[int, Fraction]] = []
    for quarter, watts in sorted(steady):
        level += watts
        if levels and levels[-1][0] == quarter:
            levels[-1] = (quarter, level)
        else:
            levels.append((quarter, level))
    begins = [quarter for quarter, _ in levels]
    for quarter, part in quarters.items():
        index = bisect_right(begins, quarter) - 1
        highest = max(highest, part + (levels[index][1] if index >= 0 else 0))
    return max([highest, *(watts for _, watts in levels)])
