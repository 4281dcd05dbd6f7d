"""``ouvrage books``: what a machine earned, with every cost of it.

Decides nothing about figures: it finds the site, the period and the moment, and prints a statement.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from ouvrage.base.text import safe
from ouvrage.books.period import Period
from ouvrage.books.pnl import BY, Statement, pnl
from ouvrage.books.pnl_text import answer, detail, rows_table, statement_json
from ouvrage.cli.book_ledger import Books, books_of, period_asked, within
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import as_of_option, json_option, period_options, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.evidence.figures import Sheet


@click.group()
def books() -> None:
    """What a machine earned and cost: the books of an owner.

    \b
    Begin:  ouvrage init
    Then:   ouvrage books pnl --by node
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a statement is asked about: the site, the period as named and as far as it has passed."""

    books: Books
    site: str
    period: Period
    passed: Period


def asked(
    ledger: Ledger,
    site: str | None,
    period: tuple[str | None, str | None, str | None, str | None],
    as_of: int | None,
) -> Asked:
    """The site and the period that options name, as known at a moment."""
    found = books_of(ledger, as_of)
    name = found.site(site)
    named = period_asked(found, name, *period)
    held, passed = within(found, ledger, named, as_of)
    return Asked(books=held, site=name, period=named, passed=passed)


site_option = click.option("--site", metavar="NAME", help="Whose books, where there are several.")


@books.command("pnl")
@click.option(
    "--by", type=click.Choice(BY), default="node", show_default=True, help="An object a row."
)
@site_option
@period_options
@as_of_option
@json_option
@plain_option
def pnl_(
    by: str,
    site: str | None,
    month: str | None,
    year: str | None,
    begins: str | None,
    ends: str | None,
    as_of: int | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Hours, revenue, every cost and the margin of each GPU, node, channel or tenant."""
    with opened() as ledger:
        question = asked(ledger, site, (month, year, begins, ends), as_of)
        statement = pnl(question.books.record, question.site, question.passed, by)
    if as_json:
        say_json(statement_json(statement))
    else:
        say_text(_told(statement, question.period, plain))


def _told(statement: Statement, period: Period, plain: bool) -> str:
    first = statement.rows[0] if len(statement.rows) == 1 else statement.total
    lines = [answer(first, period, plain), ""]
    if len(statement.rows) > 1:
        head, rows = rows_table(statement, plain)
        lines += [*(f"  {line}" for line in table(head, rows, "<>>>>>>>").splitlines()), ""]
    lines += detail(first, plain)
    lines += [f"  note: {safe(note)}" for note in statement.notes]
    return "\n".join([*lines, "", _more(first, period)])


def _more(sheet: Sheet, period: Period) -> str:
    path = "margin.net" if sheet["margin.net"].value is not None else "contribution"
    return (
        f"What to fill in first: ouvrage books gaps --month {period.name}      "
        f"Why: ouvrage explain {sheet.object}:{path}"
    )
