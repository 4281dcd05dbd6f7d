"""The owner's books as the console shows them: a month of one site.

Decides which month is shown where none is named (the one under way, since a platform is looked at while it runs) and that only the
owner's side sees it. What the figures are is decided by ``books``.
"""

from __future__ import annotations

from ouvrage.base.errors import OuvrageError
from ouvrage.books.account import account
from ouvrage.books.gaps import gaps
from ouvrage.books.period import month_of, period_named
from ouvrage.books.pnl import statement_of
from ouvrage.books.record import BOOK_KINDS, OwnerRecord, owner_record
from ouvrage.console.books_page import BooksView, books_view
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import unknown

MOST_DEVICES = 64
"""Above it the gaps are left out: each takes a whole account more."""


def sites(record: OwnerRecord) -> list[str]:
    """The sites whose books there are."""
    return sorted({each.value.site for each in record.sites})


def record_of(platform: Platform, actor: Actor) -> OwnerRecord:
    """The owner's record as known now."""
    authorise(actor, "platform.read", org=None)
    facts = [entry for kind in BOOK_KINDS for entry in platform.store.records(kind=kind)]
    return owner_record(facts)


def view_of(platform: Platform, record: OwnerRecord, site: str, month: str, by: str) -> BooksView:
    """A month of a site, so far as it has passed, an object a row. ``OuvrageError`` for a month that has not begun."""
    if site not in sites(record):
        raise unknown("site", site)
    held = record.site(site)
    zone = held.value.zone if held else "UTC"
    now = platform.clock()
    named = period_named(month, zone) if month else month_of(now, zone)
    passed = named.until(now)
    if not passed.us:
        raise OuvrageError(
            "period/future", f"{named.name} has not begun", hint="ask for a month that has"
        )
    made = account(record, site, passed)
    few = len(made.grid.models) <= MOST_DEVICES
    found = gaps(record, site, passed) if few else ()
    return books_view(statement_of(made, by), named, made, found, (), "")
