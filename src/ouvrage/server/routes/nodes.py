"""``/v1/nodes``: the machines, for those who keep them running.

Decides only the form of the addresses. A change lets the engine look anew, since what was withheld may be free.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import node_health, nodes, strangers
from ouvrage.server.services.waking import after_change
from ouvrage.server.wakes import HEALTH
from ouvrage.wire.api import Listed
from ouvrage.wire.health import NewMaintenance, NewRepair, NodeHealthTold
from ouvrage.wire.work import (
    EnrolmentMade,
    NewEnrolment,
    NewFence,
    NewListing,
    NewProofs,
    NodeTold,
    ProofsTaken,
)

router = APIRouter(tags=["machines"])


@router.get("/v1/nodes", **acts("node.read"))
def listed(platform: PlatformDep, actor: UserDep, page: PageDep) -> Listed[NodeTold]:
    """All nodes, by name."""
    rows = nodes.listed(platform, actor, after=page.after, limit=page.limit)
    items, following = cut(rows, page, lambda row: row.name)
    return Listed[NodeTold](items=list(items), next=following)


@router.post("/v1/nodes/enrolments", **acts("node.enrol", status=201))
def enrolment(once: OnceDep, asked: NewEnrolment) -> EnrolmentMade:
    """A one-time token with which one node's runner enrols; shown this once."""
    return once.do(
        EnrolmentMade, asked, lambda tx: nodes.enrolment(tx, once.platform, once.actor, asked)
    )


@router.get("/v1/nodes/{node}", **acts("node.read"))
def shown(platform: PlatformDep, actor: UserDep, node: str) -> NodeTold:
    """One node and what stands on it."""
    return nodes.shown(platform, actor, node)


@router.post("/v1/nodes/{node}/fence", **acts("node.change"))
def fence(once: OnceDep, node: str, asked: NewFence) -> NodeTold:
    """Hold a node or one of its GPUs back from new work, or let go."""
    told = once.do(
        NodeTold, asked, lambda tx: nodes.fence(tx, once.platform, once.actor, node, asked)
    )
    after_change(once.platform)
    return told


@router.post("/v1/nodes/{node}/listing", **acts("node.change"))
def listing(once: OnceDep, node: str, asked: NewListing) -> NodeTold:
    """Let a node take new leases, or no more; what runs there runs on."""
    told = once.do(
        NodeTold, asked, lambda tx: nodes.listing(tx, once.platform, once.actor, node, asked)
    )
    after_change(once.platform)
    return told


@router.get("/v1/nodes/{node}/health", **acts("node.read"))
def health(
    platform: PlatformDep,
    actor: UserDep,
    node: str,
    days: Annotated[int, Query(ge=1, le=366)] = 30,
) -> NodeHealthTold:
    """How a node stands and stood, what was tried, how often it was there, and what a promise implies."""
    return node_health.told(platform, actor, node, days)


@router.post("/v1/nodes/{node}/repair", **acts("node.change"))
def repair(once: OnceDep, node: str, asked: NewRepair) -> NodeHealthTold:
    """Record a step of a runbook, how a rung ended, or a person's decision where a node goes from here."""
    told = once.do(
        NodeHealthTold,
        asked,
        lambda tx: node_health.repair(tx, once.platform, once.actor, node, asked),
    )
    once.platform.wakes.tell(HEALTH)
    return told


@router.post("/v1/nodes/{node}/maintenance", **acts("node.change"))
def maintenance(once: OnceDep, node: str, asked: NewMaintenance) -> NodeHealthTold:
    """Set a window in which a node is out of service, or call one off."""
    told = once.do(
        NodeHealthTold,
        asked,
        lambda tx: node_health.maintain(tx, once.platform, once.actor, node, asked),
    )
    once.platform.wakes.tell(HEALTH)
    return told


@router.post("/v1/nodes/{node}/proofs", **acts("node.change"))
def proofs(once: OnceDep, node: str, asked: NewProofs) -> ProofsTaken:
    """What was proved of a node on itself: certificates and audits. Offers to strangers stand on them."""
    return once.do(
        ProofsTaken,
        asked,
        lambda tx: strangers.receive(tx, once.platform, once.actor, node, asked),
    )
