"""``ouvrage compare RUN RUN…``: which configuration finishes a unit for less money.

Decides what is printed and which files are written; the verdict is ``pricing/comparison.py``.
"""

from __future__ import annotations

from pathlib import Path

import click

from ouvrage.cli.comparing import compared
from ouvrage.cli.ledger import known_runs, opened, past
from ouvrage.cli.options import as_of_option, html_option, json_option, plain_option
from ouvrage.cli.output import json_text, say_json, say_text, write_file


@click.command()
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True)
@click.option("--claim", metavar="NAME", help="Also show a published comparison, as its claim.")
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write what --json prints.",
)
@html_option
@json_option
@plain_option
@as_of_option
def compare(
    runs: tuple[str, ...],
    claim: str | None,
    report_file: Path | None,
    html_file: Path | None,
    as_json: bool,
    plain: bool,
    as_of: int | None,
) -> None:
    """Which of several runs of the same work finished a unit for less money?

    The first RUN is what the others are compared with. The verdict is computed: where the dearer
    host loses, it says so, and where the measurements do not tell, it says that.
    """
    with opened() as ledger:
        as_of = past(as_of, ledger)
        found = compared(ledger, known_runs(ledger, runs, as_of), claim, as_of).comparison
        if report_file:
            write_file(report_file, json_text(found.json()) + "\n")
        if html_file:
            from ouvrage.console.comparison_page import comparison_page
            from ouvrage.console.page import html

            write_file(html_file, html(comparison_page(found)))
    if as_json:
        say_json(found.json())
        return
    say_text(found.text(plain=plain).rstrip("\n"))
    if html_file:
        say_text(f"Whole report: {html_file}")
