"""A statement as a person reads it: the answer first, then where it comes from, then the way to more.

Decides words, order and digits; figures are made elsewhere. Sums of money have two decimals, rates
per hour four significant digits at most, and every figure a mark of its grade.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.books.period import Period
from ouvrage.books.pnl import Statement
from ouvrage.evidence.explain import exact_text
from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.model.occupancy import STATES
from ouvrage.pricing.words import mark, percent

WORDS = {
    "electricity": "power",
    "fee": "channel's fee",
    "failed": "failed work credited",
    "equipment_lease": "equipment lease",
}
_REVENUE = {"gpu": "GPU", "idle-job": "idle jobs", "own-use": "own use"}
ALWAYS = ("electricity", "cooling", "fee", "parts", "support", "depreciation", "interest", "tax")
"""Costs that are shown also where they are nothing, so that nobody wonders whether they count."""


def period_words(period: Period) -> str:
    """``November 2026``, ``2026``, or the days."""
    if re.fullmatch("[0-9]{4}-[0-9]{2}", period.name):
        return f"{date.fromisoformat(period.name + '-01'):%B %Y}"
    begins, dots, ends = period.name.partition("..")
    return f"the days from {begins} to {ends}" if dots else period.name


def name_of(sheet: Sheet) -> str:
    """The object of a sheet without its period."""
    return sheet.object.partition("/")[0]


def answer(sheet: Sheet, period: Period, plain: bool) -> str:
    """The first line: what it earned, by the hour, and how that stands to what it needs."""
    margin, name, when = sheet["margin.net"], safe(name_of(sheet)), period_words(period)
    cut = "" if _whole(sheet, period) else " so far"
    if not sheet["hours.owned"].value and not sheet["cost.total"].value and not margin.value:
        return f"{name}: no GPU stood there in {when}{cut}, and nothing was earned or spent."
    if margin.value is None:
        return f"{name}: {_not_known(sheet, f'{when}{cut}', plain)}; {_sold_words(sheet)}."
    value = Fraction(margin.value)
    verb = "earned" if value >= 0 else "lost"
    said = f"{name} {verb} {fixed(abs(value), 2)} {margin.unit}{mark(margin.grade, plain)} in {when}{cut}"
    per = sheet.number("margin.per_owned_hour")
    if per is not None:
        said += f", {_rate(abs(per))} per hour owned"
    return f"{said}; {_sold_words(sheet)}."


def _whole(sheet: Sheet, period: Period) -> bool:
    return sheet.as_of >= period.to_us


def _not_known(sheet: Sheet, when: str, plain: bool) -> str:
    """What can be said where the margin cannot: what it left, or took in, and what lacks."""
    why = safe(_reason(sheet["margin.net"].why or ""))
    left, recorded = sheet["contribution"], sheet["revenue.recorded"]
    if left.value is not None:
        shown = f"{fixed(Fraction(left.value), 2)} {left.unit}{mark(left.grade, plain)}"
        return f"it left {shown} in {when} before what is not known: {why}"
    if recorded.value:
        shown = f"{fixed(Fraction(recorded.value), 2)} {recorded.unit}{mark(recorded.grade, plain)}"
        return f"no margin can be told for {when}: {why}; {shown} of revenue is recorded"
    return f"no margin can be told for {when}: {why}"


def _reason(why: str) -> str:
    """The innermost reason of a figure that is unknown because another one is."""
    return re.sub(r"^(?:\S+ is not known: )+", "", why)


def _sold_words(sheet: Sheet) -> str:
    even, use = sheet.number("break_even_utilisation"), sheet.number("utilisation")
    sold = f"was sold {percent(use)}" if use is not None else "how much of it was sold is not known"
    return (
        f"it breaks even at {percent(even)} and {sold}"
        if even is not None
        else f"it {sold}"
        if use is not None
        else sold
    )


def _rate(value: Fraction) -> str:
    return fixed(value, 2 if value >= Fraction(1, 10) else 4)


def _money(figure: Figure, plain: bool) -> str:
    if figure.value is None:
        return "unknown"
    value = Fraction(figure.value)
    return fixed(value, 2) + mark(figure.grade, plain) if value else "0"


def _cost(figure: Figure, plain: bool) -> str:
    """A cost; one that is nothing is marked too where that is only assumed, and not what a fact says."""
    return f"0{mark(figure.grade, plain)}" if figure.value == 0 else _money(figure, plain)


def hours_line(sheet: Sheet, plain: bool) -> str:
    """``720.000 owned = 454.2 working + …``, every state that had any time."""
    owned = Fraction(sheet["hours.owned"].value or 0)
    parts = [
        f"{fixed(hours, 1)} {state}"
        for state in ("working", "held", "reserved", "free", "maintenance", "down", "unknown")
        if (hours := Fraction(sheet[f"hours.{state}"].value or 0))
    ]
    adds = owned == sum(Fraction(sheet[f"hours.{state}"].value or 0) for state in STATES)
    end = "(adds up)" if adds else "(does not add up)"
    return f"{fixed(owned, 3)} owned = {' + '.join(parts) or 'none'}   {end}"


def revenue_line(sheet: Sheet, plain: bool) -> str:
    """``680.12  485.8 h sold at 1.40 (list 1.60)`` and what was earned otherwise."""
    line = _money(sheet["revenue.total"], plain)
    if sheet["revenue.total"].value is None:
        line += f"; {_money(sheet['revenue.recorded'], plain)} is recorded"
    sold, rate, asked = (sheet.number(p) for p in ("hours.sold", "rate.effective", "rate.list"))
    if sold and rate is not None:
        at = "about " if sheet["hours.sold"].grade == Grade.ASSUMED else ""
        line += f"   {at}{fixed(sold, 1)} h sold at {_rate(rate)}"
        line += f" (list {_rate(asked)})" if asked is not None else ""
    others = [
        f"{_REVENUE.get(path[8:], path[8:])} {_money(sheet[path], plain)}"
        for path in sheet.figures
        if path.startswith("revenue.")
        and path
        not in ("revenue.total", "revenue.recorded", "revenue.gpu", "revenue.per_owned_hour")
        and sheet[path].value
    ]
    return line + (f"; {', '.join(others)} of it" if others else "")


def cost_lines(sheet: Sheet, plain: bool) -> list[str]:
    """Every cost that is not nothing, and those that are always asked about."""
    shown = [
        f"{WORDS.get(name, name)} {_cost(sheet[path], plain)}"
        for path in sheet.figures
        if path.startswith("cost.")
        and (name := path[5:]) != "total"
        and (sheet[path].value or sheet[path].value is None or name in ALWAYS)
    ]
    lines: list[str] = [""]
    for each in shown:
        if lines[-1] and len(lines[-1]) + len(each) > 88:
            lines.append("")
        lines[-1] += f" · {each}" if lines[-1] else each
    return lines


def detail(sheet: Sheet, plain: bool) -> list[str]:
    """The block below the answer: hours, revenue, costs, margin, limits."""
    costs = cost_lines(sheet, plain)
    lines = [
        f"  hours     {hours_line(sheet, plain)}",
        f"  revenue   {revenue_line(sheet, plain)}",
        f"  less      {costs[0]}",
        *(f"            {line}" for line in costs[1:]),
        f"  margin    {_margin(sheet, plain)}",
    ]
    floor, share = sheet.number("price_floor"), None
    if floor is not None:
        lines.append(f"  floor     {_rate(floor)} {sheet['price_floor'].unit}{mark(sheet['price_floor'].grade, plain)}"
                     "   below it an hour sold does not pay its own power and fees")  # fmt: skip
    if "payback.share" in sheet.figures:
        share = sheet.number("payback.share")
    if share is not None:
        lines.append(f"  payback   {percent(share) if share > 0 else '0 %'} of {fixed(Fraction(sheet['payback.price'].value or 0), 2)} "
                     f"{sheet['payback.price'].unit} so far{mark(sheet['payback.share'].grade, plain)}")  # fmt: skip
    return lines


def _margin(sheet: Sheet, plain: bool) -> str:
    margin = sheet["margin.net"]
    share = sheet.number("margin.share")
    if margin.value is None:
        return f"unknown: {safe(_reason(margin.why or ''))}"
    return _money(margin, plain) + (f"   {percent(share)} of revenue" if share is not None else "")


def rows_table(statement: Statement, plain: bool) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Head and rows of the table of several objects, in the order of their margin."""
    head = (statement.by, "hours", "sold", "rate", "revenue", "costs", "margin", "per owned h")
    return head, [_row(sheet, plain) for sheet in [*statement.rows, statement.total]]


def _row(sheet: Sheet, plain: bool) -> Sequence[str]:
    use, rate, per = (
        sheet.number(path) for path in ("utilisation", "rate.effective", "margin.per_owned_hour")
    )
    return (
        safe(name_of(sheet)),
        _row_hours(sheet),
        "?" if use is None else percent(use),
        "?" if rate is None else _rate(rate),
        _money(sheet["revenue.total"], plain),
        _money(sheet["cost.total"], plain),
        _money(sheet["margin.net"], plain),
        "?" if per is None else ("-" if per < 0 else "") + _rate(abs(per)),
    )


def _row_hours(sheet: Sheet) -> str:
    """Hours of a row; what earned without any is not known to have had none."""
    owned = Fraction(sheet["hours.owned"].value or 0)
    return "?" if not owned and sheet["revenue.recorded"].value else fixed(owned, 1)


def statement_json(statement: Statement) -> dict[str, Any]:
    """A statement as ``--json`` prints it: every figure of every row, exact."""
    return {
        "site": statement.site,
        "currency": statement.currency,
        "period": {
            "name": statement.period.name,
            "from": utc_text(statement.period.from_us),
            "to": utc_text(statement.period.to_us),
            "zone": statement.period.zone,
        },
        "by": statement.by,
        "as_of": utc_text(statement.total.as_of),
        "rows": [_sheet_json(sheet) for sheet in statement.rows],
        "total": _sheet_json(statement.total),
        "notes": list(statement.notes),
    }


def _sheet_json(sheet: Sheet) -> dict[str, Any]:
    return {
        "object": sheet.object,
        "name": name_of(sheet),
        "figures": {path: _figure_json(figure) for path, figure in sheet.figures.items()},
    }


def _figure_json(figure: Figure) -> dict[str, Any]:
    found: dict[str, Any] = {
        "value": exact_text(figure),
        "unit": figure.unit,
        "grade": figure.grade.word if figure.grade is not None else None,
        "grade_shares": {g.word: float(fixed(share, 6)) for g, share in figure.shares.items()},
    }
    return {**found, "why": figure.why} if figure.why else found
