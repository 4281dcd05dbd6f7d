"""A price: an amount of one currency per something, kept as it was stated.

Never turned into another unit and stored: 3.49/h has no exact price per second. A cost is computed
as quantity x amount / quantity per price, as an exact fraction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import DAY, HOUR, MINUTE, SECOND

PER_US = {"s": SECOND, "min": MINUTE, "h": HOUR, "day": DAY}
TIME_WORDS = {
    "sec": "s",
    "second": "s",
    "m": "min",
    "minute": "min",
    "hr": "h",
    "hour": "h",
    "d": "day",
}
CURRENCY_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}
_WRITTEN = re.compile(
    r"(?P<sign>[$€£])?\s*(?P<amount>[+-]?[0-9]*\.?[0-9]+)\s*(?P<currency>[A-Z]{3})?"
    r"\s*(?:/\s*(?P<per>[A-Za-z][A-Za-z0-9_-]*))?",
    re.ASCII,
)
LONGEST_AMOUNT = 36
"""Characters of an amount as typed; a zero may be added in front of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """``amount`` of ``currency`` per ``per`` (one of ``PER_US``); ``amount`` is decimal text."""

    amount: str
    currency: str
    per: str

    def cost_of(self, duration_us: int | Fraction) -> Fraction:
        """What a duration costs at this price, exactly."""
        return Fraction(Decimal(self.amount)) * Fraction(duration_us) / PER_US[self.per]

    def text(self) -> str:
        """``0.30 EUR/h``."""
        return f"{self.amount} {self.currency}/{self.per}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An amount as people write one: decimal text, the currency it names, what it is for."""

    amount: str
    currency: str | None
    per: str | None


def written(text: str) -> Written | None:
    """Read ``0.30 EUR/h``, ``$0.30``, ``0.25/kWh``, ``0.10 USD/GB-month``; None for anything else.

    The one place that knows how an amount is written; what it may be for is decided by whoever asks.
    """
    match = _WRITTEN.fullmatch(text.strip())
    if not match:
        return None
    currency = match["currency"] or CURRENCY_SIGNS.get(match["sign"] or "")
    return Written(amount=match["amount"].lstrip("+"), currency=currency, per=match["per"])


def parse_price(text: str, currency: str | None = None) -> Price:
    """Read ``0.30/h``, ``0.30 EUR/h`` or ``$0.30/h``.

    ``currency`` decides where the text names none (default ``EUR``) and must agree where it does.
    Raises ``OuvrageError`` ``price/...``: unreadable, without unit, negative, two currencies.
    """
    found = written(text)
    if found is None:
        raise _bad("price/unreadable", f"{text!r} is not a price")
    if found.per is None:
        raise _bad("price/no-unit", f"{text!r} does not say what it is per")
    per = TIME_WORDS.get(found.per, found.per)
    if per not in PER_US:
        raise _bad("price/unknown-unit", f"{text!r}: prices are per s, min, h or day")
    if Decimal(found.amount) < 0:
        raise _bad("price/negative", f"{text!r} is negative")
    if len(found.amount) > LONGEST_AMOUNT:
        raise _bad("price/too-long", f"an amount has at most {LONGEST_AMOUNT} characters")
    named = found.currency
    if currency is not None and not re.fullmatch("[A-Z]{3}", currency):
        raise _bad("price/currency", f"{currency!r} is not a currency code such as EUR")
    if named and currency and named != currency:
        raise _bad("price/two-currencies", f"{text!r} is in {named}, --currency says {currency}")
    return Price(amount=_tidy(found.amount), currency=named or currency or "EUR", per=per)


def _tidy(amount: str) -> str:
    value = Decimal(amount)
    places = max(0, -int(value.as_tuple().exponent))
    text = decimal_text(value)
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(places, '0')}" if places else whole


def _bad(code: str, message: str) -> OuvrageError:
    return OuvrageError(code, message, hint="write an amount per unit of time: --price 0.30/h")
