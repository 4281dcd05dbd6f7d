"""The books that an owner's statement goes into: which site is meant, and what it must know already.

Decides that a statement about something unknown is refused with what there is. Channels and tenants
need no statement of their own, since they are named where money is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ouvrage.base.errors import OuvrageError
from ouvrage.books.calendar import placements
from ouvrage.books.record import OwnerRecord
from ouvrage.cli.book_ledger import Books, books_of
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.owning import Place, about_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Owning:
    """The open ledger, the books in it, and the site that is meant."""

    ledger: Ledger
    books: Books
    place: Place

    @property
    def record(self) -> OwnerRecord:
        """The owner's record."""
        return self.books.record

    def exists(self, about: str) -> str:
        """An object that is known, or a refusal. Channels and tenants need no statement."""
        sort, _, name = about_of(about).partition(":")
        known = {
            "site": [each.value.site for each in self.record.sites],
            "node": [each.value.node for each in self.record.nodes],
            "device": [each.value.device for each in self.record.devices],
        }.get(sort)
        if known is not None and name not in known:
            there = ", ".join(f"{sort}:{each}" for each in sorted(set(known))[:8])
            raise OuvrageError(
                "own/unknown", f"there is no {about}", hint=f"there is {there or 'none'}"
            )
        return about


@contextmanager
def owning(site: str | None = None) -> Iterator[Owning]:
    """The books of this home with the site that is meant."""
    with opened() as ledger:
        books = books_of(ledger, None)
        name = books.site(site)
        held = books.record.site(name)
        assert held is not None
        place = Place(site=name, currency=held.value.currency, zone=held.value.zone)
        yield Owning(ledger=ledger, books=books, place=place)


def site_of_node(node: str) -> str | None:
    """The site of a machine, as last stated; None for one that is not known."""
    with opened() as ledger:
        nodes = books_of(ledger, None).record.nodes
    return next((each.value.site for each in reversed(nodes) if each.value.node == node), None)


def site_of(about: str) -> str | None:
    """The site of an object, where it can be known from the object alone."""
    sort, _, name = about_of(about).partition(":")
    if sort == "site":
        return name
    if sort == "node":
        return site_of_node(name)
    if sort == "device":
        with opened() as ledger:
            record = books_of(ledger, None).record
        home = next(
            (t.value.node for t in reversed(placements(record)) if t.value.device == name), None
        )
        return None if home is None else site_of_node(home)
    return None
