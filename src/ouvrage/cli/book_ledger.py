"""The books as verbs see them: an owner's record from this home, a site, a period, an account.

Decides which facts are read, which site is meant where none is named, which period where none is
asked for (the last whole month of which anything is known), and as of which moment an answer stands:
the last thing recorded, or the end of the period where that is later, but never a moment to come. The
same question therefore has the same answer, under the same names, until something new is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_text
from ouvrage.books.account import account
from ouvrage.books.cells import UNNAMED
from ouvrage.books.period import Period, month_of, period_named
from ouvrage.books.pnl import UNSOLD, class_name, sheet_named
from ouvrage.books.record import BOOK_KINDS, OwnerRecord, record_of_lines
from ouvrage.cli.ledger import Ledger, past
from ouvrage.evidence.figures import Sheet
from ouvrage.ledger.facts import Recorded

FIRST = "ouvrage init"


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """An owner's record as known at a moment: all of it had been recorded by ``known``."""

    record: OwnerRecord
    ledger: Ledger
    known: int

    @property
    def records(self) -> Sequence[Recorded]:
        """The records behind it, read when they are asked for: few answers need them."""
        store = self.ledger.store
        return [r for kind in BOOK_KINDS for r in store.records(kind=kind, as_of=self.known)]

    def site(self, name: str | None) -> str:
        """The site that is meant: the one named, else the only one there is."""
        names = sorted({each.value.site for each in self.record.sites})
        if not names:
            raise OuvrageError("books/none", "no site is set up yet", hint=FIRST)
        if name is None and len(names) > 1:
            raise OuvrageError(
                "books/which-site", f"there are {len(names)} sites: {', '.join(names)}",
                hint=f"--site {names[0]}",
            )  # fmt: skip
        if name is not None and name not in names:
            raise OuvrageError(
                "books/site", f"no site is called {name!r}", hint=f"there is {', '.join(names)}"
            )
        return name or names[0]

    def zone(self, site: str) -> str:
        """The zone of a site's days."""
        held = self.record.site(site)
        return held.value.zone if held else "UTC"


def books_of(ledger: Ledger, as_of: int | None) -> Books:
    """The books of this home, as known at a moment (None: now)."""
    closed = past(as_of, ledger)
    record = record_of_lines(ledger.store.lines(BOOK_KINDS, as_of=closed))
    return Books(record=record, ledger=ledger, known=record.as_of)


def within(books: Books, ledger: Ledger, period: Period, as_of: int | None) -> tuple[Books, Period]:
    """The books as of one moment, and the part of the period that had passed by then."""
    known = max(books.record.as_of, min(now_us(), period.to_us)) if as_of is None else as_of
    moment = past(known, ledger) or known
    if moment <= period.from_us:
        raise OuvrageError(
            "period/future", f"{period.name} has not begun by {utc_text(moment)[:16]}Z",
            hint="ask for a period of which something is known",
        )  # fmt: skip
    return replace(books, record=replace(books.record, as_of=moment)), period.until(moment)


def period_asked(books: Books, site: str, name: str | None) -> Period:
    """The period of a name; the last whole month of which anything is known for none."""
    zone = books.zone(site)
    return period_named(name, zone) if name else _latest(books.record, zone)


def _latest(record: OwnerRecord, zone: str) -> Period:
    """The last month that has ended and of which something is known; else the one under way."""
    now = now_us()
    happened = (*record.earnings, *record.states, *record.leases, *record.energy, *record.bills)
    known = [min(each.end, now) - 1 for each in happened if each.valid_from < now]
    under_way = month_of(now, zone)
    last = month_of(min(max(known, default=now), under_way.from_us - 1), zone)
    begun = min((each.valid_from for each in record.nodes), default=now)
    return under_way if last.to_us <= begun else last


def book_sheet(
    ledger: Ledger, text: str, as_of: int | None
) -> tuple[Sheet, Sequence[Recorded]] | None:
    """The figures of ``OBJECT/PERIOD`` or of ``OBJECT`` in the last month; None for no such object.

    An object is a node, a GPU, a site, a channel, a tenant or a class of GPU, looked for in this order.
    """
    name, _, period = text.partition("/")
    books = books_of(ledger, as_of)
    if not period and name not in _names(books.record):
        return None
    for site in sorted({each.value.site for each in books.record.sites}):
        named = (
            period_named(period, books.zone(site))
            if period
            else _latest(books.record, books.zone(site))
        )
        held, passed = within(books, ledger, named, as_of)
        sheet = sheet_named(account(held.record, site, passed), name)
        if sheet is not None:
            return sheet, held.records
    return None


def _names(record: OwnerRecord) -> set[str]:
    """Everything in the books that can be named without a period."""
    sold = [each.value for each in (*record.earnings, *record.leases, *record.states)]
    found: set[str | None] = {UNSOLD, UNNAMED, *record.homes, *record.placed}
    found |= {each.value.site for each in record.sites}
    found |= {value.channel for value in sold} | {value.tenant for value in sold}
    found |= {class_name(each.value.model) for each in record.devices}
    return {name for name in found if name is not None}
