"""What every verb of ``ouvrage books`` asks first: which site, which period, as known when.

Decides only how these are named on the command line; what they mean is ``book_ledger``.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from ouvrage.books.period import Period
from ouvrage.cli.book_ledger import Books, books_of, period_asked, within
from ouvrage.cli.ledger import Ledger


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


def same_period(period: Period) -> str:
    """The options that name a period again."""
    begins, dots, ends = period.name.partition("..")
    if dots:
        return f" --from {begins} --to {ends}"
    return f" --{'year' if len(begins) == 4 else 'month'} {begins}"
