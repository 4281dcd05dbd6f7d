"""``ouvrage books``: what a machine earned, with every cost of it.

Decides nothing about figures: it finds the site, the period and the moment, and prints a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.books.account import Account, account
from ouvrage.books.against_plan import AgainstPlan, against_plan
from ouvrage.books.calendar_text import calendar_json, calendar_text
from ouvrage.books.cells import grid_of
from ouvrage.books.gaps import Gap, gaps
from ouvrage.books.gaps_text import (
    gap_json,
    gap_rows,
    moves_text,
    name_of,
    plan_json,
    plan_lines,
    variance_json,
    variance_line,
    weakest_line,
    worth_filling,
)
from ouvrage.books.known import MOST_DEVICES
from ouvrage.books.period import Period, period_before
from ouvrage.books.pnl import BY, Statement, statement_of
from ouvrage.books.pnl_text import answer, detail, period_words, rows_table, statement_json
from ouvrage.books.variance import Variance, variance
from ouvrage.cli.books_asked import Asked, Wanted, asked, question_options, same_period
from ouvrage.cli.books_kept import accounted
from ouvrage.cli.books_pages import pdf_option, write_pages
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import html_option, json_option, keep_everything, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.evidence.figures import Sheet
from ouvrage.model.closings import BooksClosed


class _Books(click.Group):
    """A group whose larger verbs are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs by name."""
        return sorted({*super().list_commands(ctx), *_LATER})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command; None for a word that is no verb."""
        if cmd_name not in _LATER:
            return super().get_command(ctx, cmd_name)
        module, attribute = _LATER[cmd_name]
        return getattr(import_module(f"ouvrage.cli.{module}"), attribute)


_LATER = {
    "reconcile": ("books_reconcile", "reconcile"),
    "match": ("books_match", "match"),
    "energy": ("books_energy", "energy_"),
    "journal": ("books_journal", "journal_"),
    "goodput": ("goodput", "goodput"),
    "close": ("books_close", "close"),
    "reopen": ("books_close", "reopen"),
}
"""Verb → module below ``ouvrage.cli`` and attribute."""


@click.group(cls=_Books)
def books() -> None:
    """What a machine earned and cost: the books of an owner.

    \b
    Begin:  ouvrage init
    Then:   ouvrage books pnl --by node
    """
    keep_everything()


@books.command("pnl")
@click.option(
    "--by", type=click.Choice(BY), default="node", show_default=True, help="An object a row."
)
@question_options
@html_option
@pdf_option
@json_option
@plain_option
def pnl_(
    by: str,
    wanted: Wanted,
    html_file: Path | None,
    pdf_file: Path | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Hours, revenue, every cost and the margin of each GPU, node, channel or tenant."""
    with opened() as ledger:
        question, made = accounted(ledger, wanted, with_facts=bool(html_file or pdf_file))
        statement, beside = statement_of(made, by), _beside(question, made)
        lines, closed = _closed(ledger, question, statement.total, wanted.as_of)
    shown = (statement, question.period, made)
    said = _told(statement, question.period, beside, lines, False)
    write_pages(shown, beside.gaps, lines, said, html_file, pdf_file)
    if as_json:
        told = {**statement_json(statement), **_beside_json(beside)}
        say_json({**told, "closed": closed})
        return
    say_text(_told(statement, question.period, beside, lines, plain))
    for file in (html_file, pdf_file):
        if file is not None:
            say_text(f"\nWrote {file}")


def _closed(
    ledger: Ledger, question: Asked, now: Sheet, as_of: int | None
) -> tuple[Sequence[str], Any]:
    """What is told of a closed month, in lines and as JSON; nothing of an open one."""
    if not ledger.store.lines((BooksClosed.KIND,)):
        return (), None
    from ouvrage.cli import books_close

    found = books_close.since_closed(ledger, question, now, as_of)
    return books_close.closed_lines(found), books_close.closed_json(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stands beside a statement: its gaps, the change since the period before, what was planned.

    The first two not where there are more than ``MOST_DEVICES``: each takes a whole account more.
    """

    gaps: Sequence[Gap]
    change: Variance | None
    plans: Sequence[AgainstPlan]
    before: Period


def _beside(question: Asked, made: Account) -> Beside:
    record, site, passed = question.books.record, question.site, question.passed
    before = period_before(question.period)
    few = len(made.grid.models) <= MOST_DEVICES
    begun = any(each.valid_from < before.to_us for each in record.nodes)
    compared = few and begun and passed.to_us == question.period.to_us
    return Beside(
        gaps=gaps(record, site, passed) if few else (),
        change=variance(account(record, site, before), made) if compared else None,
        plans=against_plan(made),
        before=before,
    )


def _beside_json(beside: Beside) -> dict[str, Any]:
    first = worth_filling(beside.gaps)[:1]
    return {
        "weakest": gap_json(first[0]) if first else None,
        "change": variance_json(beside.change, beside.before.name) if beside.change else None,
        "plans": [plan_json(each) for each in beside.plans],
    }


def _told(
    statement: Statement, period: Period, beside: Beside, closed: Sequence[str], plain: bool
) -> str:
    first = statement.rows[0] if len(statement.rows) == 1 else statement.total
    lines = [answer(first, period, plain), ""]
    if len(statement.rows) > 1:
        head, rows = rows_table(statement, plain)
        lines += [*(f"  {line}" for line in table(head, rows, "<>>>>>>>").splitlines()), ""]
    lines += detail(first, plain)
    if beside.change is not None and beside.change.parts is not None:
        lines.append(f"  change    {variance_line(beside.change, period_words(beside.before))}")
    planned = plan_lines(_wanted_plans(statement, beside.plans), plain)
    lines += [f"  {'' if i else 'plan':<8}  {line}" for i, line in enumerate(planned)]
    known = first["margin.net"].value is not None
    weakest = weakest_line(beside.gaps, statement.currency, plain) if known else None
    lines += [f"  {weakest}"] if weakest else []
    lines += [f"  note: {safe(note)}" for note in statement.notes]
    lines += [f"  {safe(line)}" for line in closed]
    return "\n".join([*lines, "", _more(first, period)])


def _wanted_plans(statement: Statement, plans: Sequence[AgainstPlan]) -> Sequence[AgainstPlan]:
    """That of the site; those of the nodes where a statement tells of them, or the site has none."""
    sites = [each for each in plans if each.about.startswith("site:")]
    return plans if statement.by in ("node", "gpu") or not sites else sites


def _more(sheet: Sheet, period: Period) -> str:
    path = "margin.net" if sheet["margin.net"].value is not None else "contribution"
    return (
        f"What to fill in first: ouvrage books gaps{same_period(period)}      "
        f"Why: ouvrage explain {sheet.object}:{path}"
    )


@books.command("gaps")
@question_options
@json_option
@plain_option
def gaps_(
    wanted: Wanted,
    as_json: bool,
    plain: bool,
) -> None:
    """What is assumed or not known, and how far each could move the margin; the widest first."""
    with opened() as ledger:
        question = asked(ledger, wanted)
        found = gaps(question.books.record, question.site, question.passed)
        currency = account(question.books.record, question.site, question.passed).grid.currency
    if as_json:
        say_json({"site": question.site, "period": question.period.name, "currency": currency,
                  "gaps": [gap_json(gap) for gap in found]})  # fmt: skip
    else:
        say_text(_gaps_told(worth_filling(found), question, currency, plain))


def _gaps_told(found: Sequence[Gap], question: Asked, currency: str, plain: bool) -> str:
    when = period_words(question.period)
    if not found:
        return f"Nothing that is assumed could move the margin of {question.site} in {when}."
    first = found[0]
    lines = [
        f"Fill in {name_of(first)} first: "
        + (
            f"there is no margin of {question.site} in {when} without it."
            if first.moves is None
            else f"it could move the margin of {question.site} in {when} by {moves_text(first, plain)} {currency}."
        ),
        "",
        table(
            ("what", "assumed", "plausible", f"margin, {currency}"), gap_rows(found, plain), "<<<>"
        ),
        "",
        *(
            f"  {name_of(gap)}: {safe(gap.source)}{'; ' + gap.why if gap.why else ''}"
            for gap in found
        ),
    ]
    return "\n".join([*lines, "", f"Fill it in: {first.fill}"])


@books.command("calendar")
@click.argument("device", metavar="[GPU]", required=False)
@question_options
@json_option
@plain_option
def calendar_(
    device: str | None,
    wanted: Wanted,
    as_json: bool,
    plain: bool,
) -> None:
    """What each GPU was doing, hour by hour, why, and what was said otherwise."""
    with opened() as ledger:
        question = asked(ledger, wanted)
        grid = grid_of(question.books.record, question.site, question.passed)
    calendars = {
        name: found for devices in grid.stretches.values() for name, found in devices.items()
    }
    if device is not None and device not in calendars:
        raise OuvrageError(
            "books/device", f"no GPU called {device!r} stood at {question.site} then",
            hint=f"there is {', '.join(sorted(calendars)[:8]) or 'none'}",
        )  # fmt: skip
    chosen = {device: calendars[device]} if device is not None else calendars
    if as_json:
        say_json(calendar_json(chosen, question.site, question.period))
    else:
        say_text(calendar_text(chosen, question.period, plain=plain, one=device is not None))
