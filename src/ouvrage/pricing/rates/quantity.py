"""Quantities and rates as a plan writes them: ``60 s``, ``10 TB``, ``0.10/GB-month``.

Decides which units convert into which. Bytes convert exactly, and what a provider means by GB (10⁹
or 2³⁰ bytes) is data of its plan; times convert exactly; a month converts only by a stated length,
and nothing else converts at all. Amounts stay as they were written: no rate is turned into another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import LONGEST_AMOUNT, PER_US, TIME_WORDS, written
from ouvrage.base.time import SECOND

GB_DECIMAL = 10**9
GB_BINARY = 2**30
MONTH = "month"
PLACES = 4

_PREFIXES = "kMGTP"
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"
_MEASURE = re.compile(rf"(?P<amount>{_NUMBER})\s*(?P<unit>[A-Za-z][A-Za-z0-9_-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """``amount`` for each ``unit`` (None: for the thing itself), for each ``per`` (None: once).

    ``text`` is the amount as it was written; ``currency`` is None where a plan's own decides.
    """

    amount: Fraction
    text: str
    unit: str | None = None
    per: str | None = None
    currency: str | None = None

    @property
    def basis(self) -> str:
        """What the amount is for: ``GB-month``, ``h``, or nothing."""
        return "-".join(part for part in (self.unit, self.per) if part)

    def words(self, currency: str) -> str:
        """``0.10 USD/GB-month``."""
        return f"{self.text} {currency}" + (f"/{self.basis}" if self.basis else "")


def parse_rate(text: str) -> Rate:
    """Read ``2.52/h``, ``0.10 USD/GB-month``, ``0.09/GB``, ``3.99/GPU-h`` or ``500``.

    ``ValueError`` when the text is none of these.
    """
    found = written(text)
    if found is None or found.amount.startswith("-") or len(found.amount) > LONGEST_AMOUNT:
        raise ValueError("a rate such as 2.52/h, 0.10/GB-month or 0.09/GB")
    unit, per = _basis(found.per)
    return Rate(
        amount=Fraction(found.amount),
        text=found.amount,
        unit=unit,
        per=per,
        currency=found.currency,
    )


def _basis(text: str | None) -> tuple[str | None, str | None]:
    if text is None:
        return None, None
    unit, _, last = text.rpartition("-")
    per = time_unit(last)
    if per is not None:
        return unit_name(unit) if unit else None, per
    return unit_name(text), None


def time_unit(word: str) -> str | None:
    """The normal name of a unit of time, or None."""
    name = TIME_WORDS.get(word, word)
    if name.endswith("s") and len(name) > 1:
        name = TIME_WORDS.get(name[:-1], name[:-1])
    return name if name in PER_US or name == MONTH else None


def unit_name(word: str) -> str:
    """The normal name of a unit: bytes as they are, nouns in small letters and singular."""
    if _byte_scale(word, GB_DECIMAL) is not None:
        return word
    small = word.lower()
    return small[:-1] if small.endswith("s") and len(small) > 2 and small[-2] != "s" else small


def _byte_scale(unit: str, gb: int) -> int | None:
    """Bytes in a unit, None for what is not made of bytes. ``KB`` is read as ``kB``."""
    if unit == "B":
        return 1
    letter, rest = ("k" if unit[:1] == "K" else unit[:1]), unit[1:]
    if rest not in ("B", "iB") or not letter or letter not in _PREFIXES:
        return None
    power = _PREFIXES.index(letter) + 1
    return 1024**power if rest == "iB" or gb == GB_BINARY else 1000**power


def converted(amount: Fraction, unit: str, to: str, gb: int) -> Fraction | None:
    """The amount in another unit, exactly; None when the two do not measure the same thing."""
    unit, to = unit_name(unit), unit_name(to)
    if unit == to:
        return amount
    have, want = _byte_scale(unit, gb), _byte_scale(to, gb)
    if have is not None and want is not None:
        return amount * have / want
    before, after = time_unit(unit), time_unit(to)
    if before in PER_US and after in PER_US:
        return amount * PER_US[before] / PER_US[after]
    return None


def measure(text: str) -> tuple[Fraction, str]:
    """``10 TB`` as an amount and a unit; ``ValueError`` otherwise."""
    match = _MEASURE.fullmatch(text.strip())
    if not match:
        raise ValueError("an amount and a unit, such as 10 TB")
    return Fraction(match["amount"]), match["unit"]


def duration_us(text: str) -> int:
    """``60 s`` or ``730 h`` in microseconds; ``ValueError`` for what is no whole number of them."""
    amount, unit = measure(text)
    name = time_unit(unit)
    if name is None or name == MONTH:
        raise ValueError("a duration such as 60 s, 1 h or 7 day")
    us = amount * PER_US[name]
    if us.denominator != 1:
        raise ValueError("a duration of whole microseconds")
    return int(us)


def plain_number(value: object) -> Fraction:
    """An exact number from text or from a TOML or CSV value; ``ValueError`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError("a decimal number such as 0.10")
    text = str(value).strip()
    if not re.fullmatch(rf"-?{_NUMBER}", text):
        raise ValueError("a decimal number such as 0.10")
    return Fraction(text)


def money_text(value: Fraction) -> str:
    """An amount of money: never cut where its decimals end, and at least four of them."""
    text = decimal_text(value)
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.ljust(PLACES, '0')}"


def seconds_text(us: int | Fraction) -> str:
    """Microseconds as seconds, in plain decimal text."""
    whole, rest = divmod(us, SECOND)
    return decimal_text(Fraction(us) / SECOND) if rest else str(whole)
