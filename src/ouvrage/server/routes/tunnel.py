"""``/v1/runner/tunnel`` and ``/v1/runner/streams``: a node's own connections, dialled by its runner with its own key.

Decides nothing but who dials: a stream goes to whoever asked this very node for it, and to nobody else.
"""

from __future__ import annotations

import asyncio
import contextlib

from fastapi import APIRouter, WebSocket
from starlette.concurrency import run_in_threadpool

from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Platform
from ouvrage.server.engine import Engine
from ouvrage.server.errors import unknown
from ouvrage.server.services import dialled as dialled_at
from ouvrage.server.sockets import actor_of, deny
from ouvrage.server.tunnels import Tunnels
from ouvrage.wire.tunnel import CONTROL, STREAMS

router = APIRouter()


@router.websocket(CONTROL)
async def control(socket: WebSocket) -> None:
    """On which the server asks for streams, and the runner says which it could not make."""
    try:
        actor = await actor_of(socket, "node")
    except OuvrageError as error:
        await deny(socket, error)
        return
    await socket.accept()
    tunnels: Tunnels = socket.app.state.tunnels
    noting = asyncio.create_task(_noted(socket, actor.id))
    try:
        await tunnels.hold(actor.id, socket)
    finally:
        noting.cancel()
        await asyncio.gather(noting, return_exceptions=True)


async def _noted(socket: WebSocket, node: str) -> None:
    """Say to the other servers, where there are some, that this one reaches the node."""
    platform: Platform = socket.app.state.platform
    engine: Engine = socket.app.state.engine
    if not platform.limits.several:
        return
    try:
        while True:
            with contextlib.suppress(OuvrageError):  # of the store's: said again later
                await run_in_threadpool(dialled_at.note, platform, node, engine.token)
            await asyncio.sleep(dialled_at.AGAIN_S)
    finally:
        with contextlib.suppress(OuvrageError):
            await asyncio.shield(run_in_threadpool(dialled_at.forget, platform, node, engine.token))


@router.websocket(STREAMS + "/{stream}")
async def dialled(socket: WebSocket, stream: str) -> None:
    """A stream that the server asked this very node for."""
    try:
        actor = await actor_of(socket, "node")
        tunnels: Tunnels = socket.app.state.tunnels
        if not await tunnels.deliver(actor.id, stream, socket):
            raise unknown("stream")
    except OuvrageError as error:
        await deny(socket, error)
