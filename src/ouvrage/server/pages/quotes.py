"""Where else the work of a job could be done: offers ranked by what a finished unit of it would cost.

Decides which jobs can be chosen, those of which a unit was seen; ranking and words are those of ``ouvrage quote``.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.base.numbers import whole
from ouvrage.console.blocks import Block, Cell, ConsolePage, Field, Form, Notice, Table
from ouvrage.pricing.market.ranking_text import excluded_line, headline, rows, warnings
from ouvrage.server.errors import unreadable
from ouvrage.server.pages.frame import Visit, page
from ouvrage.server.services import jobs, quotes

router = APIRouter()
MOST = 50


def ranked(seen: Visit) -> ConsolePage:
    """The quotes for the job that the address names, or a choice of jobs."""
    _ = seen.word
    name = seen.given("job")
    if not name:
        return ConsolePage(
            title=_("Quotes"),
            headline=_("Where would this work cost least?"),
            lead=(_("Offers are ranked by what a finished unit costs, not by the price of an hour."),),
            place="quotes",
            blocks=(_choice(seen),),
        )  # fmt: skip
    asked = seen.given("units").strip()
    units = whole(asked)
    if asked and (units is None or not 0 < units < 10**9):
        raise unreadable(
            "quote/units", f"{asked[:40]!r} is no number of units", hint="300", field="units"
        )
    found = quotes.of_job(seen.platform, seen.who, name, units)
    said = headline(found.ranking, False)
    blocks: list[Block] = []
    if found.starter:
        blocks.append(
            Notice(
                text=_("No market was imported: these are the package's few dated prices."),
                tone="plain",
            )
        )
    blocks.append(
        Table(
            heading=_("Offers"),
            columns=(
                "#",
                _("Offer"),
                _("Price per hour"),
                _("Cost of a unit"),
                _("Finished in"),
                _("Limited by"),
                _("Grade"),
                _("By the hour"),
            ),
            rows=tuple(
                tuple(Cell(text=text, number=at in (0, 2, 3, 4, 7)) for at, text in enumerate(row))
                for row in rows(found.ranking, False)
            ),
            empty=_("No offer can do this work."),
        )
    )
    notes = [
        *warnings(found.ranking, found.today),
        *filter(None, [excluded_line(found.ranking.excluded)]),
    ]
    blocks += [Notice(text=note, tone="plain") for note in notes]
    blocks.append(_choice(seen))
    return ConsolePage(
        title=_("Quotes"), headline=said[0], lead=tuple(line.strip() for line in said[1:]), place="quotes", blocks=tuple(blocks),
    )  # fmt: skip


def _choice(seen: Visit) -> Block:
    _ = seen.word
    found = jobs.listed(seen.platform, seen.who, states=None, project=None, lease=None, cursor=None, limit=MOST)  # fmt: skip
    timed = [each for each in found if each.last and each.last.units]
    if not timed:
        return Notice(text=_("A quote needs work that was metered: let a job finish a few units first."), tone="plain", href="/jobs", action=_("Jobs"))  # fmt: skip
    return Form(
        heading=_("Quote the work of a job"),
        action="/quotes",
        submit=_("Quote it"),
        twin="ouvrage quote --run RUN --units N",
        method="get",
        fields=(
            Field(name="job", label=_("Job"), kind="select", value=seen.given("job"), choices=tuple((j.job, f"{j.code} {j.name}") for j in timed)),
            Field(name="units", label=_("Units to finish"), kind="number", value=seen.given("units"), required=False),
        ),
    )  # fmt: skip


page(router, "/quotes", ranked)
