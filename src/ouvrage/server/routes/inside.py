"""``/v1/jobs/{job}/inside`` and ``/ports/{port}``: a running attempt of one's own, reached into over a stream.

Decides how long that lasts: until either side ends it, the attempt ends, or whoever opened it may no more; that is asked again every few seconds, so that
a token that is revoked ends here too. Every stream into a sandbox stands in the audit trail before its first byte.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

from fastapi import APIRouter, Path, WebSocket
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketDisconnect

from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Actor, Platform
from ouvrage.server.recording import record
from ouvrage.server.services.inside import Reached, reached
from ouvrage.server.sockets import AGAIN_S, Allowed, actor_of, deny
from ouvrage.server.tunnels import Stream, Tunnels
from ouvrage.wire.tunnel import END, ToInside, ToPort

router = APIRouter()

ACTION = "job.enter"


@router.websocket("/v1/jobs/{job}/inside")
async def inside(socket: WebSocket, job: str) -> None:
    """A terminal or a file of a running attempt; what passes is ``wire/inside``."""
    await _reach(socket, job, ToInside(), "a process beside it")


@router.websocket("/v1/jobs/{job}/ports/{port}")
async def forwarded(
    socket: WebSocket, job: str, port: Annotated[int, Path(ge=1, le=65535)]
) -> None:
    """A connection to a port inside a running attempt; what passes is its bytes."""
    await _reach(socket, job, ToPort(port=port), f"port {port}")


async def _reach(socket: WebSocket, job: str, what: ToInside | ToPort, words: str) -> None:
    platform: Platform = socket.app.state.platform
    tunnels: Tunnels = socket.app.state.tunnels
    with contextlib.ExitStack() as held:
        try:
            actor = await actor_of(socket, "user")
            found = await run_in_threadpool(_may, platform, actor, job, words)
            most = platform.settings.streams_of_one
            held.enter_context(socket.app.state.open.one(found.job.org, most))
            stream = await tunnels.open(found.node, found.attempt, what)
        except OuvrageError as error:
            await deny(socket, error)
            return
        try:
            await socket.accept()
            await _bridge(socket, stream, found)
        finally:
            stream.close()
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.close()


def _may(platform: Platform, actor: Actor, job: str, words: str) -> Reached:
    """The attempt, where the actor may enter it; noted in the trail."""
    found = reached(platform, actor, job, ACTION)
    with platform.writing() as tx:
        record(tx, platform, actor, ACTION, org=found.job.org, target=found.job.job, detail=words)
    return found


async def _bridge(socket: WebSocket, stream: Stream, found: Reached) -> None:
    """Pass bytes both ways until one side is gone, or the right to it."""
    tasks = {
        asyncio.create_task(_inward(socket, stream)),
        asyncio.create_task(_outward(socket, stream)),
        asyncio.create_task(_while_allowed(socket, found)),
    }
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _inward(socket: WebSocket, stream: Stream) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("text") == END:
            await stream.end()
        elif message.get("bytes"):
            await stream.write(message["bytes"])


async def _outward(socket: WebSocket, stream: Stream) -> None:
    while data := await stream.read():
        await socket.send_bytes(data)
    await socket.send_text(END)


async def _while_allowed(socket: WebSocket, found: Reached) -> None:
    platform: Platform = socket.app.state.platform

    def same(actor: Actor) -> bool:
        return reached(platform, actor, found.job.job, ACTION).attempt == found.attempt

    await Allowed(socket, AGAIN_S, same).until_not()
