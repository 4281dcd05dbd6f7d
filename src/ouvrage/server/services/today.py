"""What needs a person now, what is under way, and what there is to sell: for the first page and its twins.

Decides what counts as needing a person: a machine that does not answer or is held back, and a job of the asker's own organisation that ended
badly in the last day. Whoever owns no machine is told of their own work alone.
"""

from __future__ import annotations

from ouvrage.base.time import DAY
from ouvrage.server.authorise import may
from ouvrage.server.context import Actor, Platform
from ouvrage.server.services import jobs, nodes
from ouvrage.wire.work import CapacityTold, JobTold, Need, NodeTold, TodayTold

MOST = 200
MOST_FAILED = 5
UNDER_WAY = ("waiting", "starting", "running", "stopping")


def today(platform: Platform, actor: Actor) -> TodayTold:
    """How it stands at this moment, as far as the asker may know."""
    machines = machines_of(platform, actor)
    under_way = jobs_of(platform, actor, UNDER_WAY)
    return TodayTold(
        as_of_us=platform.clock(),
        needs=[*_of_machines(machines or []), *_of_jobs(platform, actor)],
        running=sum(each.state == "running" for each in under_way),
        waiting=sum(each.state == "waiting" for each in under_way),
        capacity=None if machines is None else _capacity(machines),
    )


def machines_of(platform: Platform, actor: Actor) -> list[NodeTold] | None:
    """The machines, for those who may see them."""
    if not may(actor, "node.read", org=None):
        return None
    return nodes.listed(platform, actor, after="", limit=MOST)


def jobs_of(platform: Platform, actor: Actor, states: tuple[str, ...]) -> list[JobTold]:
    """The asker's jobs in these states, the newest first; none for those who may see no jobs."""
    if not any(may(actor, "job.read", org=h.org, project=h.project) for h in actor.memberships):
        return []
    return jobs.listed(
        platform, actor, states=states, project=None, lease=None, cursor=None, limit=MOST
    )


def _of_machines(machines: list[NodeTold]) -> list[Need]:
    found: list[Need] = []
    for each in machines:
        page = f"/nodes/{each.name}"
        if each.state != "here":
            found.append(
                Need(what="node-away", name=each.name, why="", since_us=each.seen_us, page=page)
            )
        found += [
            Need(
                what="fence",
                name=each.name,
                device=fence.device,
                why=fence.why,
                since_us=fence.since_us,
                page=page,
            )
            for fence in each.fences
        ]
    return found


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


def _capacity(machines: list[NodeTold]) -> CapacityTold:
    gpus = [device for each in machines for device in each.devices]
    return CapacityTold(
        nodes=len(machines),
        nodes_here=sum(each.state == "here" for each in machines),
        cores=sum(each.cpus for each in machines),
        cores_free=sum(e.cpus_free for e in machines if e.state == "here" and not e.fences),
        gpus=len(gpus),
        gpus_leased=sum(device.lease is not None for device in gpus),
    )
