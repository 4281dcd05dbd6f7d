"""Exact numbers: fractions inside, decimal text outside, and splits that lose nothing.

Money and rates are ``Fraction`` while they are computed and decimal text when they leave. A value
whose decimal form does not end is cut at 28 significant digits, half to even. Postings are integers of
nano-units of a currency.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

DIGITS = 28
NANO = 1_000_000_000
_MOST_DIGITS = 18
_context = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN)


@lru_cache(maxsize=65_536)
def number(text: str) -> Fraction:
    """The exact number of a decimal text; the same texts come again and again."""
    return Fraction(text)


def nano(value: Fraction) -> int:
    """An amount in whole nano-units, half to even."""
    whole, rest = divmod(value.numerator * NANO, value.denominator)
    doubled = 2 * rest - value.denominator
    return whole + (doubled > 0 or (doubled == 0 and whole % 2 == 1))


def whole(text: str) -> int | None:
    """A whole number of up to 18 ASCII digits, which every database holds; None for any other text."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


def decimal_in(text: str) -> Decimal:
    """A decimal as it is written; ``ValueError`` where its exponent is beyond what one can hold."""
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text[:40]} is a number beyond all bounds") from error


def decimal_text(value: Fraction | Decimal | int) -> str:
    """Plain decimal text: exact where the decimal form ends, else 28 significant digits."""
    fraction = Fraction(value)
    places = _terminating_places(fraction.denominator)
    if places is not None:
        scaled = fraction.numerator * (10**places // fraction.denominator)
        return _plain(Decimal(scaled).scaleb(-places, Context(prec=10_000)))
    return _plain(_context.divide(Decimal(fraction.numerator), Decimal(fraction.denominator)))


def _terminating_places(denominator: int) -> int | None:
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return "0" if Decimal(text) == 0 else text


def significant(value: Fraction, digits: int) -> str:
    """Plain decimal text with this many significant digits, half to even."""
    if not value:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )
    return f"{rounded:f}"


def fixed(value: Fraction, places: int) -> str:
    """Plain decimal text with this many decimal places, half to even."""
    scaled = round(value * 10**places)
    sign, digits = "-" if scaled < 0 else "", str(abs(scaled)).rjust(places + 1, "0")
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def split_whole(total: int, weights: Sequence[int | Fraction]) -> list[int]:
    """Split an integer by non-negative weights so that the parts add up to it exactly.

    Largest remainder; ties go to the earlier part. ``ValueError`` when no weight is positive.
    """
    weight_sum, each = sum(weights), set(weights)  # devices alike have the same weight
    if weight_sum <= 0 or min(each) < 0:
        raise ValueError("weights must be non-negative with a positive sum")
    shares = {weight: divmod(total * weight, weight_sum) for weight in each}
    parts = [int(shares[weight][0]) for weight in weights]
    left = total - sum(parts)
    if left:
        rests = [-shares[weight][1] for weight in weights]
        for i in sorted(range(len(parts)), key=rests.__getitem__)[:left]:
            parts[i] += 1
    return parts


def rounded_parts(total: int, parts: Sequence[int], bits: int) -> list[int]:
    """Integers near parts that stand in ``2 ** -bits``, of any sign, so that they add up to ``total``.

    Largest remainder; ties go to the earlier part. The parts add up to ``total`` but for less than one.
    """
    whole_parts = [part >> bits for part in parts]
    left = total - sum(whole_parts)
    if left:
        mask = (1 << bits) - 1
        rests = [-(part & mask) for part in parts]
        for i in sorted(range(len(parts)), key=rests.__getitem__)[:left]:
            whole_parts[i] += 1
    return whole_parts
