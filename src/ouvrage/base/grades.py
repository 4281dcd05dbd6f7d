"""Evidence grades: how much a figure is worth, best first, and how grades combine.

A derived figure carries the weakest grade among its inputs and the share of its value that stands
at each grade. Grades never mix in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from fractions import Fraction


class Grade(IntEnum):
    """Grades, best first; a larger number is weaker evidence."""

    MEASURED = 0
    METERED = 1
    REPORTED = 2
    LISTED = 3
    ASSUMED = 4
    SIMULATED = 5

    @property
    def word(self) -> str:
        """The grade as JSON and ``--plain`` print it."""
        return self.name.lower()

    @property
    def mark(self) -> str:
        """The grade as one character beside a figure."""
        return _MARKS[self]


_MARKS = {
    Grade.MEASURED: "●",
    Grade.METERED: "◐",
    Grade.REPORTED: "○",
    Grade.LISTED: "○",
    Grade.ASSUMED: "?",
    Grade.SIMULATED: "◌",
}

Shares = Mapping[Grade, Fraction]
"""Share of a value at each grade; the shares add up to 1."""


def grade_of(word: str) -> Grade:
    """The grade named by a word; ``KeyError`` for any other word."""
    return Grade[word.upper()]


def weakest(grades: Iterable[Grade]) -> Grade:
    """The weakest of some grades; ``ValueError`` for none, since nothing has no grade."""
    return max(grades)


def whole(grade: Grade) -> Shares:
    """Shares of a value that stands entirely at one grade."""
    return {grade: Fraction(1)}


def weighted_shares(parts: Iterable[tuple[Fraction, Shares]]) -> Shares:
    """Shares of a sum whose parts have these weights (non-negative) and shares."""
    total = Fraction(0)
    sums: dict[Grade, Fraction] = {}
    for weight, shares in parts:
        total += weight
        for grade, share in shares.items():
            sums[grade] = sums.get(grade, Fraction(0)) + weight * share
    if not total:
        return {}
    return {grade: value / total for grade, value in sorted(sums.items()) if value}
