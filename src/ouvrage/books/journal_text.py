"""A journal as other programs read it: rows for CSV and spreadsheets, and a file of beancount.

Decides the columns, that an amount is exact decimal text in one of two columns that are never negative,
and that no cell can be taken for a formula: a text that begins like one is written with an apostrophe in
front. A chart of accounts names each of our accounts as somebody else does; the longest beginning counts.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import NANO, decimal_text, fixed
from ouvrage.base.text import safe
from ouvrage.books.journal import Journal, lines_of
from ouvrage.books.period import day_of

COLUMNS = ("entry", "day", "account", "theirs", "debit", "credit", "currency", "text", "facts")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_ROOTS = ("Assets", "Liabilities", "Equity", "Income", "Expenses")
_BEANCOUNT = re.compile(rf"(?:{'|'.join(_ROOTS)})(?::[A-Z0-9][A-Za-z0-9-]*)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How somebody else names our accounts, by account or the beginning of one up to a colon."""

    names: Mapping[str, str]

    def theirs(self, name: str) -> str | None:
        """Their name of an account; None where the chart has none."""
        parts = name.split(":")
        for length in range(len(parts), 0, -1):
            found = self.names.get(":".join(parts[:length]))
            if found is not None:
                return found
        return None

    def missing(self, found: Journal) -> list[str]:
        """The accounts of a journal that the chart does not name."""
        return [name for name in found.balances if self.theirs(name) is None]


OWN_NAMES = Chart(names=dict.fromkeys(_ROOTS, ""))
"""No chart: our own names and no other."""


def harmless(text: str) -> str:
    """A text that no program for tables takes for a formula."""
    clean = safe(text)
    return f"'{clean}" if clean.startswith(_FORMULA) else clean


def amount_text(nano: int) -> str:
    """Plain decimal text of an amount, with at least two places."""
    text = decimal_text(Fraction(nano, NANO))
    whole, _, places = text.partition(".")
    return f"{whole}.{places.ljust(2, '0')}"


def rows(found: Journal, chart: Chart) -> list[tuple[str, ...]]:
    """A row a posting, under ``COLUMNS``."""
    lines: list[tuple[str, ...]] = []
    for number, entry in enumerate(found.entries, 1):
        for posting in entry.postings:
            debit, credit = max(posting.nano, 0), max(-posting.nano, 0)
            lines.append(
                (
                    str(number),
                    entry.day.isoformat(),
                    posting.account,
                    harmless(chart.theirs(posting.account) or ""),
                    amount_text(debit) if debit else "",
                    amount_text(credit) if credit else "",
                    found.currency,
                    harmless(entry.text),
                    " ".join(entry.facts),
                )
            )
    return lines


class _Lines:
    """What the csv module writes to: a list of lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        """Keep a line."""
        self.lines.append(line)


def csv_text(found: Journal, chart: Chart) -> str:
    """The journal as CSV with a line of names, lines ended as RFC 4180 has them."""
    out = _Lines()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows(found, chart))
    return "".join(out.lines)


def tables(found: Journal, chart: Chart) -> dict[str, list[Sequence[str]]]:
    """The sheets of a workbook: the journal, the balances, the statement it comes to."""
    balances: list[Sequence[str]] = [("account", "theirs", "balance", "currency")]
    for name, nano in found.balances.items():
        theirs = harmless(chart.theirs(name) or "")
        balances.append((name, theirs, amount_text(nano), found.currency))
    statement: list[Sequence[str]] = [("line", "amount", "currency")]
    for line, nano in lines_of(found).items():
        unknown = line.removeprefix("cost.") in found.unknown
        statement.append((line, "" if unknown else amount_text(nano), found.currency))
    return {"journal": [COLUMNS, *rows(found, chart)], "balances": balances, "statement": statement}


def beancount_text(found: Journal, chart: Chart) -> str:
    """The journal for beancount, with what each account must come to, so that it checks itself.

    Raises ``OuvrageError`` ``journal/account`` for a chart's name that beancount does not take.
    """
    named = {name: _beancount_name(name, chart) for name in found.balances}
    zone, period = found.period.zone, found.period
    first = min([day_of(period.from_us, zone), *(entry.day for entry in found.entries)])
    after = max([day_of(period.to_us - 1, zone), *(entry.day for entry in found.entries)])
    lines = [
        f'option "title" {_quoted(f"{found.site} {period.name}")}',
        f'option "operating_currency" "{found.currency}"',
        "",
        *(f"{first} open {name} {found.currency}" for name in sorted(set(named.values()))),
    ]
    for entry in found.entries:
        lines += ["", f"{entry.day} * {_quoted(entry.text)}"]
        lines += [f"  facts: {_quoted(' '.join(entry.facts))}"] if entry.facts else []
        lines += [
            f"  {named[posting.account]}  {_exact(posting.nano)} {found.currency}"
            for posting in entry.postings
        ]
    lines.append("")
    sums: dict[str, int] = {}
    for name, nano in found.balances.items():
        sums[named[name]] = sums.get(named[name], 0) + nano
    for name, nano in sorted(sums.items()):
        lines.append(f"{after + timedelta(days=1)} balance {name}  {_exact(nano)} {found.currency}")
    return "\n".join(lines) + "\n"


def _exact(nano: int) -> str:
    return fixed(Fraction(nano, NANO), 9)


def _beancount_name(name: str, chart: Chart) -> str:
    theirs = chart.theirs(name) or name
    if not _BEANCOUNT.fullmatch(theirs):
        raise OuvrageError(
            "journal/account", f"{theirs!r}, in the chart for {name}, is no account of beancount",
            hint=f"begin with {', '.join(_ROOTS)}, then parts with a capital or digit first: {name}",
        )  # fmt: skip
    return theirs


def _quoted(text: str) -> str:
    clean = safe(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{clean}"'


def journal_json(found: Journal, chart: Chart) -> dict[str, Any]:
    """A journal as JSON: amounts are decimal text, above zero a debit."""
    lines = lines_of(found)
    return {
        "site": found.site,
        "period": found.period.name,
        "currency": found.currency,
        "entries": [
            {
                "day": entry.day.isoformat(),
                "text": entry.text,
                "postings": [
                    {"account": each.account, "amount": amount_text(each.nano)}
                    for each in entry.postings
                ],
                "facts": list(entry.facts),
            }
            for entry in found.entries
        ],
        "balances": {name: amount_text(nano) for name, nano in found.balances.items()},
        "statement": {
            line: None if line.removeprefix("cost.") in found.unknown else amount_text(nano)
            for line, nano in lines.items()
        },
        "theirs": {name: chart.theirs(name) for name in found.balances},
        "possible": [
            {"line": each.lines[0].name, "document": each.claims[0].name, "reason": each.reason}
            for each in found.possible
        ],
        "notes": list(found.notes),
    }


def sums_of(found: Journal) -> tuple[Fraction, Fraction]:
    """Income and expenses of a journal."""
    lines = lines_of(found)
    return _sum(lines, "revenue."), _sum(lines, "cost.")


def _sum(lines: Mapping[str, int], begins: str) -> Fraction:
    found: Iterable[int] = (nano for line, nano in lines.items() if line.startswith(begins))
    return Fraction(sum(found), NANO)
