"""The trail: who did what and what was refused, newest first, as far as the reader may see it.

Decides only how many lines stand on a page; who sees which is decided by the service.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.console.blocks import Cell, ConsolePage, Table
from ouvrage.server.pages.frame import Visit, page
from ouvrage.server.pages.told import moment
from ouvrage.server.services import audit
from ouvrage.wire.api import AuditTold

router = APIRouter()
LINES = 100


def trail(seen: Visit) -> ConsolePage:
    """A page of the trail."""
    _ = seen.word
    after = seen.given("before")
    rows = audit.listed(seen.platform, seen.who, seen.given("org") or None, after, LINES + 1)
    more = f"/audit?before={rows[LINES - 1].seq}" if len(rows) > LINES else None
    refusals = sum(row.outcome != "done" for row in rows[:LINES])
    return ConsolePage(
        title=_("Audit"),
        headline=f"{_('Refused among these lines')}: {refusals}" if refusals else _("Who did what"),
        lead=(_("Lines are added and never changed."),),
        place="audit",
        blocks=(
            Table(
                heading="",
                columns=(_("When"), _("Who"), _("What"), _("Outcome"), _("Detail"), _("From")),
                rows=tuple(_row(seen, each) for each in rows[:LINES]),
                empty=_("Nothing has happened yet."),
                more=more,
            ),
        ),
    )


def _row(seen: Visit, each: AuditTold) -> tuple[Cell, ...]:
    return (
        Cell(text=moment(each.at_us, seen.language)),
        Cell(text=each.login),
        Cell(text=each.action),
        Cell(text=seen.word(each.outcome), tone="plain" if each.outcome == "done" else "bad"),
        Cell(text=each.detail),
        Cell(text=each.address or "–"),
    )


page(router, "/audit", trail)
