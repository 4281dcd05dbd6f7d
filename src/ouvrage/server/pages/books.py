"""The owner's books: the statement of a month with its pictures, as ``ouvrage books pnl`` tells it.

Decides which blocks of the console the page of the books becomes; figures and words are that page's own.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.books.pnl import BY
from ouvrage.console.blocks import Block, Cell, ConsolePage, Notice, Picture, Said, Table, Tiles
from ouvrage.console.books_page import BooksView, books_page
from ouvrage.console.page import Page, Shown
from ouvrage.server.errors import unreadable
from ouvrage.server.pages.frame import Visit, page
from ouvrage.server.services import books

router = APIRouter()


def month(seen: Visit) -> ConsolePage:
    """The books of the site and month that the address names; those of this month for none."""
    _ = seen.word
    record = books.record_of(seen.platform, seen.who)
    names = books.sites(record)
    if not names:
        return ConsolePage(
            title=_("Books"),
            headline=_("No site is set up yet"),
            lead=(
                _("Say what the machine cost and what its electricity costs: the books then say what it really earns."),
            ),
            place="books",
            blocks=(Notice(text="OUVRAGE_HOME=STATE ouvrage init", tone="plain"),),
        )  # fmt: skip
    by = seen.given("by") or "node"
    if by not in BY:
        raise unreadable("books/by", f"there is no view by {by!r}", hint=", ".join(BY), field="by")
    view = books.view_of(
        seen.platform, record, seen.given("site") or names[0], seen.given("month"), by
    )
    return _page(seen, view, names)


def _page(seen: Visit, view: BooksView, names: list[str]) -> ConsolePage:
    made = books_page(view)
    return ConsolePage(
        title=seen.word("Books"),
        headline=made.headline,
        lead=made.lead,
        place="books",
        blocks=(*_blocks(seen, made), *_others(seen, view, names)),
    )


def _blocks(seen: Visit, made: Page) -> list[Block]:
    found: list[Block] = [
        Tiles(tiles=tuple((tile.label, _cell(tile.shown, tile.note)) for tile in made.tiles)),
        Table(
            heading=seen.word("Statement"),
            columns=("", *made.columns),
            rows=tuple(
                (Cell(text=row.label), *(_cell(shown) for shown in row.cells)) for row in made.rows
            ),
        ),
    ]
    found += [Picture(heading=d.heading, svg=d.svg, caption=d.caption) for d in made.drawings]
    found += [Notice(text=note, tone="plain") for note in made.notes]
    if made.about:
        found.append(
            Said(
                heading=seen.word("About these figures"),
                text="\n".join(f"{name}: {value}" for name, value in made.about),
            )
        )
    return found


def _cell(shown: Shown, note: str = "") -> Cell:
    return Cell(text=shown.text, grade=shown.grade, note=note or shown.note, number=True)


def _others(seen: Visit, view: BooksView, names: list[str]) -> list[Block]:
    """Other ways to look at the same books."""
    _ = seen.word
    month, site = view.period.name, view.statement.site
    rows = [
        (Cell(text=f"{_('by')} {by}", href=f"/books?site={site}&month={month}&by={by}"),)
        for by in BY
    ]
    rows += [(Cell(text=name, href=f"/books?site={name}"),) for name in names if name != site]
    return [Table(heading=_("Look at it another way"), columns=(_("View"),), rows=tuple(rows))]


page(router, "/books", month)
