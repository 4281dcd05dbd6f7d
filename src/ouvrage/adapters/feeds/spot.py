"""Hourly market prices of power from a table or from aWATTar's JSON, a statement for each whole day.

Decides which column is the moment and which the price, that a price per MWh is a thousandth per kWh, and
that a day of the market's zone (23, 24 or 25 hours) counts only when every step of it is there: a day
with a hole is told and left out, since a price that nobody stated is not the one beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ouvrage.adapters.feeds.moments import day_period, moment_of, wall_moment
from ouvrage.adapters.feeds.table import amount_text, column, decimal_sign, rows_of
from ouvrage.adapters.feeds.told import Told, amount_in
from ouvrage.adapters.json_text import load_json
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import HOUR, MINUTE
from ouvrage.books.period import day_of
from ouvrage.ledger.stated import Stated
from ouvrage.model.tariffs import SpotPrices

STEPS = (15 * MINUTE, 30 * MINUTE, HOUR)
_TIMES = ("timestamp", "start_timestamp", "start", "datetime", "time", "utc_timestamp", "date")
_PER = {"mwh": Fraction(1, 1000), "kwh": Fraction(1)}
_WALLS = ("", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Whose prices: ``site``, ``currency``; ``zone`` of its days and of moments that name none.

    ``time_column`` and ``price_column`` where a person names them, ``unit`` ``MWh`` or ``kWh``.
    """

    site: str
    currency: str
    zone: str
    time_column: str | None = None
    price_column: str | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """From ``at_us`` on a kilowatt-hour costs ``price``; ``place`` is where a file says so."""

    at_us: int
    price: Fraction
    place: str


def read_spot(text: str, told: Told, asked: Asked) -> None:
    """The whole days of prices in a file, as statements in ``told``. Raises ``OuvrageError`` ``spot/...``."""
    found = (
        _of_json(text, told, asked) if text.lstrip()[:1] in "{[" else _of_table(text, told, asked)
    )
    told.stated += _days(_in_turn(found, told), told, asked)


def _of_json(text: str, told: Told, asked: Asked) -> list[Point]:
    value = load_json(told.file, text, "spot/json")
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise _no_prices(told)
    found: list[Point] = []
    for number, row in enumerate(rows):
        told.rows += 1
        place = f"data[{number}]"
        if not isinstance(row, Mapping):
            told.fault(place, "row", row, "an object with start_timestamp and marketprice")
            continue
        at_us, price = moment_of(row.get("start_timestamp")), amount_in(row.get("marketprice"))
        unit = str(row.get("unit") or asked.unit or "MWh").rpartition("/")[2].lower()
        if at_us is None or price is None or unit not in _PER:
            told.fault(
                place, "marketprice", row.get("marketprice"), "a price, its moment and a unit"
            )
            continue
        found.append(Point(at_us=at_us, price=Fraction(price) * _PER[unit], place=place))
    return found


def _of_table(text: str, told: Told, asked: Asked) -> list[Point]:
    rows = rows_of(told, text, None)
    names = [str(name) for name in rows[0].cells] if rows else []
    when = asked.time_column or column(rows, _TIMES) or _named(names, ("MTU", "time", "date"))
    price = asked.price_column or _named(names, ("price",))
    if when not in names or price not in names:
        raise _no_prices(told)
    unit = (asked.unit or ("kWh" if "kwh" in price.lower() else "MWh")).lower()
    sign = decimal_sign(str(row.cells.get(price) or "") for row in rows) or "."
    found: list[Point] = []
    before: int | None = None
    for row in rows:
        written = str(row.cells.get(when) or "")
        at_us = _moment(written, asked.zone, before)
        amount = amount_text(row.cells.get(price), sign)
        if at_us is None or amount is None:
            name, value = (when, written) if at_us is None else (price, row.cells.get(price))
            told.fault(row.place, name, value, "a moment" if at_us is None else "a price")
            continue
        before = at_us + 1  # an hour named twice in a row is the second of the two
        found.append(Point(at_us=at_us, price=Fraction(amount) * _PER[unit], place=row.place))
    return found


def _named(names: Iterable[str], words: Sequence[str]) -> str:
    """The first name that holds one of some words; empty for none."""
    every = list(names)
    return next((name for word in words for name in every if word.lower() in name.lower()), "")


def _moment(text: str, zone: str, before: int | None) -> int | None:
    """A moment with its zone, in seconds since 1970, or by the clock of the market's zone."""
    begins = re.split(r"\s+-\s+", text.strip())[0]  # ENTSO-E writes both ends of an hour
    begins = re.sub(r"\s*\((?:CET|CEST|UTC|[A-Z]{3,4})(?:/[A-Z]{3,4})?\)$", "", begins)
    found = moment_of(begins)
    for form in _WALLS if found is None else ():
        found = wall_moment(begins, form, zone, before)
        if found is not None:
            break
    return found


def _no_prices(told: Told) -> OuvrageError:
    return OuvrageError(
        "spot/form", f"{told.file} holds no prices with their moments", where=(told.file,),
        hint="name the columns: --time-column NAME --price-column NAME",
    )  # fmt: skip


def _in_turn(found: Iterable[Point], told: Told) -> list[Point]:
    """The prices in order of time; two different ones of one moment are a fault, and neither counts."""
    by_moment: dict[int, Point] = {}
    double: set[int] = set()
    for point in found:
        held = by_moment.setdefault(point.at_us, point)
        if held.price != point.price:
            told.fault(point.place, "price", decimal_text(point.price), f"that of row {held.place}")
            double.add(point.at_us)
    return [point for at, point in sorted(by_moment.items()) if at not in double]


def _days(points: Sequence[Point], told: Told, asked: Asked) -> list[Stated]:
    by_day: dict[tuple[int, int], list[Point]] = {}
    for point in points:
        period = day_period(day_of(point.at_us, asked.zone), asked.zone)
        by_day.setdefault(period, []).append(point)
    stated: list[Stated] = []
    for (begins, ends), inside in by_day.items():
        step = min((b.at_us - a.at_us for a, b in pairwise(inside)), default=0)
        expected = list(range(begins, ends, step)) if step in STEPS else []
        if [point.at_us for point in inside] != expected:
            day = day_of(begins, asked.zone)
            missing = max(1, len(expected) - len(inside))
            told.fault(inside[0].place, f"day {day}", f"{len(inside)} prices",
                       f"one for every step of the day; {missing} or more are missing")  # fmt: skip
            continue
        stated.append(_stated(begins, ends, step, inside, asked))
    return stated


def _stated(begins: int, ends: int, step: int, inside: Sequence[Point], asked: Asked) -> Stated:
    value = SpotPrices(
        site=asked.site, currency=asked.currency, step_us=step,
        per_kwh=tuple(decimal_text(point.price) for point in inside),
    )  # fmt: skip
    return Stated(
        natural=f"spot/{asked.site}/{day_of(begins, asked.zone)}", value=value,
        subject=f"site:{asked.site}", valid_from=begins, valid_to=ends, grade=Grade.LISTED,
    )  # fmt: skip
