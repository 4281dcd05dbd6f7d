"""What every verb of ``ouvrage books`` asks first: which site, which period, as known when.

Decides only how these are named on the command line; what they mean is ``book_ledger``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from ouvrage.books.period import Period
from ouvrage.cli.book_ledger import Books, books_of, period_asked, within
from ouvrage.cli.ledger import Ledger
from ouvrage.cli.options import Verb, as_of_option, period_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the options of a verb name; ``as_of`` is a moment, None for now."""

    site: str | None
    period: str | None
    as_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a statement is asked about: the site, the period as named and as far as it has passed."""

    books: Books
    site: str
    period: Period
    passed: Period


def asked(ledger: Ledger, wanted: Wanted) -> Asked:
    """The site and the period that are wanted, as known at a moment."""
    found = books_of(ledger, wanted.as_of)
    name = found.site(wanted.site)
    named = period_asked(found, name, wanted.period)
    held, passed = within(found, ledger, named, wanted.as_of)
    return Asked(books=held, site=name, period=named, passed=passed)


site_option = click.option("--site", metavar="NAME", help="Whose books, where there are several.")


def question_options(verb: Verb) -> Verb:
    """``--site``, a period and ``--as-of``; the verb gets them as ``wanted``."""

    @wraps(verb)
    def told(
        *args: Any, site: str | None, period: str | None, as_of: int | None, **others: Any
    ) -> Any:
        return verb(*args, wanted=Wanted(site=site, period=period, as_of=as_of), **others)

    asking: Any = site_option(period_options(as_of_option(told)))
    return asking


def same_period(period: Period) -> str:
    """The options that name a period again."""
    begins, dots, ends = period.name.partition("..")
    if dots:
        return f" --from {begins} --to {ends}"
    return f" --{'year' if len(begins) == 4 else 'month'} {begins}"
