"""``/v1/runner/tunnel`` and ``/v1/runner/streams``: a node's own connections, dialled by its runner with its own key.

Decides nothing but who dials: a stream goes to whoever asked this very node for it, and to nobody else.
"""

from __future__ import annotations

from fastapi import APIRouter, WebSocket

from ouvrage.base.errors import OuvrageError
from ouvrage.server.errors import unknown
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
    await tunnels.hold(actor.id, socket)


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
