"""``/v1/samples``: telemetry of nodes, sent with a node's own key; and the last minutes of it, for those who keep the machines running.

A batch is answered once it is kept. Waiting for that holds no thread, so that a thousand nodes leave the threads to whoever asks for
something.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from ouvrage.server.access import (
    NodeDep,
    PlatformDep,
    UserDep,
    acts,
    binary_body,
    body_of,
    intake_of,
)
from ouvrage.server.authorise import NODE
from ouvrage.server.errors import conflict
from ouvrage.server.services import telemetry
from ouvrage.wire.api import SamplesKept, SamplesShown

router = APIRouter(tags=["machines"])

_SMALL = 16 << 10
"""Bytes up to which a batch is read at once: handing it to a thread would take as long."""


@router.post("/v1/samples", **binary_body(acts(NODE)))
async def receive(request: Request, platform: PlatformDep, actor: NodeDep) -> SamplesKept:
    """Keep a batch, each once; 409 with the last number kept (``error.field``) where others must come before it."""
    content = await body_of(request)
    if len(content) > _SMALL:
        offered = await run_in_threadpool(telemetry.offered, platform, actor.id, content)
    else:
        offered = telemetry.offered(platform, actor.id, content)
    kept = await asyncio.wrap_future(intake_of(request).offer(offered))
    if kept.result == "gap":
        raise conflict(
            "samples/gap",
            f"the batches of this source after {kept.sequence} are missing",
            hint="send them first; where they are lost, begin a new source",
            field=str(kept.sequence),
        )
    return SamplesKept(result=kept.result, sequence=kept.sequence)


Since = Annotated[int, Query(ge=0, lt=2**53, description="Only moments after this one, in µs.")]


@router.get("/v1/nodes/{node}/samples", **acts("node.read"))
def recent(
    request: Request, platform: PlatformDep, actor: UserDep, node: str, since_us: Since = 0
) -> SamplesShown:
    """A node's telemetry of the last minutes: use of processors, memory and GPUs, power, energy, temperature."""
    return telemetry.recent(platform, actor, intake_of(request).recent, node, since_us)
