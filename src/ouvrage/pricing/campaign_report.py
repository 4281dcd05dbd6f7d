"""The report of a campaign, as JSON and as text: what an accepted result cost, and what else did.

Decides the words for a manager: the answer first, then where the money went, then the attempts,
dearest first. All numbers come from the campaign's sheet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Sheet
from ouvrage.pricing.campaign import SORTS, Attempt, Campaign
from ouvrage.pricing.campaign_sheet import WORDS, campaign_sheet, missing_cost
from ouvrage.pricing.report import shares_json
from ouvrage.pricing.summary import money, row
from ouvrage.pricing.words import bar, counted, duration, mark, percent, rounded, shortened

SHOWN = 10
_WASTE = ("rejected", "failed", "cancelled")
_DRAWN = dict(zip(SORTS, "█▓▒▒░··", strict=True))
_DRAWN_PLAIN = dict(zip(SORTS, "#rfc?h.", strict=True))


def campaign_json(campaign: Campaign) -> dict[str, Any]:
    """A campaign as ``report --campaign NAME --json`` prints it; money is decimal text."""
    sheet = campaign_sheet(campaign)
    total = sheet["cost.total"]
    return {
        "campaign": campaign.name,
        "currency": None if campaign.currency == "1" else campaign.currency,
        "unit": campaign.unit,
        "units_accepted": _count(sheet, "units_accepted"),
        "results_accepted": _count(sheet, "results_accepted"),
        "cost_per_accepted_unit": _money(sheet, "cost_per_accepted_unit"),
        "cost_per_accepted_result": _money(sheet, "cost_per_accepted_result"),
        "cost": {name: _money(sheet, f"cost.{name}") for name in ("total", "known", *SORTS)},
        "attempts": [_attempt_json(each) for each in campaign.attempts],
        "rentals": [
            {
                "code": each.account.view.code,
                "rental": each.account.view.rental,
                "label": each.account.view.started.label,
                "paid_s": each.account.time.paid_us / 1_000_000,
                "working_s": each.account.time.working_us / 1_000_000,
                "held_s": each.account.time.held_us / 1_000_000,
                "cost": decimal_text(each.account.cost_of(each.account.time.paid_us)),
                "held": decimal_text(each.held),
                "other": decimal_text(each.other),
            }
            for each in campaign.rented
        ],
        "grade": total.grade.word if total.grade is not None else None,
        "grade_shares": shares_json(total),
        "unknown": {f.path: f.why for f in sheet.figures.values() if f.value is None},
        "as_of": utc_text(campaign.as_of),
    }


def _attempt_json(each: Attempt) -> dict[str, Any]:
    said = each.view.acceptance
    return {
        "run": each.view.run,
        "code": each.code,
        "label": each.view.started.label,
        "outcome": each.view.outcome,
        "started": utc_text(each.view.started.started_us),
        "wall_s": each.view.wall_us / 1_000_000,
        "unit": each.units.name,
        "units": each.units.finished,
        "units_accepted": each.accepted if each.judged else None,
        "why": said.why if said else None,
        "cost": None if each.cost is None else decimal_text(each.cost),
        "parts": {sort: decimal_text(cost) for sort, cost in each.parts.items()},
        "rentals": list(each.rentals),
    }


def _count(sheet: Sheet, path: str) -> int | None:
    value = sheet.number(path)
    return None if value is None else int(value)


def _money(sheet: Sheet, path: str) -> str | None:
    value = sheet.number(path) if path in sheet.figures else None
    return None if value is None else decimal_text(value)


def answer(campaign: Campaign, plain: bool) -> str:
    """One line: what an accepted result cost, and how much went into something else."""
    return " ".join(part for part in answer_parts(campaign, plain) if part)


def answer_parts(campaign: Campaign, plain: bool) -> tuple[str, str]:
    """What an accepted result cost; what else the money went into (empty where into nothing)."""
    sheet = campaign_sheet(campaign)
    total = money(sheet, "cost.total", plain)
    if not total:
        known = rounded(campaign.known_cost)
        why = missing_cost(campaign) or "nothing was spent that is known"
        return f"{campaign.name}: at least {known} {campaign.currency}.", f"{_sentence(why)}."
    each = money(sheet, "cost_per_accepted_unit", plain)
    if each and campaign.unit:
        many = counted(campaign.units_accepted, f"accepted {campaign.unit}")
        words = f"{campaign.name}: {each} per accepted {campaign.unit}, {total} in all for {many}"
    elif campaign.results_accepted:
        many = counted(campaign.results_accepted, "attempt")
        words = f"{campaign.name}: {total} in all, with accepted work in {many}"
    else:
        words = f"{campaign.name}: {total} in all, and nothing accepted yet"
    lost = _lost(campaign)
    return f"{words}.", f"{_sentence(lost)}." if lost else ""


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _lost(campaign: Campaign) -> str:
    total, parts = campaign.known_cost, campaign.parts
    if not total:
        return ""
    waste = sum((parts[sort] for sort in _WASTE), Fraction(0))
    words = []
    if waste:
        words.append(f"{percent(waste / total)} went into work that was not accepted")
    if parts["held"]:
        words.append(f"{percent(parts['held'] / total)} into machines on which nothing ran")
    if parts["unjudged"]:
        words.append(f"{percent(parts['unjudged'] / total)} is not judged yet")
    return ", ".join(words)


def notes_of(campaign: Campaign) -> list[str]:
    """What a reader should know before believing the figures."""
    notes = []
    open_ = [_named(each) for each in campaign.attempts if not each.judged]
    if open_:
        notes.append(
            f"not judged, so counted as nothing accepted: {', '.join(open_)}; "
            "ouvrage accept RUN --units N --why TEXT"
        )
    if campaign.unknown:
        notes.append(missing_cost(campaign) or "")
    going = [code for each in campaign.rented for code in each.account.running]
    if going:
        notes.append(f"{counted(len(going), 'run')} not over; that time is counted as other")
    return notes


def _named(attempt: Attempt) -> str:
    label = attempt.view.started.label
    return f"{attempt.code} {shortened(label, 24)}" if label else attempt.code


def campaign_text(campaign: Campaign, *, plain: bool) -> str:
    """The report as a person reads it."""
    sheet = campaign_sheet(campaign)
    outcomes = Counter(each.view.outcome for each in campaign.attempts)
    said = ", ".join(f"{many} {outcome}" for outcome, many in sorted(outcomes.items()))
    judged = sum(each.judged for each in campaign.attempts)
    lines = [answer(campaign, plain), ""]
    many = len(campaign.attempts)
    lines.append(row("attempts", f"{many}: {said}; {judged} judged" if said else "none"))
    lines += _money_lines(campaign, sheet, plain)
    lines += _attempt_lines(campaign, plain)
    lines += _rental_lines(campaign, plain)
    lines += [f"  note: {note}" for note in notes_of(campaign)]
    why = f"Why: ouvrage explain campaign/{campaign.name}:cost.total"
    more = f"For a manager: ouvrage report --campaign {campaign.name} --html page.html"
    return "\n".join([*lines, "", f"{more}      {why}"])


def _money_lines(campaign: Campaign, sheet: Sheet, plain: bool) -> list[str]:
    parts, total = campaign.parts, campaign.known_cost
    if not total:
        return []
    drawn = _DRAWN_PLAIN if plain else _DRAWN
    shares = [(drawn[sort], parts[sort] / total) for sort in SORTS]
    lines = [row("where the money went", bar(shares, 20))]
    amounts = {
        sort: f"{rounded(parts[sort])} {campaign.currency}{mark(campaign.grade, plain)}"
        for sort in SORTS
        if parts[sort]
    }
    width = max(map(len, amounts.values()))
    for sort, amount in amounts.items():
        share = percent(parts[sort] / total)
        lines.append(
            row(f"  {drawn[sort]} {sort}", f"{amount:<{width}} {share:>5}   {WORDS[sort]}")
        )
    return lines


def dearest(campaign: Campaign) -> list[Attempt]:
    """The attempts, dearest first; those of unknown cost before all."""
    return sorted(
        campaign.attempts,
        key=lambda each: (each.cost is not None, -(each.cost or 0), each.view.run),
    )


def accepted_words(each: Attempt) -> str:
    """``3 of 4 epochs``, or that nobody has judged it."""
    many = counted(each.countable, each.units.name)
    return f"{each.accepted} of {many}" if each.judged else f"not judged, {many}"


def _attempt_lines(campaign: Campaign, plain: bool) -> list[str]:
    rows: list[Sequence[str]] = []
    for each in dearest(campaign)[:SHOWN]:
        cost = "unknown"
        if each.cost is not None:
            cost = f"{rounded(each.cost)} {campaign.currency}{mark(campaign.grade, plain)}"
        label = shortened(each.view.started.label or "", 24)
        wall = duration(each.view.wall_us)
        rows.append((each.code, label, each.view.outcome, wall, accepted_words(each), cost))
    lines = ["", "  attempts, dearest first", *_aligned(rows)] if rows else []
    left = len(campaign.attempts) - len(rows)
    return [*lines, f"    and {left} more: --json"] if left > 0 else lines


def _rental_lines(campaign: Campaign, plain: bool) -> list[str]:
    rows: list[Sequence[str]] = []
    for each in campaign.rented:
        view, time = each.account.view, each.account.time
        cost = each.account.cost_of(time.paid_us)
        amount = f"{rounded(cost)} {campaign.currency}{mark(campaign.grade, plain)}"
        label = shortened(view.started.label or "", 24)
        held = f"{duration(time.held_us)} held"
        rows.append((view.code, label, f"{duration(time.paid_us)} paid", held, amount))
    return ["", "  rentals", *_aligned(rows)] if rows else []


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    return [
        "    "
        + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in rows
    ]
