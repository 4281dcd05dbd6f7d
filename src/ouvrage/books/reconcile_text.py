"""A reconciliation as a person reads it: what agrees, what does not, by how much, and why that may be.

Decides words and digits alone. Every difference is told with both of its sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.books.bank_items import Item
from ouvrage.books.differences import Difference, Side, settled
from ouvrage.books.gaps_text import signed
from ouvrage.books.paying import Match
from ouvrage.books.period import Period, day_of
from ouvrage.books.pnl_text import period_words
from ouvrage.books.reconcile import Reconciled, Total, age_class
from ouvrage.books.reconcile_bank import Open, confirming
from ouvrage.books.reconcile_payouts import Owing
from ouvrage.books.spans import Span
from ouvrage.pricing.words import counted, mark

_MOST = 12
_SIDES = {
    "invoices": "invoiced to others",
    "payments": "paid by tenants",
    "bills": "billed to you",
    "came": "came into the bank",
    "left": "left the bank",
}


def reconcile_answer(found: Reconciled) -> str:
    """The first line: what agrees and what is owed."""
    when = period_words(found.period)
    differ = [each for each in (*found.energy, *found.payouts) if not settled(each)]
    compared = len(found.energy) + len(found.payouts)
    parts = [_agreeing(found, compared, len(differ))]
    owed = _by_currency((d.currency, d.amount) for d in found.receivables)
    parts.append(f"{owed} is owed to you" if owed else "nothing invoiced is owed to you")
    waiting = {item.key for match in found.bank.possible for item in match.lines}
    number = sum(each.item.key not in waiting for each in found.bank.unmatched)
    if waiting:
        parts.append(
            f"{counted(len(found.bank.possible), 'match')} wait{'s' if len(found.bank.possible) == 1 else ''} for your word"
        )
    if number:
        parts.append(
            f"{counted(number, 'bank line')} {'matches' if number == 1 else 'match'} nothing"
        )
    elif found.lines and not waiting:
        parts.append("every bank line has its document")
    return f"{when}: {'; '.join(parts)}."


def _agreeing(found: Reconciled, compared: int, differ: int) -> str:
    if not compared and not found.lines and not found.documents:
        return "there is no bill, payout or bank line to hold the record against"
    if not compared:
        return "no bill or payout can be held against the record"
    return f"{compared - differ} of {counted(compared, 'comparison')} agree{'s' if compared - differ == 1 else ''}"


def _by_currency(amounts: Iterator[tuple[str, Fraction]]) -> str:
    sums: dict[str, Fraction] = {}
    for currency, amount in amounts:
        sums[currency] = sums.get(currency, Fraction(0)) + amount
    return ", ".join(f"{fixed(total, 2)} {currency}" for currency, total in sorted(sums.items()))


def reconcile_lines(found: Reconciled, plain: bool) -> list[str]:
    """Everything below the first line."""
    lines = ["", "Meter against bill"]
    lines += _differences(found.energy, plain)
    lines += [f"  no bill of electricity for {_days(s, found.period)}" for s in found.unbilled]
    lines += ["", "Record against payouts", *_differences(found.payouts, plain)]
    lines += [_owing(each, plain) for each in found.owing]
    lines += ["", "What is owed against the bank"]
    lines += _sums("paid", "open", found.documents)
    lines += _sums("matched", "not matched", found.lines)
    lines += _some([_match(each) for each in found.bank.matches], "match")
    lines += _some([_waiting(each) for each in found.bank.possible], "possible match")
    lines += _some([_open(each, found.period, "open") for each in found.bank.open], "open document")
    lines += _some([_open(e, found.period, "unmatched") for e in found.bank.unmatched], "line")
    lines += [
        f"  said by hand: {safe(each.payment)} pays {safe(each.document)}, and {each.why}"
        for each in found.bank.astray
    ]
    lines += _ages(found)
    if lines[-1] == "What is owed against the bank":
        lines.append("  no invoice, bill or bank line is recorded")
    return lines


def _some(lines: Sequence[str], what: str) -> list[str]:
    more = len(lines) - _MOST
    return [
        *lines[:_MOST],
        *([f"  … and {counted(more, what)} more (--json has all)"] if more > 0 else []),
    ]


def _differences(found: Sequence[Difference], plain: bool) -> list[str]:
    lines: list[str] = []
    for each in found:
        digits = 1 if each.unit == "kWh" else 2
        sides = f"{_side(each.theirs, digits, plain)}, {_side(each.ours, digits, plain)}"
        said = "they agree" if not each.amount else f"difference {_signed(each.amount, digits)}"
        lines.append(f"  {safe(each.what)}, {each.unit}: {sides}: {said}")
        for cause in each.causes:
            part = "" if cause.amount is None else f"{_signed(cause.amount, digits)}  "
            lines.append(f"      likely  {part}{safe(cause.words)}")
        if each.causes and each.amount:
            lines.append(f"      left    {_signed(each.rest, digits)}")
    return lines


def _signed(value: Fraction, digits: int) -> str:
    text = fixed(value, digits)
    return "0" if Fraction(text) == 0 else text if value < 0 else f"+{text}"


def _side(side: Side, digits: int, plain: bool) -> str:
    return f"{safe(side.words)} {fixed(side.amount, digits)}{mark(side.grade, plain)}"


def _days(span: Span, period: Period) -> str:
    first = day_of(span[0], period.zone)
    last = day_of(span[1] - 1, period.zone)
    return f"{first}" if first == last else f"{first} to {last}"


def _owing(each: Owing, plain: bool) -> str:
    gross, fee = each.earned.gross, each.earned.fee
    less = f" less {fixed(fee, 2)} of fees" if fee else ""
    since = utc_text(each.since_us)[:10]
    return (
        f"  {safe(each.channel)} owes {fixed(each.earned.net, 2)} {each.currency}{mark(each.earned.grade, plain)} "
        f"since {since} ({fixed(gross, 2)} earned{less}): {each.why}"
    )


def _sums(matched: str, left: str, totals: Sequence[Total]) -> list[str]:
    return [
        f"  {_SIDES[t.what]} {signed(t.all)} {t.currency} = {matched} {signed(t.matched)}, {left} {signed(t.open)}   (adds up)"
        for t in totals
    ]


def _match(each: Match) -> str:
    paid = " + ".join(item.name for item in each.lines)
    owed = " + ".join(item.name for item in each.claims)
    amount = sum((item.amount for item in each.lines), Fraction(0))
    extra = f", {signed(each.left)} still open" if each.left else ""
    extra += f", {signed(each.rest)} for something else" if each.rest else ""
    extra += f", {signed(each.difference)} on the way" if each.difference else ""
    return f"  {safe(owed)} = {safe(paid)}  {signed(amount)} {each.lines[0].currency}{extra}  {each.certainty}: {safe(each.reason)}"


def _waiting(each: Match) -> str:
    (owed,), (paid,) = each.claims, each.lines
    amount = f"{signed(paid.amount)} {paid.currency}"
    return f"  possible: {safe(owed.name)} = {safe(paid.name)}  {amount}  {safe(each.reason)}; if so: {safe(confirming(each))}"


def _open(each: Open, period: Period, word: str) -> str:
    item, day = each.item, day_of(each.item.day_us, period.zone)
    who = f" {safe(item.who)}" if item.who else ""
    return f"  {word}: {safe(item.name)} of {day}{who}  {signed(each.amount)} {item.currency}  {safe(each.why)}"


def _ages(found: Reconciled) -> list[str]:
    sums: dict[tuple[str, str], dict[str, Fraction]] = {}
    for debt in found.receivables:
        ages = sums.setdefault((debt.who, debt.currency), {})
        age = age_class(debt.days)
        ages[age] = ages.get(age, Fraction(0)) + debt.amount
    return [
        f"  {safe(who)} owes you {fixed(sum(ages.values(), Fraction(0)), 2)} {currency}: "
        + ", ".join(f"{fixed(amount, 2)} {age}" for age, amount in ages.items())
        for (who, currency), ages in sums.items()
    ]


def reconcile_json(found: Reconciled) -> dict[str, Any]:
    """A reconciliation as ``--json`` prints it, every amount exact."""
    return {
        "period": {
            "name": found.period.name, "from": utc_text(found.period.from_us),
            "to": utc_text(found.period.to_us), "zone": found.period.zone,
        },
        "meter_against_bill": [_difference_json(each) for each in found.energy],
        "days_without_bill": [[utc_text(a), utc_text(b)] for a, b in found.unbilled],
        "record_against_payouts": [_difference_json(each) for each in found.payouts],
        "not_invoiced": [_owing_json(each) for each in found.owing],
        "documents": [_total_json(each) for each in found.documents],
        "bank_lines": [_total_json(each) for each in found.lines],
        "matches": [match_json(each) for each in found.bank.matches],
        "possible": [match_json(each) for each in found.bank.possible],
        "open": [_open_json(each) for each in found.bank.open],
        "unmatched": [_open_json(each) for each in found.bank.unmatched],
        "astray": [
            {"payment": a.payment, "document": a.document, "why": a.why, "fact": a.key}
            for a in found.bank.astray
        ],
        "owed": [
            {"who": d.who, "currency": d.currency, "amount": decimal_text(d.amount), "days": d.days,
             "since": utc_text(d.since_us), "item": d.name}
            for d in found.debts
        ],
    }  # fmt: skip


def _difference_json(each: Difference) -> dict[str, Any]:
    return {
        "item": each.name,
        "what": each.what,
        "unit": each.unit,
        "theirs": _side_json(each.theirs),
        "ours": _side_json(each.ours),
        "difference": decimal_text(each.amount),
        "causes": [
            {"why": c.words, "amount": None if c.amount is None else decimal_text(c.amount)}
            for c in each.causes
        ],
        "left": decimal_text(each.rest),
        "agrees": settled(each),
        "facts": list(each.facts),
    }


def _side_json(side: Side) -> dict[str, str]:
    return {"who": side.words, "amount": decimal_text(side.amount), "grade": side.grade.word}


def _owing_json(each: Owing) -> dict[str, str]:
    return {
        "channel": each.channel, "currency": each.currency, "since": utc_text(each.since_us),
        "earned": decimal_text(each.earned.gross), "fee": decimal_text(each.earned.fee), "why": each.why,
    }  # fmt: skip


def _total_json(total: Total) -> dict[str, str]:
    return {
        "what": total.what, "currency": total.currency, "all": decimal_text(total.all),
        "matched": decimal_text(total.matched), "open": decimal_text(total.open),
    }  # fmt: skip


def match_json(each: Match) -> dict[str, Any]:
    """A match as ``--json`` prints it."""
    return {
        "documents": [_item_json(item) for item in each.claims],
        "lines": [_item_json(item) for item in each.lines],
        "certainty": each.certainty,
        "reason": each.reason,
        "left": decimal_text(each.left),
        "rest": decimal_text(each.rest),
        "on_the_way": decimal_text(each.difference),
        "said": [share.fact for share in each.shares if share.fact],
    }


def _item_json(item: Item) -> dict[str, str]:
    return {
        "item": item.name, "who": item.who, "amount": decimal_text(item.amount), "currency": item.currency,
        "day": utc_text(item.day_us), "fact": item.fact,
    }  # fmt: skip


def _open_json(each: Open) -> dict[str, str]:
    return {
        **_item_json(each.item), "open": decimal_text(each.amount), "why": each.why, "do": each.do,
    }  # fmt: skip
