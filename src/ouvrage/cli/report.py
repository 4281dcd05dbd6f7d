"""``ouvrage report RUN``: what one run cost and where its time went.

Decides what is printed and which files are written; the words and figures are ``pricing/report.py``.
"""

from __future__ import annotations

from pathlib import Path

import click

from ouvrage.cli.ledger import known_runs, opened, past
from ouvrage.cli.options import as_of_option, html_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, write_file
from ouvrage.pricing.report import report_json, report_text


@click.command()
@click.argument("run", metavar="RUN")
@html_option
@json_option
@plain_option
@as_of_option
def report(run: str, html_file: Path | None, as_json: bool, plain: bool, as_of: int | None) -> None:
    """What a finished unit of RUN cost, and where its time went.

    RUN is an id, a short code such as R7K2, a label (its latest run), or `last`.
    """
    with opened() as ledger:
        as_of = past(as_of, ledger)
        (found,) = ledger.assessed(known_runs(ledger, [run], as_of), as_of)
        if html_file:
            from ouvrage.console.page import html
            from ouvrage.console.run_page import run_page

            spool = ledger.spool(found.view.run)
            columns, gpus = (spool.columns, spool.gpus) if spool else (None, ())
            write_file(html_file, html(run_page(found.view, found.sheet, columns, gpus)))
    if as_json:
        say_json(report_json(found.view, found.sheet))
        return
    say_text(report_text(found.view, found.sheet, plain=plain).rstrip("\n"))
    if html_file:
        say_text(f"Whole report: {html_file}")
