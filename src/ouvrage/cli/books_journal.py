"""``ouvrage books journal``: the books of a period as double entry, to read or to hand to a bookkeeper.

Decides nothing about entries: it finds the period, names accounts by a chart where one is given, and
writes the files that are asked for.
"""

from __future__ import annotations

from pathlib import Path

import click

from ouvrage.adapters.chart_files import read_chart
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.books.journal import Journal, journal
from ouvrage.books.journal_text import (
    OWN_NAMES,
    Chart,
    amount_text,
    beancount_text,
    csv_text,
    journal_json,
    sums_of,
    tables,
)
from ouvrage.books.period import Period
from ouvrage.books.pnl_text import period_words
from ouvrage.books.reconcile_bank import confirming
from ouvrage.cli.books_asked import Wanted, asked, question_options, same_period
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table, write_file

_FILE = click.Path(dir_okay=False, path_type=Path)
_MOST_MISSING = 8


@click.command("journal")
@question_options
@click.option("--chart", metavar="FILE", type=_FILE, help="How your bookkeeper names accounts.")
@click.option("--csv", "csv_file", metavar="FILE", type=_FILE, help="Write a table of postings.")
@click.option("--xlsx", "xlsx_file", metavar="FILE", type=_FILE, help="Write a workbook.")
@click.option("--beancount", "bean_file", metavar="FILE", type=_FILE, help="Write for beancount.")
@json_option
@plain_option
def journal_(
    wanted: Wanted,
    chart: Path | None,
    csv_file: Path | None,
    xlsx_file: Path | None,
    bean_file: Path | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Double entry: what was earned, invoiced and paid, and every cost, in balanced entries.

    \b
    A chart is a TOML file; the longest beginning of an account counts:
    [accounts]
    "Expenses:Electricity" = "6325 Power"
    "Assets:Bank" = "1800 Bank"
    """
    names = OWN_NAMES if chart is None else read_chart(chart)
    with opened() as ledger:
        question = asked(ledger, wanted)
        found = journal(question.books.record, question.site, question.passed)
    written = _written(found, names, csv_file, xlsx_file, bean_file)
    missing = names.missing(found)
    if as_json:
        say_json({**journal_json(found, names), "missing": missing, "written": written})
    else:
        say_text(_told(found, question.period, names, missing, written))


def _written(
    found: Journal,
    names: Chart,
    csv_file: Path | None,
    xlsx_file: Path | None,
    bean_file: Path | None,
) -> list[str]:
    """Write the files that were asked for, each made before any of them is written."""
    made: list[tuple[Path, str | bytes]] = []
    if csv_file is not None:
        made.append((csv_file, csv_text(found, names)))
    if bean_file is not None:
        made.append((bean_file, beancount_text(found, names)))
    if xlsx_file is not None:
        from ouvrage.cli.workbook import workbook

        made.append((xlsx_file, workbook(tables(found, names))))
    for path, content in made:
        write_file(path, content)
    return [str(path) for path, _ in made]


def _told(
    found: Journal, period: Period, names: Chart, missing: list[str], written: list[str]
) -> str:
    income, expenses = sums_of(found)
    when, code = period_words(period), found.currency
    lines = [
        f"{found.site} in {when}: {len(found.entries)} entries balance; income {fixed(income, 2)}, "
        f"expenses {fixed(expenses, 2)}, {fixed(income - expenses, 2)} {code} left, as the statement says.",
        "",
    ]
    with_theirs = names is not OWN_NAMES
    head = ("account", *(("theirs",) if with_theirs else ()), f"moved by, {code}")
    shown = [
        (name, *((safe(names.theirs(name) or "–"),) if with_theirs else ()), amount_text(nano))
        for name, nano in found.balances.items()
    ]
    lines += [
        f"  {line}" for line in table(head, shown, "<<>" if with_theirs else "<>").splitlines()
    ]
    lines += [""] if shown else []
    if found.unknown:
        lines.append(f"  not entered, for nobody stated it: {', '.join(found.unknown)}")
    lines += [
        f"  not entered, for the amount alone agrees: {safe(each.lines[0].name)} may pay "
        f"{safe(each.claims[0].name)}; if so: {safe(confirming(each))}"
        for each in found.possible
    ]
    if missing:
        more = f" and {len(missing) - _MOST_MISSING} more" if len(missing) > _MOST_MISSING else ""
        lines.append(f"  the chart does not name {', '.join(missing[:_MOST_MISSING])}{more}")
    lines += [f"  note: {safe(note)}" for note in found.notes]
    lines += [f"  written: {safe(path)}" for path in written]
    ask = f"ouvrage books journal{same_period(period)}"
    return "\n".join(
        [*lines, f"For a bookkeeper: {ask} --csv FILE, --xlsx FILE or --beancount FILE"]
    )
