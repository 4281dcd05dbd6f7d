"""Rates of exchange in a CSV: a row a rate, or a row a day with a column for each currency.

Decides which of the two a file is by its line of names. The second is the layout of the European Central
Bank's ``eurofxref-hist.csv``: a day, then what one euro bought of each currency, ``N/A`` where it names
none (https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/). A rate that
is not positive, of a day to come, or said twice otherwise is a fault, by line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ouvrage.adapters.catalogues.rows import Row, number_in
from ouvrage.adapters.feeds.table import rows_of
from ouvrage.adapters.feeds.told import Told, key_part
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import DAY
from ouvrage.books.period import day_named, day_start
from ouvrage.ledger.stated import Stated
from ouvrage.model.offers import ExchangeRate

CENTRAL_BANK = "the European Central Bank's reference rates"
BASE_OF_BANK = "EUR"
_NAMES = ("date", "base", "quote", "rate")
_CODE = re.compile("[A-Z][A-Z0-9]{1,9}")
_NONE = ("", "N/A", "NA", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rates of a file are taken: ``currencies`` (none: all), from a day on, said by whom.

    ``now_us`` is the moment behind which no day can be.
    """

    currencies: frozenset[str]
    since_us: int
    said_by: str | None
    now_us: int


def is_bank_layout(text: str) -> bool:
    """Whether a file has a column for each currency, as the central bank's has."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    names = [name.strip().strip('"') for name in re.split("[,;\t]", head)]
    codes = [name for name in names[1:] if name]
    return (
        bool(codes)
        and names[0].lower() == "date"
        and all(re.fullmatch("[A-Z]{3}", c) for c in codes)
    )


def read_rates(text: str, told: Told, wanted: Wanted) -> None:
    """The rates of a file, as statements in ``told``; what cannot be read is a fault."""
    rows = rows_of(told, text, None)
    if is_bank_layout(text):
        found = (each for row in rows for each in _of_bank(row, wanted))
    else:
        names = _columns(rows, told.file, wanted)
        found = (each for row in rows for each in _of_row(row, names, wanted))
    seen: dict[str, str] = {}
    for row, name, rate in found:
        told.faults += row.faults
        row.faults.clear()
        if rate is None:
            continue
        stated = _stated(rate)
        before = seen.setdefault(stated.natural, rate.rate)
        if before != rate.rate:
            told.fault(row.place, name, rate.rate, f"one rate of a day; it was {before} before")
        elif all(each.natural != stated.natural for each in told.stated[-1:]):
            told.stated.append(stated)


Found = tuple[Row, str, ExchangeRate | None]


def _of_bank(row: Row, wanted: Wanted) -> Iterator[Found]:
    """The rates of one day, a column each."""
    cells = {str(name): row.text(str(name)) or "" for name in row.cells}
    day = next((name for name in cells if name.lower() == "date"), "Date")
    at_us = _day(row, day, cells.get(day, ""), wanted)
    yield row, day, None
    if at_us is None or at_us < wanted.since_us:
        return
    for code, said in cells.items():
        if (
            code in ("", day)
            or said in _NONE
            or (wanted.currencies and code not in wanted.currencies)
        ):
            continue
        rate = _rate(row, code, said)
        value = _value(cells[day], BASE_OF_BANK, code, rate, wanted.said_by or CENTRAL_BANK)
        yield row, code, value if rate else None


def _columns(rows: Sequence[Row], file: str, wanted: Wanted) -> dict[str, str]:
    """The column of each meaning, refused where one lacks."""
    have = {str(name).strip().lower(): str(name) for row in rows[:1] for name in row.cells}
    lacking = [name for name in _NAMES if name not in have]
    if rows and lacking:
        raise OuvrageError(
            "fx/columns", f"{file} has no column {lacking[0]}",
            where=(f"{file}:1   columns: found {','.join(have) or 'none'}, expected date,base,quote,rate",),
            hint="name the columns date, base, quote, rate, or give eurofxref-hist.csv as it is",
        )  # fmt: skip
    if rows and "by" not in have and wanted.said_by is None:
        raise OuvrageError(
            "fx/by", f"{file} does not say who says so", hint='--by "my bank", or a column named by'
        )
    return have


def _of_row(row: Row, names: Mapping[str, str], wanted: Wanted) -> Iterator[Found]:
    said = {name: row.text(column) or "" for name, column in names.items()}
    at_us = _day(row, names["date"], said["date"], wanted)
    for side in ("base", "quote"):
        if not _CODE.fullmatch(said[side]):
            row.fault(names[side], said[side], "a currency such as EUR")
    if said["base"] == said["quote"] and said["base"]:
        row.fault(names["quote"], said["quote"], "another currency than its base")
    rate = _rate(row, names["rate"], said["rate"])
    who = said.get("by") or wanted.said_by
    if who is None:
        row.fault(names["by"], None, "who says so, or --by")
    taken = not wanted.currencies or wanted.currencies & {said["base"], said["quote"]}
    if (
        row.faults
        or at_us is None
        or rate is None
        or who is None
        or not taken
        or at_us < wanted.since_us
    ):
        yield row, names["rate"], None
        return
    yield row, names["rate"], _value(said["date"], said["base"], said["quote"], rate, who)


def _day(row: Row, name: str, text: str, wanted: Wanted) -> int | None:
    """The first moment of a day that has come, in UTC; None with a fault for anything else."""
    try:
        at_us = day_start(day_named(text), "UTC")
    except ValueError:
        row.fault(name, text, "a day such as 2026-11-30")
        return None
    if at_us > wanted.now_us:
        row.fault(name, text, "a day that has come")
        return None
    return at_us


def _rate(row: Row, name: str, text: str) -> str | None:
    value = number_in(text)
    if not value:
        row.fault(name, text, "a rate above zero, with a decimal point")
        return None
    return decimal_text(value)


def _value(day: str, base: str, quote: str, rate: str | None, said_by: str) -> ExchangeRate:
    return ExchangeRate(base=base, quote=quote, rate=rate or "", day=day, said_by=said_by)


def _stated(rate: ExchangeRate) -> Stated:
    at_us = day_start(day_named(rate.day), "UTC")
    return Stated(
        natural=f"fx/{rate.base}/{rate.quote}/{rate.day}/{key_part(rate.said_by)}", value=rate,
        subject=f"fx:{rate.base}/{rate.quote}", valid_from=at_us, valid_to=at_us + DAY,
        grade=Grade.REPORTED,
    )  # fmt: skip
