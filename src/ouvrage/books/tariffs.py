"""What a kilowatt-hour costs at a site at any moment, and what a supplier charges beside it.

Decides which price holds: a recorded market price of that moment, else the tariff in force, else the
flat price of the site's terms. Bands follow the clock on the wall of the tariff's zone, so that a day of
23 or 25 hours is priced hour by hour. A tariff with an hour that has no price, or two, is refused when it
is stated (``faults_in``), never filled in here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.base.time import HOUR
from ouvrage.books.money import converted
from ouvrage.books.period import zone_of
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.terms import pieces as term_pieces
from ouvrage.books.terms import term
from ouvrage.model.tariffs import SpotPrices, Tariff, TariffBand

KWH = 3_600_000
"""Joules of a kilowatt-hour."""
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who states a price: its grade, its facts, and words for it."""

    words: str
    grade: Grade
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A price that holds for a while: ``price`` and ``export`` per kWh, None where nobody states it.

    ``band`` is its name in the tariff; ``export`` what own power would earn, None where nothing.
    """

    from_us: int
    to_us: int
    price: Fraction | None
    export: Fraction | None
    band: str
    source: Source | None

    @property
    def said(self) -> tuple[object, ...]:
        """Everything about it but its time."""
        return self.price, self.export, self.band, self.source


class PriceBook:
    """The prices of a site over a stretch of time, as steps that tile it.

    A sum of price times time over any part is exact and found without walking the steps.
    """

    def __init__(self, record: OwnerRecord, site: str, from_us: int, to_us: int) -> None:
        self.steps: list[Step] = _joined(_steps(record, site, from_us, max(to_us, from_us + 1)))
        self._begins = [step.from_us for step in self.steps]
        prices = [step.price or Fraction(0) for step in self.steps]
        self.denominator = lcm(*(price.denominator for price in prices))
        self._whole = [int(price * self.denominator) for price in prices]
        self._until = [0]
        for step, price in zip(self.steps, self._whole, strict=True):
            self._until.append(self._until[-1] + price * (step.to_us - step.from_us))

    def at(self, at_us: int) -> Step:
        """The step in which a moment lies; the first or last one for a moment outside."""
        return self.steps[max(0, bisect_right(self._begins, at_us) - 1)]

    def integral(self, from_us: int, to_us: int) -> int:
        """Price times microseconds over a stretch of time, in ``1 / denominator``."""
        return self._sum(to_us) - self._sum(from_us)

    def _sum(self, at_us: int) -> int:
        index = max(0, bisect_right(self._begins, at_us) - 1)
        return self._until[index] + self._whole[index] * (at_us - self._begins[index])

    def edges(self) -> list[int]:
        """Where another source begins to state the price."""
        return [
            after.from_us for before, after in pairwise(self.steps) if before.source != after.source
        ]

    def within(self, from_us: int, to_us: int) -> Iterator[tuple[int, int, Step]]:
        """The steps of a stretch of time, cut at its ends."""
        for step in self.steps[max(0, bisect_right(self._begins, from_us) - 1) :]:
            if step.from_us >= to_us:
                return
            yield max(from_us, step.from_us), min(to_us, step.to_us), step


def price_at(record: OwnerRecord, site: str, at_us: int) -> Known[Fraction] | None:
    """The price of a kilowatt-hour at a moment; None where nobody states one."""
    step = PriceBook(record, site, at_us, at_us + 1).at(at_us)
    if step.price is None or step.source is None:
        return None
    return Known(
        value=step.price,
        valid_from=step.from_us,
        valid_to=step.to_us,
        grade=step.source.grade,
        key=step.source.keys[0] if step.source.keys else "",
        said_by=step.source.words,
    )


def tariff_at(record: OwnerRecord, site: str, at_us: int) -> Known[Tariff] | None:
    """The tariff in force at a site: of those that hold, the last to begin."""
    for each in reversed(record.tariffs):
        if each.value.site == site and each.at(at_us):
            return each
    return None


def _joined(steps: Iterable[Step]) -> list[Step]:
    """Steps with the same price of the same source as one."""
    found: list[Step] = []
    for step in steps:
        last = found[-1] if found else None
        if last is not None and last.said == step.said:
            found[-1] = replace(last, to_us=step.to_us)
            continue
        found.append(step)
    return found


def _steps(record: OwnerRecord, site: str, from_us: int, to_us: int) -> Iterator[Step]:
    """The prices of a stretch of time: where no market price is recorded, those of the tariff."""
    at = from_us
    for begins, ends, spot in _spot_steps(record, site, from_us, to_us):
        if at < begins:
            yield from _agreed(record, site, at, begins)
        begins = max(at, begins)
        if begins < ends:
            yield _of_market(record, site, begins, ends, spot)
        at = max(at, ends)
    if at < to_us:
        yield from _agreed(record, site, at, to_us)


_SpotStep = tuple[int, int, "tuple[Known[SpotPrices], int]"]


def _spot_steps(record: OwnerRecord, site: str, from_us: int, to_us: int) -> list[_SpotStep]:
    found: list[_SpotStep] = []
    for each in record.spots:
        if each.value.site != site or not each.meets(from_us, to_us):
            continue
        for index in range(len(each.value.per_kwh)):
            begins = each.valid_from + index * each.value.step_us
            ends = min(begins + each.value.step_us, each.end)
            if begins < to_us and from_us < ends:
                found.append((max(begins, from_us), min(ends, to_us), (each, index)))
    return sorted(found, key=lambda step: step[:2])


def _of_market(
    record: OwnerRecord, site: str, from_us: int, to_us: int, spot: tuple[Known[SpotPrices], int]
) -> Step:
    """A market price with what the supplier makes of it: times a factor, plus a fixed part."""
    each, index = spot
    factor, added = (
        term(record, f"site:{site}", name, from_us) for name in ("spot_factor", "spot_addition")
    )
    market = number(each.value.per_kwh[index]) * _rate(record, site, each.value.currency, each)
    price = market * (factor.value if factor else 1) + (added.value if added else 0)
    said = [known for known in (factor, added) if known is not None and known.key]
    return Step(
        from_us=from_us,
        to_us=to_us,
        price=price,
        export=market,
        band="market",
        source=_source(
            "the market's price of the hour",
            max([each.grade, *(known.grade for known in said)]),
            (each.key, *(known.key for known in said)),
        ),
    )


def _rate(record: OwnerRecord, site: str, currency: str, each: Known[Any]) -> Fraction:
    """What a unit of a currency is in that of the site's books."""
    held = record.site(site)
    into = held.value.currency if held else currency
    return converted(record, "1", currency, into, each.valid_from, each).amount


def _source(words: str, grade: Grade, keys: tuple[str, ...]) -> Source:
    return Source(words=words, grade=grade, keys=keys)


def _agreed(record: OwnerRecord, site: str, from_us: int, to_us: int) -> Iterator[Step]:
    """The prices of tariffs and, where none is in force, of the flat term."""
    cuts = {from_us, to_us}
    for each in record.tariffs:
        if each.value.site == site:
            cuts |= {at for at in (each.valid_from, each.end) if from_us < at < to_us}
    for begins, ends in pairwise(sorted(cuts)):
        tariff = tariff_at(record, site, begins)
        if tariff is not None:
            yield from _by_clock(record, site, tariff, begins, ends)
        else:
            yield from _flat(record, site, begins, ends)


def _flat(record: OwnerRecord, site: str, from_us: int, to_us: int) -> Iterator[Step]:
    for begins, ends, held in term_pieces(record, f"site:{site}", "electricity", from_us, to_us):
        source = None
        if held is not None:
            source = _source(f"the price ({held.said_by or 'as stated'})", held.grade, held.keys)
        yield Step(
            from_us=begins, to_us=ends, price=held.value if held else None, export=None, band="flat",
            source=source,
        )  # fmt: skip


def _by_clock(
    record: OwnerRecord, site: str, tariff: Known[Tariff], from_us: int, to_us: int
) -> Iterator[Step]:
    """The bands of a tariff, hour by hour of the clock in its zone."""
    value = tariff.value
    bands, rate = band_table(value.bands), _rate(record, site, value.currency, tariff)
    prices = {
        id(band): (
            number(band.per_kwh) * rate,
            None if band.export_per_kwh is None else number(band.export_per_kwh) * rate,
        )
        for band in value.bands
    }
    source = _source(f"tariff {value.name}", tariff.grade, tariff.keys)
    for begins, ends, wall in clock_hours(from_us, to_us, value.zone):
        band = bands[wall.month - 1, wall.weekday(), wall.hour]
        price, export = prices[id(band)]
        yield Step(
            from_us=begins, to_us=ends, price=price, export=export, band=band.name, source=source
        )


def band_table(bands: Sequence[TariffBand]) -> dict[tuple[int, int, int], TariffBand]:
    """The band of each month (0 to 11), weekday (0 Monday) and hour; the first where two claim it."""
    found: dict[tuple[int, int, int], TariffBand] = {}
    for band in bands:
        for month in band.months:
            for weekday in band.weekdays:
                for hour in band.hours:
                    found.setdefault((month - 1, weekday, hour), band)
    return found


def clock_hours(from_us: int, to_us: int, zone: str) -> Iterator[tuple[int, int, datetime]]:
    """Stretches in which the clock of a zone shows one hour, with the moment it shows at the start.

    Where clocks are set back an hour comes twice, where they are set forward one is left out.
    """
    at, place = from_us, zone_of(zone)
    while at < to_us:
        wall = (_EPOCH + timedelta(microseconds=at)).astimezone(place)
        passed = (wall.minute * 60 + wall.second) * 1_000_000 + wall.microsecond
        ends = min(to_us, at + HOUR - passed)
        if _offset(ends - 1, zone) != wall.utcoffset():
            ends = _change(at, ends, zone)
        yield at, ends, wall
        at = ends


def _offset(at_us: int, zone: str) -> timedelta | None:
    return (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone_of(zone)).utcoffset()


def _change(from_us: int, to_us: int, zone: str) -> int:
    """The moment between two at which the clock of a zone is changed."""
    before, low, high = _offset(from_us, zone), from_us, to_us - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(middle, zone) == before else (low, middle)
    return high


def faults_in(bands: Sequence[TariffBand]) -> tuple[list[str], list[str]]:
    """The hours for which a tariff states no price, and those for which it states two, in words."""
    claims: dict[tuple[int, int, int], int] = {}
    for band in bands:
        for month in set(band.months):
            for weekday in set(band.weekdays):
                for hour in set(band.hours):
                    claims[month, weekday, hour] = claims.get((month, weekday, hour), 0) + 1
    every = [(m, w, h) for m in range(1, 13) for w in range(7) for h in range(24)]
    return (
        _in_words([each for each in every if each not in claims]),
        _in_words([each for each in every if claims.get(each, 0) > 1]),
    )


def _in_words(hours: Iterable[tuple[int, int, int]]) -> list[str]:
    """Hours as people name them: ``Saturday, Sunday 22-24 h, in January to March``."""
    by_day: dict[tuple[int, int], list[int]] = {}
    for month, weekday, hour in hours:
        by_day.setdefault((month, weekday), []).append(hour)
    by_month: dict[int, dict[str, list[int]]] = {}
    for (month, weekday), found in by_day.items():
        by_month.setdefault(month, {}).setdefault(_runs(found, 1), []).append(weekday)
    lines: dict[str, list[int]] = {}
    for month, days in by_month.items():
        for text, weekdays in days.items():
            who = "every day" if len(weekdays) == 7 else ", ".join(DAYS[day] for day in weekdays)
            lines.setdefault(f"{who} {text} h", []).append(month)
    return [
        text if len(months) == 12 else f"{text}, in {_named(months)}"
        for text, months in lines.items()
    ]


def _runs(numbers: Sequence[int], beyond: int) -> str:
    """``0-6, 22-24`` of hours, each to its end."""
    runs: list[list[int]] = []
    for each in numbers:
        if runs and runs[-1][1] == each:
            runs[-1][1] = each + beyond
        else:
            runs.append([each, each + beyond])
    return ", ".join(f"{first}-{last}" for first, last in runs)


def _named(months: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for each in months:
        if runs and runs[-1][1] == each - 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return ", ".join(
        MONTHS[a - 1] if a == b else f"{MONTHS[a - 1]} to {MONTHS[b - 1]}" for a, b in runs
    )
