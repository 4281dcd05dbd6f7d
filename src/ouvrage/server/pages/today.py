"""The first page: what needs a person, what there is to sell now, and what is under way.

Decides only how it is put; ``services/today`` decides what counts as needing a person, and tells the interface the same.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.console.blocks import Block, Cell, ConsolePage, Notice, Tiles
from ouvrage.server.pages.frame import Visit, page
from ouvrage.server.pages.jobs import table
from ouvrage.server.pages.told import moment, money
from ouvrage.server.services import offers
from ouvrage.server.services import today as services
from ouvrage.server.services.rented import rented_told
from ouvrage.wire.work import Need, TodayTold

router = APIRouter()


def today(seen: Visit) -> ConsolePage:
    """The first page."""
    _ = seen.word
    told = services.today(seen.platform, seen.who)
    under_way = services.jobs_of(seen.platform, seen.who, services.UNDER_WAY)
    said = _("Nothing needs you") if not told.needs else f"{_('Needs you')}: {len(told.needs)}"
    return ConsolePage(
        title=_("Today"),
        headline=f"{said}; {_('running')}: {told.running}; {_('waiting')}: {told.waiting}",
        lead=(),
        place="today",
        blocks=(
            *(_notice(seen, each) for each in told.needs),
            *_first_steps(seen, told),
            _tiles(seen, told),
            *_money(seen, told),
            table(seen, under_way[:20], _("Under way"), more="/jobs"),
        ),
        live_s=5,
    )


def _notice(seen: Visit, need: Need) -> Notice:
    _ = seen.word
    if need.what == "node-away":
        words = f"{need.name}: {_('no word since')} {moment(need.since_us, seen.language)}"
    elif need.what == "fence":
        words = f"{need.device or need.name}: {_('held back from new work')}: {need.why}"
    elif need.what == "balance":
        words = f"{need.name}: {_('its money is used up within a day')}"
    else:
        words = f"{need.name}: {need.why or _(need.state or '')}"
    tone = "bad" if need.what in ("node-away", "fence") else "wait"
    return Notice(text=words, tone=tone, href=need.page, action=_("Look at it"))


def _first_steps(seen: Visit, told: TodayTold) -> list[Block]:
    """What to do next on a platform where nothing stands yet."""
    _ = seen.word
    if told.capacity is None:
        return []
    if not told.capacity.nodes:
        return [Notice(text=_("First: let a machine join."), tone="plain", href="/nodes", action=_("Nodes"))]  # fmt: skip
    if not offers.listed(seen.platform, seen.who, withdrawn=False, cursor=None, limit=1):
        return [Notice(text=_("Next: put something up for sale."), tone="plain", href="/offers", action=_("Offers and leases"))]  # fmt: skip
    return []


def _money(seen: Visit, told: TodayTold) -> list[Block]:
    """One row of tiles for each currency in which something moved or is sold."""
    _ = seen.word
    return [
        Tiles(
            tiles=(
                (_("Charged today"), money(each.charged, each.currency, seen.language)),
                (_("Running now"), money(each.running, each.currency, seen.language)),
                (_("Per hour now"), money(each.burn_per_hour, each.currency, seen.language)),
            )
        )
        for each in told.money or ()
    ]


def _tiles(seen: Visit, told: TodayTold) -> Tiles:
    _ = seen.word
    tiles = [
        (_("Jobs running"), Cell(text=str(told.running), tone="good" if told.running else "plain")),
        (_("Jobs waiting"), Cell(text=str(told.waiting), tone="wait" if told.waiting else "plain")),
    ]
    if (held := told.capacity) is not None:
        tiles.append((_("Cores free"), Cell(text=f"{held.cores_free} / {held.cores}")))
        if held.gpus:
            tiles.append((_("GPUs leased"), Cell(text=f"{held.gpus_leased} / {held.gpus}")))
        tiles += _rented(seen)
    return Tiles(tiles=tuple(tiles))


def _rented(seen: Visit) -> list[tuple[str, Cell]]:
    """How much of what a rented machine cost stood idle."""
    _ = seen.word
    with seen.platform.reading() as connection:
        told = rented_told(connection, seen.platform.clock())
    if told is None:
        return []
    working, held = int(told.working_s), int(told.held_s)
    share = held * 100 // max(1, working + held)
    note = f"{told.idle} / {told.paid} {told.currency}"
    return [(_("Paid for and idle"), Cell(text=f"{share} %", note=note))]


page(router, "/", today)
