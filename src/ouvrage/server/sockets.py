"""Connections that stay open: who asks for one, and how one is refused.

Decides the same as for any other request: ``Authorization: Bearer`` alone counts, never a cookie, so that no page of another site can
open one; a refusal has the one shape of all and comes before the connection is accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import may_not, who_are_you
from ouvrage.server.identify import actor_by_bearer
from ouvrage.server.limits import Limits
from ouvrage.server.middleware import refusal


async def _known(socket: WebSocket) -> Actor | None:
    platform: Platform = socket.app.state.platform
    scheme, _, secret = socket.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return await run_in_threadpool(actor_by_bearer, platform, secret.strip(), address_of(socket))


def address_of(socket: WebSocket) -> str | None:
    """Where a connection comes from."""
    return socket.client.host if socket.client else None


async def still(socket: WebSocket) -> Actor:
    """Who asked for an open connection, as they stand now. ``Refused`` where they are nobody known any more."""
    actor = await _known(socket)
    if actor is None:
        raise who_are_you()
    return actor


async def actor_of(socket: WebSocket, kind: str) -> Actor:
    """Who asks, which must be a ``user`` or a ``node`` as ``kind`` says. ``Refused`` where it is not."""
    platform: Platform = socket.app.state.platform
    actor = await _known(socket)
    limits: Limits = socket.app.state.limits
    settings = platform.settings
    if actor is None:
        limits.take(
            f"address {address_of(socket)}",
            a_second=settings.strangers_a_second,
            at_once=settings.strangers_at_once,
        )
        raise who_are_you()
    if actor.kind != kind:
        raise may_not(f"speak as a {kind}", (f"a {kind}",))
    a_second, at_once = settings.requests_a_second, settings.requests_at_once
    if kind == "node":  # every stream is one, and each was asked for by us
        a_second, at_once = settings.asked_a_second, settings.asked_at_once
    limits.take(f"stream {actor.id}", a_second=a_second, at_once=at_once)
    return actor


async def while_allowed(
    socket: WebSocket, again_s: float, allowed: Callable[[Actor], bool]
) -> None:
    """Until whoever opened a connection may have it no more: a token that is revoked ends here too.

    ``allowed`` is asked in a thread, now and then, and may refuse by raising.
    """
    while True:
        await asyncio.sleep(again_s)
        try:
            if not await run_in_threadpool(allowed, await still(socket)):
                return
        except OuvrageError:
            return


async def deny(socket: WebSocket, error: OuvrageError) -> None:
    """Refuse a connection that was not accepted yet."""
    await socket.send_denial_response(refusal(error))
