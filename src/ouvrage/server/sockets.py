"""Connections that stay open: who asks for one, and how one is refused.

Decides the same as for any other request: ``Authorization: Bearer`` alone counts, never a cookie, so that no page of another site can
open one; a refusal has the one shape of all and comes before the connection is accepted.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket

from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import may_not, who_are_you
from ouvrage.server.identify import actor_by_bearer
from ouvrage.server.limits import Limits
from ouvrage.server.middleware import refusal


async def actor_of(socket: WebSocket, kind: str) -> Actor:
    """Who asks, which must be a ``user`` or a ``node`` as ``kind`` says. ``Refused`` where it is not."""
    platform: Platform = socket.app.state.platform
    scheme, _, secret = socket.headers.get("authorization", "").partition(" ")
    address = socket.client.host if socket.client else None
    actor = None
    if scheme.lower() == "bearer":
        actor = await run_in_threadpool(actor_by_bearer, platform, secret.strip(), address)
    limits: Limits = socket.app.state.limits
    settings = platform.settings
    if actor is None:
        limits.take(
            f"address {address}",
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


async def deny(socket: WebSocket, error: OuvrageError) -> None:
    """Refuse a connection that was not accepted yet."""
    await socket.send_denial_response(refusal(error))
