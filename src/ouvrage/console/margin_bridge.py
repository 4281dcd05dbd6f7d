"""The picture of a margin: from revenue down to what is left, a row a cost, each labelled where it ends.

Decides how it is drawn. Rows rather than columns, so that long names stand level and are read; totals are
filled and costs outlined, so that a grey print can be read as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ouvrage.base.numbers import fixed
from ouvrage.books.bridge import Step, scale_of
from ouvrage.console import svg
from ouvrage.console.pictures import WIDTH
from ouvrage.console.svg import element, hover, number, picture, text
from ouvrage.pricing.words import mark

ROW = 24.0
BAR = 15.0


def margin_bridge(name: str, title: str, steps: Sequence[Step], currency: str) -> str:
    """The bridge as SVG; ``name`` makes its ids unique on a page. There must be a step."""
    least, most = scale_of(tuple(steps))
    labels = [f"{fixed(step.amount, 2)} {currency}{mark(step.grade, False)}" for step in steps]
    left = max(svg.text_width(step.name) for step in steps) + 14
    right = max(svg.text_width(label) for label in labels) + 30  # totals stand in bold

    def across(amount: Fraction) -> float:
        share = float((amount - least) / (most - least)) if most > least else 0.0
        return left + (WIDTH - left - right) * share

    zero, height = across(Fraction(0)), ROW * len(steps) + 8
    parts = [element("path", d=f"M{number(zero)},0V{number(height)}", class_="axis")]
    for index, (step, label) in enumerate(zip(steps, labels, strict=True)):
        y = 6 + ROW * index
        x, end = sorted((across(step.begin), across(step.end)))
        kind = "total" if step.total else ("more" if step.amount > 0 else "less")
        strong = "label strong" if step.total else "label"
        parts.append(text(left - 10, y + 12, step.name, anchor="end", kind=strong))
        parts.append(
            element(
                "rect", hover(f"{step.name} {label}"), x=x, y=y, width=max(end - x, 1.0), height=BAR,
                class_=f"pier {kind}",
            )
        )  # fmt: skip
        parts.append(text(end + 8, y + 12, label, kind=strong))
        if index + 1 < len(steps):
            foot = number(across(step.end))
            parts.append(
                element("path", d=f"M{foot},{number(y + BAR)}V{number(y + ROW)}", class_="leader")
            )
    desc = "; ".join(f"{step.name}: {label}" for step, label in zip(steps, labels, strict=True))
    return picture(name, WIDTH, height, title, desc, *parts)
