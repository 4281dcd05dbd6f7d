"""From revenue to margin in steps: what each cost takes away, as values and as bars of text.

Decides the order of the steps and that each that is not nothing is shown; the amounts are the
statement's own figures, so that the steps lead from its revenue to its margin exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.books.pnl import COSTS
from ouvrage.books.pnl_text import WORDS
from ouvrage.evidence.figures import Sheet
from ouvrage.pricing.words import mark

WIDTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its name, from which amount to which it leads, and the grade of its own amount.

    A ``total`` begins at nothing: revenue and margin.
    """

    name: str
    begin: Fraction
    end: Fraction
    grade: Grade | None
    total: bool

    @property
    def amount(self) -> Fraction:
        """What it adds, or takes away where it is negative."""
        return self.end - self.begin


def bridge_of(sheet: Sheet) -> tuple[Step, ...]:
    """The steps of a sheet of the books. Raises ``OuvrageError`` ``books/bridge`` where one is unknown."""
    revenue, margin = sheet["revenue.total"], sheet["margin.net"]
    at, left = sheet.number("revenue.total"), sheet.number("margin.net")
    if at is None or left is None:
        why = margin.why or revenue.why or ""
        raise OuvrageError("books/bridge", f"no bridge leads to a margin that is not known: {why}")
    steps = [Step(name="revenue", begin=Fraction(0), end=at, grade=revenue.grade, total=True)]
    for name in COSTS:
        figure, cost = sheet[f"cost.{name}"], sheet.number(f"cost.{name}") or Fraction(0)
        if cost:
            words = WORDS.get(name, name)
            steps.append(Step(name=words, begin=at, end=at - cost, grade=figure.grade, total=False))
            at -= cost
    steps.append(Step(name="margin", begin=Fraction(0), end=left, grade=margin.grade, total=True))
    return tuple(steps)


def scale_of(steps: tuple[Step, ...]) -> tuple[Fraction, Fraction]:
    """The least and the most that any step reaches; nothing is always among them."""
    ends = [end for step in steps for end in (step.begin, step.end)]
    return min(ends), max(ends)


def bridge_lines(steps: tuple[Step, ...], currency: str, plain: bool) -> list[str]:
    """A line a step: its name, its bar (``█`` a total, ``▒`` a cost; ``#`` and ``=`` in plain), its amount."""
    least, most = scale_of(steps)
    length = max(len(step.name) for step in steps)
    digits = max(len(_amount(step)) for step in steps)
    full, part = ("#", "=") if plain else ("█", "▒")
    lines: list[str] = []
    for step in steps:
        first, last = (
            round((end - least) / (most - least) * WIDTH) if most > least else 0
            for end in sorted((step.begin, step.end))
        )
        bar = " " * first + (full if step.total else part) * max(1, last - first)
        amount = f"{_amount(step):>{digits}} {currency}{mark(step.grade, plain)}"
        lines.append(f"  {step.name:<{length}}  {bar:<{WIDTH + 1}} {amount}")
    return lines


def _amount(step: Step) -> str:
    """With its sign where it is a step; a total stands by itself."""
    return fixed(step.amount, 2)
