"""Gaps and differences as a person reads them: what to fill in first, and what changed since before.

Decides words and digits alone. A gap that moves nothing is left out of the text and kept in JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.text import safe
from ouvrage.books.against_plan import AgainstPlan
from ouvrage.books.gaps import UNSEEN_LOAD, Gap, held_text, range_text
from ouvrage.books.variance import PARTS, Variance
from ouvrage.pricing.words import mark

WORDS = {
    "idle_power_w": "power while idle",
    "load_power_w": "power under load",
    "pue": "cooling (PUE)",
    "electricity": "price of electricity",
    "fee": "the channel's fee",
    "payout_fee": "fee for a payout",
    "support_price": "worth of an hour of support",
    "support_hours_month": "hours of support a month",
    "opportunity_rate": "what money earns elsewhere",
    "depreciation": "price of purchase",
}


def worth_filling(gaps: Sequence[Gap]) -> list[Gap]:
    """The gaps that move the margin, or without which there is none."""
    return [gap for gap in gaps if gap.moves is None or gap.most]


def name_of(gap: Gap) -> str:
    """``power under load of node:n1`` in words."""
    words = WORDS.get(gap.what, gap.what.replace("_", " "))
    first = gap.abouts[0].partition(":")[2] if gap.abouts else ""
    more = f" and {len(gap.abouts) - 1} more" if len(gap.abouts) > 1 else ""
    return safe(f"{words}, {first}{more}" if first else words)


def moves_text(gap: Gap, plain: bool) -> str:
    """``−41.20 … +12.00``: the margin at the two ends, the lower one first."""
    if gap.moves is None:
        return "no margin without it"
    low, high = sorted(gap.moves)
    return f"{signed(low)} {'to' if plain else '…'} {signed(high)}"


def signed(value: Fraction) -> str:
    """``+12.00``, ``-3.10``, ``0``."""
    text = fixed(value, 2)
    return "0" if Fraction(text) == 0 else text if value < 0 else f"+{text}"


def gap_rows(gaps: Sequence[Gap], plain: bool) -> list[Sequence[str]]:
    """A row for each gap: what, as assumed, plausible, what the margin would do, how to fill it."""
    to = " to " if plain else "–"
    return [
        (
            name_of(gap),
            held_text(gap) + (mark(Grade.ASSUMED, plain) if gap.held is not None else ""),
            range_text(gap, to),
            moves_text(gap, plain),
        )
        for gap in gaps
    ]


def weakest_line(gaps: Sequence[Gap], currency: str, plain: bool) -> str | None:
    """The figure that is worth least, and how far it could move the margin; None where none could."""
    first = next((gap for gap in worth_filling(gaps) if gap.moves is not None), None)
    if first is None or first.moves is None:
        return None
    to = " to " if plain else "–"
    held = f"{held_text(first)} assumed, plausibly {range_text(first, to)}"
    held = held_text(first) if first.what == UNSEEN_LOAD else held
    return (
        f"the weakest figure is {name_of(first)} ({held}): "
        f"it could move the margin by {moves_text(first, plain)} {currency}"
    )


def variance_line(found: Variance, before: str) -> str:
    """``+12.30 against October 2026: price -3.00 · volume +20.00 · …``; for one that is divided."""
    parts = " · ".join(f"{name} {signed((found.parts or {})[name])}" for name in PARTS)
    return f"{signed(found.after - found.before)} against {before}: {parts}"


def plan_lines(plans: Sequence[AgainstPlan], plain: bool) -> list[str]:
    """A result against its plan, and the costs that the plan does not name; nothing without a plan."""
    lines: list[str] = []
    for each in plans:
        numbers = " and ".join(str(number) for number in each.numbers)
        share = "" if each.whole else ", in proportion to its time"
        which = (
            f"the plan of {safe(each.about)} (version {numbers}{mark(each.grade, plain)}{share})"
        )
        if each.found.parts is None:
            lines.append(f"not divided against {which}: {safe(each.found.why or '')}")
        else:
            lines.append(variance_line(each.found, which))
        beside = ", ".join(
            f"{line.removeprefix('cost.').replace('_', ' ')} {fixed(amount, 2)}"
            for line, amount in each.beside.items()
        )
        lines += [f"not in the plan, and not compared: {beside}"] if beside else []
    return lines


def plan_json(each: AgainstPlan) -> dict[str, Any]:
    """A result against its plan as ``--json`` prints it."""
    return {
        "about": each.about,
        "versions": list(each.numbers),
        "whole_period": each.whole,
        "grade": each.grade.word,
        "planned": _text(each.found.before),
        "came": _text(each.found.after),
        "difference": _text(each.found.after - each.found.before),
        "parts": _parts_json(each.found),
        "why": each.found.why,
        "compared_costs": list(each.planned),
        "not_planned": {line: _text(amount) for line, amount in each.beside.items()},
        "facts": list(each.facts),
    }


def _parts_json(found: Variance) -> dict[str, str | None] | None:
    parts = found.parts
    return None if parts is None else {name: _text(value) for name, value in parts.items()}


def gap_json(gap: Gap) -> dict[str, Any]:
    """A gap as ``--json`` prints it."""
    ends = {name: _text(value) for name, value in (("low", gap.low), ("high", gap.high))}
    return {
        "what": gap.what,
        "about": list(gap.abouts),
        "unit": gap.unit,
        "assumed": _text(gap.held),
        **ends,
        "moves": None if gap.moves is None else [_text(move) for move in gap.moves],
        "source": gap.source,
        "why": gap.why,
        "fill": gap.fill,
    }


def variance_json(found: Variance, before: str) -> dict[str, Any]:
    """A difference as ``--json`` prints it."""
    return {
        "period": before,
        "margin_before": _text(found.before),
        "difference": _text(found.after - found.before),
        "parts": _parts_json(found),
        "why": found.why,
    }


def _text(value: Fraction | None) -> str | None:
    return None if value is None else decimal_text(value)
