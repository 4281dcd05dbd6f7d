"""Amounts in one currency: what is stated in another is converted by a recorded rate or refused.

Decides which rate holds: that of the day itself or the latest day before it, of the same two
currencies in either direction. No rate is made from two others. A rate more than a week old is used
and said.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import number
from ouvrage.base.time import DAY, utc_text
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.model.offers import ExchangeRate

STALE_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """An amount in the books' currency: its grade, the facts it took, and what to say about it."""

    amount: Fraction
    grade: Grade
    keys: tuple[str, ...]
    note: str | None = None


def converted(
    record: OwnerRecord, amount: str, currency: str, into: str, at_us: int, known: Known[Any]
) -> Converted:
    """An amount of a fact in the books' currency. Raises ``OuvrageError`` ``books/fx-missing``."""
    value = number(amount)
    if currency == into or not value:
        return Converted(amount=value, grade=known.grade, keys=known.keys)
    rate = rate_at(record, currency, into, at_us)
    if rate is None:
        raise OuvrageError(
            "books/fx-missing",
            f"{amount} {currency} of {utc_text(at_us)[:10]} cannot be put into books in {into}",
            where=(known.key,),
            hint=f"ouvrage fx set {currency}/{into} RATE --day {utc_text(at_us)[:10]} --by WHO; it holds "
            "until a later one is stated",
        )
    age = (at_us - rate.valid_from) // DAY
    note = (
        f"the rate {currency}/{into} of {rate.value.day} is used for days more than {STALE_DAYS} "
        "days after it"
    )
    return Converted(
        amount=value * factor_of(rate.value, currency),
        grade=max(known.grade, rate.grade),
        keys=(*known.keys, *rate.keys),
        note=note if age > STALE_DAYS else None,
    )


def factor_of(rate: ExchangeRate, currency: str) -> Fraction:
    """What one of ``currency`` is worth in the rate's other currency."""
    value = Fraction(rate.rate)
    return value if rate.base == currency else 1 / value


def rate_at(
    record: OwnerRecord, currency: str, into: str, at_us: int
) -> Known[ExchangeRate] | None:
    """The latest rate between two currencies, either way round, that held at a moment."""
    pair = {currency, into}
    known = bisect_right(record.rates, at_us, key=lambda each: each.valid_from)
    return next(
        (
            record.rates[index]
            for index in range(known - 1, -1, -1)
            if {record.rates[index].value.base, record.rates[index].value.quote} == pair
        ),
        None,
    )
