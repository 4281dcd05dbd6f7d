"""``/v1/runner``: what nodes' runners ask and report, with a node's own key. The messages are ``wire/runner``.

Asking for orders waits until there is something new to do: a coroutine waits, so that a thousand runners hold no thread. An order that was
just given is no news, though it is given again with the next.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from ouvrage.adapters.health_owner import owner_in
from ouvrage.base.time import SECOND
from ouvrage.server.access import NodeDep, PlatformDep, acts, address_of, stranger
from ouvrage.server.authorise import NODE, PUBLIC
from ouvrage.server.context import Platform
from ouvrage.server.given import Given
from ouvrage.server.services import files, node_health, nodes, runner
from ouvrage.wire.health import NodeDuties
from ouvrage.wire.runner import (
    Ask,
    Enrol,
    Enrolled,
    Id,
    LogPlace,
    Order,
    Orders,
    Received,
    Report,
)
from ouvrage.wire.work import FileTold

router = APIRouter(tags=["runner"])

_RECHECK_S = 10.0
"""How long it waits at most before it looks again by itself."""


@router.post("/v1/runner/enrol", dependencies=[Depends(stranger)], **acts(PUBLIC, status=201))
def enrol(request: Request, platform: PlatformDep, asked: Enrol) -> Enrolled:
    """Join with a one-time token; the answer holds the node's own key, shown this once."""
    return nodes.enrol(platform, asked, address_of(request))


@router.post("/v1/runner/orders", **acts(NODE))
async def orders(request: Request, platform: PlatformDep, actor: NodeDep, asked: Ask) -> Orders:
    """What is to be done now; waits for something new as long as the runner allows."""
    given: Given = request.app.state.given
    told = runner.Standings.of(asked.known)
    until = platform.monotonic() + int(asked.wait_s * SECOND)
    recheck_s = 1.0 if platform.limits.several else _RECHECK_S
    with platform.wakes.listening_async(f"node:{actor.id}") as ear:
        found = await run_in_threadpool(_hear, platform, given, actor.id, asked)
        while True:
            now = platform.monotonic()
            if given.news(actor.id, found, now) or now >= until or platform.wakes.closed:
                given.note(actor.id, found, now)
                return Orders(orders=found, at=platform.clock())
            await ear.wait(min(recheck_s, max(0.05, (until - now) / SECOND)))
            found = await run_in_threadpool(_orders, platform, given, actor.id, told)


def _hear(platform: Platform, given: Given, node: str, asked: Ask) -> list[Order]:
    """Take note of what the runner says, and see what there is to do, in one transaction."""
    told = runner.Standings.of(asked.known)
    with platform.writing() as tx:
        ended = runner.hear(tx, platform, node, asked)
        found = runner.orders(tx.connection, platform, node, told)
        if given.news(node, found, platform.monotonic()):
            runner.sent(tx, found)
    if ended:
        runner.tell_ended(platform)
    return found


def _orders(platform: Platform, given: Given, node: str, told: runner.Standings) -> list[Order]:
    """What there is to do now. What goes out is recorded first: an attempt never sent may be ended without asking."""
    with platform.reading() as connection:
        found = runner.orders(connection, platform, node, told)
    if runner.unsent(found) and given.news(node, found, platform.monotonic()):
        with platform.writing() as tx:
            runner.sent(tx, found)
    return found


@router.get("/v1/runner/health", **acts(NODE))
def health(platform: PlatformDep, actor: NodeDep) -> NodeDuties:
    """What a node is to do about its own health: the epoch to name, rungs to climb, what to verify."""
    return node_health.duties(platform, actor, owner_in(platform.state_dir))


@router.post("/v1/runner/events", **acts(NODE))
def events(platform: PlatformDep, actor: NodeDep, report: Report) -> Received:
    """What happened on the node, in order; each event counts once however often it is sent."""
    return runner.receive(platform, actor.id, report.events)


@router.put("/v1/runner/attempts/{attempt}/log", **acts(NODE))
async def log(
    request: Request,
    platform: PlatformDep,
    actor: NodeDep,
    attempt: Id,
    offset: Annotated[int, Query(ge=0, lt=2**53)],
) -> LogPlace:
    """The next bytes of an attempt's log; 409 with the place (``error.field``) where bytes are missing before them."""
    content = await request.body()
    place = await run_in_threadpool(runner.take_log, platform, actor.id, attempt, offset, content)
    return LogPlace(offset=place.bytes, full=place.full)


FileName = Annotated[str, Path(max_length=200)]


@router.get(
    "/v1/runner/attempts/{attempt}/inputs/{name}", response_class=FileResponse, **acts(NODE)
)
def fetch(platform: PlatformDep, actor: NodeDep, attempt: Id, name: FileName) -> FileResponse:
    """An input of the attempt's job."""
    path = files.input_of(platform, actor.id, attempt, name)
    return FileResponse(path, media_type="application/octet-stream")


Hash = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")]


@router.put("/v1/runner/attempts/{attempt}/outputs/{name}", **acts(NODE))
async def send(
    request: Request,
    platform: PlatformDep,
    actor: NodeDep,
    attempt: Id,
    name: FileName,
    sha256: Hash = None,
) -> FileTold:
    """An output of the attempt's job, as raw bytes; with ``sha256`` it must be what it is said to be."""
    job = await run_in_threadpool(files.check_output, platform, actor.id, attempt, name)
    taken = await files.take(platform, job.job, "out", name, request.stream(), sha256)
    row = await run_in_threadpool(files.keep_output, platform, job, name, taken)
    return FileTold(
        direction=row.direction, name=row.name, bytes=row.bytes, sha256=row.sha256, at_us=row.at_us
    )
