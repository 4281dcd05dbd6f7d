"""The page that anybody may read, where the owner wants one: offers for everybody, and whether there is room now.

Decides nothing; without ``[public] page = true`` in server.toml it does not exist.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.console.blocks import Cell, ConsolePage, Table
from ouvrage.server.pages.frame import Visit, page
from ouvrage.server.pages.told import mebibytes, money, state
from ouvrage.server.services.public import ForSale, for_sale

router = APIRouter()


def offers(seen: Visit) -> ConsolePage:
    """The offers for everybody."""
    _ = seen.word
    found = for_sale(seen.platform)
    free = sum(each.room for each in found)
    return ConsolePage(
        title=_("For sale"),
        headline=f"{_('For sale')}: {len(found)}; {_('to be had now')}: {free}",
        lead=(_("Every job runs in a sandbox of its own; every charge names the rule that made it."),),
        place="",
        blocks=(
            Table(
                heading="",
                columns=(_("Offer"), _("GPUs"), _("Cores"), _("Memory"), _("Price per hour"), _("Billing"), _("Terms"), _("Now")),
                rows=tuple(_row(seen, each) for each in found),
                empty=_("Nothing is for sale to everybody."),
            ),
        ),
        live_s=30,
    )  # fmt: skip


def _row(seen: Visit, each: ForSale) -> tuple[Cell, ...]:
    _, terms = seen.word, each.terms
    return (
        Cell(text=terms.name),
        Cell(text=f"{terms.gpus} {terms.gpu or ''}".strip() if terms.gpus else "–"),
        Cell(text=str(terms.cpus), number=True),
        Cell(text=mebibytes(terms.memory_mib, seen.language), number=True),
        money(terms.rate, terms.currency, seen.language),
        Cell(text=terms.plan_name),
        Cell(text=_("may be interrupted") if terms.interruptible else _("not interrupted")),
        state("active", _("free")) if each.room else state("waiting", _("taken")),
    )


page(router, "/for-sale", offers, public=True)
