"""What needs a person now, what is under way, and what there is to sell: for the first page and its twins.

Decides what counts as needing a person: a machine that does not answer or is held back, a balance that does not last a day, and a job of the
asker's own organisation that ended badly in the last day. Whoever owns no machine is told of their own work alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.base.time import DAY
from ouvrage.model.work import UNDER_WAY
from ouvrage.server.authorise import may
from ouvrage.server.context import Actor, Platform
from ouvrage.server.services import jobs, nodes
from ouvrage.server.services.money_today import money_today
from ouvrage.store.platform.machines import NodeRow, all_nodes
from ouvrage.wire.work import CapacityTold, JobTold, Need, TodayTold

MOST = 200
MOST_FAILED = 5


def today(platform: Platform, actor: Actor) -> TodayTold:
    """How it stands at this moment, as far as the asker may know."""
    found = _machines(platform, actor) if may(actor, "node.read", org=None) else None
    money, balances = money_today(platform, actor)
    many = jobs.counted(platform, actor, UNDER_WAY) if _sees_jobs(actor) else {}
    return TodayTold(
        as_of_us=platform.clock(),
        needs=[*(found[1] if found else []), *balances, *_of_jobs(platform, actor)],
        running=many.get("running", 0),
        waiting=many.get("waiting", 0),
        capacity=found[0] if found else None,
        money=money,
    )


def _sees_jobs(actor: Actor) -> bool:
    return any(may(actor, "job.read", org=h.org, project=h.project) for h in actor.memberships)


def jobs_of(platform: Platform, actor: Actor, states: tuple[str, ...]) -> list[JobTold]:
    """The asker's jobs in these states, the newest first; none for those who may see no jobs."""
    if not _sees_jobs(actor):
        return []
    return jobs.listed(
        platform, actor, states=states, project=None, lease=None, cursor=None, limit=MOST
    )


def _machines(platform: Platform, actor: Actor) -> tuple[CapacityTold, list[Need]]:
    """What all machines have and have free, and which of them need a person."""
    with platform.reading() as connection:
        world = nodes.world_of(connection, platform, platform.clock())
        rows = all_nodes(connection)
    needs = [need for row in rows for need in _of_machine(world, row)]
    return _capacity(world, rows), needs


def _of_machine(world: nodes.World, row: NodeRow) -> list[Need]:
    page, runner = f"/nodes/{row.name}", world.runners.get(row.node)
    seen = runner.seen_us if runner else None
    away = Need(what="node-away", name=row.name, why="", since_us=seen, page=page)
    fences = [
        Need(
            what="fence", name=row.name, device=fence.device, why=fence.why,
            since_us=fence.since_us, page=page,
        )
        for fence in world.fences.get(row.node, ())
    ]  # fmt: skip
    return fences if world.here(row.node) else [away, *fences]


def _of_jobs(platform: Platform, actor: Actor) -> list[Need]:
    own = {held.org for held in actor.memberships}
    since = platform.clock() - DAY
    return [
        Need(
            what="job",
            name=f"{each.code} {each.name}",
            state=each.state,
            why=each.reason or "",
            since_us=each.ended_us,
            page=f"/jobs/{each.job}",
        )
        for each in jobs_of(platform, actor, ("failed", "refused"))
        if each.org in own and each.ended_us is not None and each.ended_us > since
    ][:MOST_FAILED]


def _capacity(world: nodes.World, rows: Sequence[NodeRow]) -> CapacityTold:
    leased = 0
    for node in {*world.leases, *world.running}:
        held = (*world.leases.get(node, ()), *world.running.get(node, ()))
        leased += len({device for each in held for device in each.placed.devices})
    return CapacityTold(
        nodes=len(rows),
        nodes_here=sum(world.here(row.node) for row in rows),
        cores=sum(len(row.seen.cpus) for row in rows),
        cores_free=sum(
            len(row.seen.cpus) - sum(len(each.cpus) for each in world.taken(row.node))
            for row in rows
            if world.here(row.node) and not world.fences.get(row.node)
        ),
        gpus=sum(len(row.seen.devices) for row in rows),
        gpus_leased=leased,
    )
