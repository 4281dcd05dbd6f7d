"""A decision as a person reads it: the answer first, what speaks for and against, what would change it.

Decides words and digits; what is decided, and on which grounds, was settled before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.planning.channels import ChannelPay
from ouvrage.planning.decide import (
    GROW,
    HOLD,
    REPRICE,
    REPURPOSE,
    RETIRE,
    Course,
    Decision,
    Reason,
)
from ouvrage.planning.decision_case import Asked
from ouvrage.planning.intervals import Range
from ouvrage.pricing.words import mark, ranged

_NAMES = {
    "gain_per_day": "worth a day",
    "gain_if_demand_differs": "worth a day if demand answers otherwise",
    "utilisation": "sold",
    "downtime": "lost to faults and maintenance",
    "top_tenant": "hours with one tenant",
    "support": "support a month",
    "payback_months": "months until it is paid back",
}
WIDTH = 96


def decision_lines(
    asked: Asked, found: Decision, pay: Sequence[ChannelPay], plain: bool
) -> list[str]:
    """The whole answer, line by line."""
    lines = [answer(asked, found, plain), ""]
    for head, parts in _blocks(asked, found, pay, plain):
        lines += _folded(head, parts)
    if found.grade == Grade.SIMULATED:
        lines.append("  simulated: these days are made up, and decide nothing about a real machine")
    return [
        *lines,
        "",
        f"Ask again on {_day(found.ask_again)}      Every figure: {_command(asked)} --json",
    ]


def _command(asked: Asked) -> str:
    scope = asked.scope
    named = (("--class", scope.gpu_class), ("--node", scope.node))
    return " ".join(
        ["ouvrage plan decide", *(f"{option} {safe(name)}" for option, name in named if name)]
    )


def _day(found: date) -> str:
    return f"{found.day} {found:%B %Y}"


def answer(asked: Asked, found: Decision, plain: bool) -> str:
    """The first line."""
    if found.settled:
        return f"{_said(asked, found, plain)}."
    so_far = f" So far it points to {found.action.upper()}." if found.action else ""
    return f"Not yet: {safe(found.why_not or '')}.{so_far}"


def _said(asked: Asked, found: Decision, plain: bool) -> str:
    case, course = asked.case, found.course
    name = safe(case.name)
    if course is None:
        left = _with_range(found.figures["margin_per_day"], plain, case.currency, found.grade)
        return f"Hold: {name} leaves {left} a day after tax, and nothing else is surely worth more"
    worth = _with_range(course.gain, plain, case.currency, found.grade)
    said = {
        GROW: f"Grow: another machine like {name} would leave {worth} a day",
        RETIRE: f"Retire {name}: to stop it would save {worth} a day",
        REPURPOSE: f"Repurpose {name}: own work on it is worth {worth} a day more",
        REPRICE: f"Reprice {name} by {_percent(course.step or 0.0, plain)}: worth {worth} a day",
    }
    return said[course.action]


def _blocks(
    asked: Asked, found: Decision, pay: Sequence[ChannelPay], plain: bool
) -> Iterator[tuple[str, list[str]]]:
    begins, _, after = asked.period.name.partition("..")
    yield (
        "over",
        [
            f"{found.counted} days of record from {begins} up to {after}",
            "a range holds the truth 9 times in 10",
        ],
    )
    if not found.figures:
        return
    for_, against = _weighing(asked, found, plain)
    yield "for", for_
    yield "against", against
    if found.changes:
        yield "would change it", [_change_words(asked, change, plain) for change in found.changes]
    yield "weighed", [_course_words(asked, course, found, plain) for course in found.courses]
    if pay:
        yield "channels", [_channel_words(each, asked.case.currency) for each in pay]


def _weighing(asked: Asked, found: Decision, plain: bool) -> tuple[list[str], list[str]]:
    """What speaks for the answer, and what against it."""
    figures, currency = found.figures, asked.case.currency
    even = figures["break_even"].value
    needs = f"against a break-even of {_percent(even)}" if isfinite(even) else "and no hour pays"
    sold = f"sold {_share_range(figures['utilisation'], plain)} {needs}"
    left = _with_range(figures["margin_per_owned_hour"], plain, f"{currency}/h", found.grade)
    margin = f"{left} left per hour owned after tax"
    common = {
        "utilisation": (sold, figures["utilisation"].low > even),
        "margin": (margin, figures["margin_per_day"].low > 0),
        "downtime": (f"downtime {_share_range(figures['downtime'], plain)}", figures["downtime"].high < found.rules["grow_downtime"]),
    }  # fmt: skip
    good_is_for = found.action in (GROW, HOLD, REPRICE)
    for_ = [words for words, good in common.values() if good == good_is_for]
    against = [words for words, good in common.values() if good != good_is_for]
    course = found.course
    if course is not None:
        against += _assumed(course, found)
    elif found.courses:
        best = max(found.courses, key=lambda each: each.gain.value)
        failed = [_reason_words(each, plain) for each in best.reasons if not each.holds]
        for_ += [f"to {best.action}: {words}" for words in failed]
    if found.top_tenant is not None:
        tenant, share = found.top_tenant
        words = f"one tenant, {safe(tenant)}, makes {_percent(share)} of the hours"
        (against if share > 0.4 else for_).append(words)
    return for_, against


def _assumed(course: Course, found: Decision) -> list[str]:
    """What a course takes for granted."""
    rules = found.rules
    said = {
        GROW: [f"it is assumed that another one earns {_percent(rules['second_sells'])} of what this one does"],
        REPRICE: [
            "no other price was tried: it is assumed that 1 % less lets a GPU "
            f"{rules['elasticity']:g} % sooner ({rules['elasticity_low']:g} to {rules['elasticity_high']:g} leave a gain)"
        ],
        REPURPOSE: ["an hour of own use is worth what the owner says that it is"],
        RETIRE: [f"it is assumed that selling saves {_percent(rules['resale_share'])} of depreciation"],
    }  # fmt: skip
    return said[course.action]


def _reason_words(reason: Reason, plain: bool) -> str:
    """``sold 57 % (52–61), above 43 % needed``."""
    name = _NAMES.get(reason.name, reason.name)
    limit = _percent(reason.limit) if reason.unit == "1" else f"{reason.limit:.3g}"
    value = (
        _share_range(reason.value, plain)
        if reason.unit == "1"
        else _with_range(reason.value, plain)
    )
    unit = "" if reason.unit in ("1", "months") else f" {reason.unit}"
    surely = "" if reason.value.low == reason.value.high else "surely "
    return f"{name} {value}{unit}, not {surely}{reason.relation} {limit}"


def _course_words(asked: Asked, course: Course, found: Decision, plain: bool) -> str:
    step = f" by {_percent(course.step, plain)}" if course.step is not None else ""
    return f"{course.action}{step} {_with_range(course.gain, plain, asked.case.currency)} a day"


def _change_words(asked: Asked, change: Any, plain: bool) -> str:
    side = "below" if change.below else "above"
    at = (
        f"{_number(change.value)} {asked.case.currency}/h"
        if change.what == "price"
        else _percent(change.value)
    )
    return f"{change.what} {side} {at} ({change.action})"


def _channel_words(pay: ChannelPay, currency: str) -> str:
    paid = (
        "payment not seen" if pay.delay_days is None else f"paid after {round(pay.delay_days)} days"
    )
    return (
        f"{safe(pay.channel)} {_number(pay.per_owned_hour)} {currency} per hour taken "
        f"({round(pay.sold_h)} h let, {round(pay.waited_h)} h waited for, {paid})"
    )


def _number(value: float) -> str:
    return ranged(Fraction(value), None, None, False)[0]


def _with_range(value: Range, plain: bool, unit: str = "", grade: Grade | None = None) -> str:
    shown, ends = ranged(Fraction(value.value), Fraction(value.low), Fraction(value.high), plain)
    same = value.low == value.high
    words = shown + (f" {unit}" if unit else "") + mark(grade, plain)
    return words if same or not ends else f"{words} ({ends})"


def _percent(share: float, plain: bool | None = None) -> str:
    """``57 %``; with ``plain`` given it is a change and has its sign."""
    whole = fixed(Fraction(share * 100), 0)
    if plain is None:
        return f"{whole} %"
    sign = "+" if share > 0 else ("-" if plain else "−")
    return f"{sign} {whole.lstrip('-')} %"


def _share_range(value: Range, plain: bool) -> str:
    low, high = (
        fixed(Fraction(100 * max(0.0, min(1.0, end))), 0) for end in (value.low, value.high)
    )
    ends = f" ({low}{' to ' if plain else '–'}{high})" if low != high else ""
    return f"{_percent(value.value)}{ends}"


def _folded(head: str, parts: Sequence[str]) -> list[str]:
    """Parts in lines of a readable length, the head before the first."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= WIDTH:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    if not lines:
        return []
    first = f"  {head:<10}{lines[0]}" if len(head) < 10 else f"  {head}   {lines[0]}"
    return [first, *(f"            {line}" for line in lines[1:])]


def decision_json(asked: Asked, found: Decision, pay: Sequence[ChannelPay]) -> dict[str, Any]:
    """A decision as ``--json`` prints it."""
    return {
        "object": asked.case.name,
        "action": found.action,
        "settled": found.settled,
        "why_not": found.why_not,
        "ask_again": str(found.ask_again),
        "grade": found.grade.word if found.grade is not None else None,
        "currency": asked.case.currency,
        "window": {"name": asked.period.name, "days": len(asked.case.days), "counted": found.counted},
        "figures": {name: _range_json(value) for name, value in found.figures.items()},
        "courses": [
            {
                "action": course.action,
                "step": course.step,
                "taken": course.taken,
                "gain_per_day": _range_json(course.gain),
                "reasons": [
                    {"name": r.name, **_range_json(r.value), "relation": r.relation,
                     "limit": round(r.limit, 6), "holds": r.holds}
                    for r in course.reasons
                ],
            }
            for course in found.courses
        ],
        "would_change": [
            {"what": c.what, "below": c.below, "value": round(c.value, 6), "action": c.action}
            for c in found.changes
        ],
        "channels": [
            {"channel": p.channel, "per_owned_hour": round(p.per_owned_hour, 6), "sold_h": p.sold_h,
             "waited_h": p.waited_h, "revenue": p.revenue, "fees": p.fees, "power": p.power,
             "delay_days": p.delay_days, "late": p.late}
            for p in pay
        ],
        "rules": dict(found.rules),
    }  # fmt: skip


def _range_json(value: Range) -> dict[str, float | None]:
    return {
        name: round(end, 6) if isfinite(end) else None
        for name, end in (("value", value.value), ("low", value.low), ("high", value.high))
    }
