"""What two sides say of one thing, how far they are apart, and what may be the cause.

Decides nothing about causes; it holds that both sides are shown, and that the parts whose amount is
known and the rest add up to the difference. A rest is told, never moved to either side.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A likely cause in words; ``amount`` is its part of the difference, None where nobody can say.

    ``usual``: it belongs there (a fee, a count that ends before its date) and nothing is wrong.
    """

    words: str
    amount: Fraction | None = None
    usual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side says: its ``words``, the ``amount`` and what that is worth."""

    words: str
    amount: Fraction
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``theirs`` (a bill, a payout) against ``ours`` (the record), in ``unit``.

    ``name`` is how a person names it elsewhere: ``electricity/2026-117``; ``what`` says it in words.
    """

    name: str
    what: str
    unit: str
    theirs: Side
    ours: Side
    causes: tuple[Cause, ...]
    facts: tuple[str, ...]

    @property
    def amount(self) -> Fraction:
        """Theirs less ours."""
        return self.theirs.amount - self.ours.amount

    @property
    def rest(self) -> Fraction:
        """What no cause of a known amount explains."""
        return self.amount - sum((each.amount or Fraction(0) for each in self.causes), Fraction(0))


SAME = Fraction(1, 200)
"""Half of the last digit that bills and payouts print: amounts that differ by no more are the same."""
NEAR = Fraction(1, 50)
"""A difference beyond the usual of more than this share of what the other side says is an open matter."""


def settled(found: Difference) -> bool:
    """Whether what is beyond the usual is too little to ask about."""
    usual = sum((each.amount or Fraction(0) for each in found.causes if each.usual), Fraction(0))
    return abs(found.amount - usual) <= max(SAME, abs(found.theirs.amount) * NEAR)
