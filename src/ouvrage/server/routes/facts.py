"""``/v1/facts`` and ``/v1/runs``: runs sent from where they were metered, and read by those whose they are; what nodes say of themselves.

A member's token and a node's key come to the same address: what each may send is decided from who asks.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from ouvrage.server.access import (
    AnyoneDep,
    PageDep,
    PlatformDep,
    UserDep,
    acts,
    binary_body,
    body_of,
    cut,
    gate_of,
)
from ouvrage.server.services import facts, runs
from ouvrage.wire.api import Listed
from ouvrage.wire.facts import FactsTaken, RunShown, RunTold
from ouvrage.wire.health import NodeFactsTaken

router = APIRouter(tags=["runs"])

_PROJECT = Query(max_length=200, description="The project of a new run, by name or id; else main.")
Project = Annotated[str | None, _PROJECT]


@router.post("/v1/facts", **binary_body(acts("run.push")))
async def receive(
    request: Request, platform: PlatformDep, actor: AnyoneDep, project: Project = None
) -> FactsTaken | NodeFactsTaken:
    """Record a run as ``ouvrage run export`` writes it, or a node's facts about itself; sent again it changes nothing and says so."""
    with gate_of(request).entered(f"{actor.kind} {actor.id}"):
        await run_in_threadpool(facts.check_sender, platform, actor, project)
        content = await body_of(request)
        return await run_in_threadpool(facts.receive, platform, actor, project, content)


@router.get("/v1/runs", **acts("run.read"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, project: Project = None
) -> Listed[RunTold]:
    """Runs that were sent or that attempts made, as far as the asker may see them, newest first."""
    rows = runs.listed(
        platform, actor, project=project, limit=page.limit, cursor=page.after or None
    )
    items, following = cut(rows, page, lambda row: row.run)
    return Listed[RunTold](items=list(items), next=following)


@router.get("/v1/runs/{run}", **acts("run.read"))
def shown(platform: PlatformDep, actor: UserDep, run: str) -> RunShown:
    """A run by id or code, with what a unit of it took and cost."""
    return runs.shown(platform, actor, run)
