"""``ouvrage focus``: bills of clouds in FOCUS, brought in whole, added up exactly and checked row by row.

Decides only what is told: a flagged row comes in like any other, and only a row that cannot be read, or a
file that is none, ends otherwise than with 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.feeds.focus import Charged, read_focus, statements
from ouvrage.adapters.feeds.table import decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.books.focus import COSTS, RULES, Flag, Total, factor, flags_of, totals
from ouvrage.cli.booking import Booked, book
from ouvrage.cli.import_told import counted, holding, in_words, read_bytes, values
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, keep_everything, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.model.focus import FocusCharge

_MOST_ROWS = 12
_MOST_FAULTS = 20
_BY = {"provider": "ProviderName", "service": "ServiceName", "account": "SubAccountId",
       "category": "ChargeCategory", "resource": "ResourceId"}  # fmt: skip


@click.group(name="focus")
def focus() -> None:
    """Bills of clouds in FOCUS: what was billed, exactly, and which rows contradict themselves."""


@focus.command(name="import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--currency", metavar="CODE", help="Of a file without a column for it.")
@json_option
@plain_option
def import_(file: Path, currency: str | None, as_json: bool, plain: bool) -> int:
    """Bring in an export (CSV), add it up, and flag the rows that cannot be right.

    Every row that can be read comes in, flagged or not. The same export again changes nothing; one made
    again with other amounts corrects. Rows are counted from 1, without the line of names.
    """
    keep_everything()
    told = Told(form="focus", file=str(file))
    charged = read_focus(decoded(read_bytes(file), "utf-8-sig", str(file)), told, currency)
    with opened() as ledger:
        said = statements(holding(ledger, FocusCharge.KIND), charged)
        booked = book(ledger, said)
    if as_json:
        say_json(_json(told, charged, booked))
    else:
        first, *more = _lines(told, charged, booked)
        lines = [in_words(first) if plain else first, *more]
        say_text("\n".join(safe(line) for line in lines))
    return 1 if told.faults else 0


def _json(told: Told, charged: Sequence[Charged], booked: Booked) -> dict[str, Any]:
    found = totals([each.charge for each in charged])
    only = found[0].sums if len(found) == 1 else dict.fromkeys(COSTS)
    return {
        "rows": told.rows,
        "sums": only,
        "flagged": [{"row": flag.row, "rule": flag.rule} for flag in _flags(charged)],
        "currencies": [
            {"currency": t.currency, "rows": t.rows, "sums": t.sums, "null": t.unknown}
            for t in found
        ],
        "new": booked.new,
        "same": booked.same,
        "corrected": booked.corrected,
        "faults": [fault.as_json() for fault in told.faults],
        "notes": [f"{words} ({count})" for words, count in told.notes.items()],
    }


def _flags(charged: Sequence[Charged]) -> list[Flag]:
    return flags_of((each.row, each.charge) for each in charged)


def _lines(told: Told, charged: Sequence[Charged], booked: Booked) -> list[str]:
    found = totals([each.charge for each in charged])
    flags = _flags(charged)
    rows = len({flag.row for flag in flags})
    billed = _billed(found)
    lines = [
        f"{counted(told.rows, 'row')}: {billed} {Grade.METERED.mark} billed; "
        f"{counted(rows, 'row')} flagged",
        f"  statements: {booked.words}",
    ]
    lines += _sums(found)
    for rule in RULES:
        numbers = [flag.row for flag in flags if flag.rule == rule.name]
        if numbers:
            what = f"{counted(len(numbers), 'row')} ({_numbers(numbers)})"
            lines.append(f"  {rule.name}: {what}: {rule.words}")
            lines += _by_one_factor(charged, set(numbers)) if rule is RULES[0] else []
    lines += [f"  note: {words} ({count})" for words, count in told.notes.items()]
    if told.faults:
        lines.append(f"  {len(told.faults)} could not be read, all others came in:")
        lines += [f"    {fault.line}" for fault in told.faults[:_MOST_FAULTS]]
        if len(told.faults) > _MOST_FAULTS:
            lines.append(f"    and {len(told.faults) - _MOST_FAULTS} more; --json lists them all")
    return [*lines, "What it was for: ouvrage focus sums --by service"]


def _sums(found: Sequence[Total]) -> list[str]:
    lines: list[str] = []
    for total in found:
        for name, text in total.sums.items():
            null = total.unknown.get(name)
            words = f"   null in {counted(null, 'row')}, which the sum leaves out" if null else ""
            lines.append(f"  {name:<15} {text or 'unknown'} {total.currency}{words}")
    return lines


def _billed(found: Sequence[Total]) -> str:
    known = [f"{t.sums['BilledCost'] or 'an unknown amount of'} {t.currency}" for t in found]
    return " and ".join(known) or "nothing"


def _numbers(rows: Sequence[int]) -> str:
    more = f", … {len(rows) - _MOST_ROWS} more" if len(rows) > _MOST_ROWS else ""
    return ", ".join(map(str, rows[:_MOST_ROWS])) + more


def _by_one_factor(charged: Sequence[Charged], rows: set[int]) -> list[str]:
    """Say where every row misses its product by the same factor: then the quantity has another unit."""
    factors = {round(found) for c in charged if c.row in rows and (found := factor(c.charge))}
    if len(factors) != 1 or factors & {0, 1}:
        return []
    return [
        f"    each by a factor of {factors.pop():,}: their PricingQuantity is that much too small"
    ]


@focus.command(name="sums")
@click.option(
    "--by",
    metavar="WHAT",
    multiple=True,
    default=("provider",),
    help=f"{', '.join(_BY)}, a column's name, or tag:NAME; several times for a row of each pair.",
)
@json_option
@plain_option
def sums(by: tuple[str, ...], as_json: bool, plain: bool) -> None:
    """What all bills in FOCUS add up to, by provider, service, account, category, resource or tag."""
    with opened() as ledger:
        charges: list[FocusCharge] = values(ledger, FocusCharge.KIND)
    if not charges:
        raise OuvrageError(
            "focus/none", "no bill in FOCUS is known", hint="ouvrage focus import FILE"
        )
    groups: dict[tuple[str, ...], list[FocusCharge]] = {}
    for each in charges:
        groups.setdefault(tuple(_value(each, name) or "not said" for name in by), []).append(each)
    found = [(names, total) for names, group in sorted(groups.items()) for total in totals(group)]
    if as_json:
        rows = [
            {"by": dict(zip(by, names, strict=True)), "currency": t.currency, "rows": t.rows,
             "sums": t.sums, "null": t.unknown}
            for names, t in found
        ]  # fmt: skip
        say_json({"sums": rows})
        return
    cells = [
        (
            *map(safe, names),
            str(t.rows),
            *(text or "unknown" for text in t.sums.values()),
            t.currency,
        )
        for names, t in found
    ]
    first = f"{_billed(totals(charges))} {Grade.METERED.mark} billed in {counted(len(charges), 'charge')}\n"
    say_text(in_words(first) if plain else first)
    say_text(table((*by, "rows", *COSTS, "in"), cells, "<" * len(by) + ">>>>><"))
    say_text("\nOther views: ouvrage focus sums --by account --by service")


def _value(charge: FocusCharge, by: str) -> str | None:
    sort, colon, tag = by.partition(":")
    if sort == "tag" and colon:
        return _tag(charge, tag)
    if by in ("provider", "category"):
        return charge.provider if by == "provider" else charge.category
    return _cell(charge, _BY.get(by, by))


def _cell(charge: FocusCharge, name: str) -> str | None:
    return json.loads(charge.columns).get(name)


def _tag(charge: FocusCharge, name: str) -> str | None:
    """A tag's value; None where there is none, or the tags are no JSON object."""
    try:
        tags = json.loads(_cell(charge, "Tags") or "null")
    except (ValueError, RecursionError):
        return None
    value = tags.get(name) if isinstance(tags, dict) else None
    return None if value is None else str(value)
