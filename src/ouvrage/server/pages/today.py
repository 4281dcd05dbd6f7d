"""The first page: what needs a person, what there is to sell now, and what is under way.

Decides what counts as needing a person: a machine that does not answer or is held back, and a job of the reader's own that ended badly
in the last day. Whoever owns no machine sees their own work alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from ouvrage.base.time import DAY
from ouvrage.console.blocks import Block, Cell, ConsolePage, Notice, Tiles
from ouvrage.server.authorise import may
from ouvrage.server.pages.frame import Visit, page
from ouvrage.server.pages.jobs import table
from ouvrage.server.pages.offers import may_somewhere
from ouvrage.server.pages.told import moment
from ouvrage.server.services import jobs, nodes, offers
from ouvrage.server.services.rented import rented_told
from ouvrage.wire.work import JobTold, NodeTold

router = APIRouter()
MOST = 200
UNDER_WAY = ("waiting", "starting", "running", "stopping")


def today(seen: Visit) -> ConsolePage:
    """The first page."""
    _ = seen.word
    machines = _machines(seen)
    under_way = _jobs(seen, UNDER_WAY)
    failed = [each for each in _jobs(seen, ("failed", "refused")) if _lately(seen, each)]
    needs = [*_of_machines(seen, machines or []), *_of_jobs(seen, failed)]
    running = sum(each.state == "running" for each in under_way)
    waiting = sum(each.state == "waiting" for each in under_way)
    said = _("Nothing needs you") if not needs else f"{_('Needs you')}: {len(needs)}"
    return ConsolePage(
        title=_("Today"),
        headline=f"{said}; {_('running')}: {running}; {_('waiting')}: {waiting}",
        lead=(),
        place="today",
        blocks=(
            *needs,
            *_first_steps(seen, machines),
            _tiles(seen, machines, running, waiting),
            table(seen, under_way[:20], _("Under way"), more="/jobs"),
        ),
        live_s=5,
    )


def _machines(seen: Visit) -> list[NodeTold] | None:
    """The machines, for those who may see them."""
    if not may(seen.who, "node.read", org=None):
        return None
    return nodes.listed(seen.platform, seen.who, after="", limit=MOST)


def _jobs(seen: Visit, states: tuple[str, ...]) -> list[JobTold]:
    if not may_somewhere(seen, "job.read"):
        return []
    return jobs.listed(
        seen.platform, seen.who, states=states, project=None, lease=None, cursor=None, limit=MOST
    )


def _lately(seen: Visit, each: JobTold) -> bool:
    return each.ended_us is not None and each.ended_us > seen.platform.clock() - DAY


def _of_machines(seen: Visit, machines: list[NodeTold]) -> list[Block]:
    _ = seen.word
    found: list[Block] = []
    for each in machines:
        where = f"/nodes/{each.name}"
        if each.state != "here":
            words = f"{each.name}: {_('no word since')} {moment(each.seen_us, seen.language)}"
            found.append(Notice(text=words, tone="bad", href=where, action=_("Look at it")))
        found += [
            Notice(
                text=f"{fence.device or each.name}: {_('held back from new work')}: {fence.why}",
                tone="bad",
                href=where,
                action=_("Look at it"),
            )
            for fence in each.fences
        ]
    return found


def _of_jobs(seen: Visit, failed: list[JobTold]) -> Sequence[Block]:
    own = {held.org for held in seen.who.memberships}
    return [
        Notice(
            text=f"{each.code} {each.name}: {each.reason or seen.word(each.state)}",
            href=f"/jobs/{each.job}",
            action=seen.word("Look at it"),
        )
        for each in failed
        if each.org in own
    ][:5]


def _first_steps(seen: Visit, machines: list[NodeTold] | None) -> list[Block]:
    """What to do next on a platform where nothing stands yet."""
    _ = seen.word
    if machines is None:
        return []
    if not machines:
        return [Notice(text=_("First: let a machine join."), tone="plain", href="/nodes", action=_("Nodes"))]  # fmt: skip
    if not offers.listed(seen.platform, seen.who, withdrawn=False, cursor=None, limit=1):
        return [Notice(text=_("Next: put something up for sale."), tone="plain", href="/offers", action=_("Offers and leases"))]  # fmt: skip
    return []


def _tiles(seen: Visit, machines: list[NodeTold] | None, running: int, waiting: int) -> Tiles:
    _ = seen.word
    tiles = [
        (_("Jobs running"), Cell(text=str(running), tone="good" if running else "plain")),
        (_("Jobs waiting"), Cell(text=str(waiting), tone="wait" if waiting else "plain")),
    ]
    if machines is not None:
        gpus = [device for each in machines for device in each.devices]
        cores = sum(each.cpus for each in machines)
        free = sum(each.cpus_free for each in machines if each.state == "here" and not each.fences)
        tiles.append((_("Cores free"), Cell(text=f"{free} / {cores}")))
        if gpus:
            taken = sum(device.lease is not None for device in gpus)
            tiles.append((_("GPUs leased"), Cell(text=f"{taken} / {len(gpus)}")))
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
