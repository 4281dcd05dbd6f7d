"""The page and the sheet of paper of ``ouvrage books pnl``: made whole before either is written.

Decides only which libraries are loaded: those of a page where one is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ouvrage.books.account import Account
from ouvrage.books.gaps import Gap
from ouvrage.books.period import Period
from ouvrage.books.pnl import Statement
from ouvrage.cli.output import write_file

pdf_option = click.option(
    "--pdf",
    "pdf_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a page of PDF.",
)


def write_pages(
    shown: tuple[Statement, Period, Account],
    gaps: Sequence[Gap],
    closed: Sequence[str],
    said: str,
    html_file: Path | None,
    pdf_file: Path | None,
) -> None:
    """Write the page, the sheet, or both, of a statement and the account that it is made from."""
    if html_file is None and pdf_file is None:
        return
    from ouvrage.console.books_page import books_page, books_view

    view = books_view(*shown, gaps, closed, said)
    contents: list[tuple[Path, str | bytes]] = []
    if html_file is not None:
        from ouvrage.console.page import html

        contents.append((html_file, html(books_page(view))))
    if pdf_file is not None:
        from ouvrage.console.books_pdf import books_pdf

        contents.append((pdf_file, books_pdf(view)))
    for file, content in contents:
        write_file(file, content)
