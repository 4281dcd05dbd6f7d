"""Tiers and free allowances: which part of a quantity is priced at which rate.

Decides marginal tiers (each part at its own rate) and whole-quantity tiers (all at the rate of the
tier reached), after the free allowance. What is added up, and for how long, is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.pricing.rates.plan import Tier
from ouvrage.pricing.rates.quantity import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of a quantity with one rate (None: free), and where it lies, in words."""

    quantity: Fraction
    rate: Rate | None
    words: str


def slices(
    before: Fraction, quantity: Fraction, free: Fraction, tiers: Sequence[Tier]
) -> list[Slice]:
    """A quantity that comes after ``before`` of the same group, each part at its own rate."""
    if not free and len(tiers) == 1:
        return [Slice(quantity=quantity, rate=tiers[0].rate, words="")] if quantity else []
    found: list[Slice] = []
    allowed = min(quantity, max(Fraction(0), free - before))
    if allowed:
        found.append(Slice(quantity=allowed, rate=None, words="within the free allowance"))
    low = Fraction(0)
    start, end = max(before - free, Fraction(0)), max(before + quantity - free, Fraction(0))
    for number, tier in enumerate(tiers, 1):
        high = end if tier.up_to is None else min(end, tier.up_to)
        inside = high - max(start, low)
        if inside > 0:
            found.append(Slice(quantity=inside, rate=tier.rate, words=tier_words(number, tiers)))
        low = tier.up_to if tier.up_to is not None else low
    return found


def reached(total: Fraction, tiers: Sequence[Tier]) -> int:
    """The index of the tier that a whole quantity reaches; a bound belongs to the tier below it."""
    for index, tier in enumerate(tiers):
        if tier.up_to is None or total <= tier.up_to:
            return index
    return len(tiers) - 1


def tier_words(number: int, tiers: Sequence[Tier]) -> str:
    """``tier 2 of 4``, or nothing where there is one."""
    return f"tier {number} of {len(tiers)}" if len(tiers) > 1 else ""
