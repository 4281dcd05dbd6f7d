"""Connections and answers that stay open: who asks for one, how one is refused, and for how long it may be had.

Decides the same as for any other request: ``Authorization: Bearer`` alone counts, never a cookie, so that no page of another site can
open one; a refusal has the one shape of all and comes before the connection is accepted. What stays open asks again every few seconds, so that
a right that is taken away ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.websockets import WebSocket

from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import may_not, who_are_you
from ouvrage.server.identify import actor_by_bearer
from ouvrage.server.limits import Limits
from ouvrage.server.middleware import refusal

AGAIN_S = 10.0
"""How long after a right has ended what it opened may still pass."""


async def _known(asked: HTTPConnection) -> Actor | None:
    platform: Platform = asked.app.state.platform
    scheme, _, secret = asked.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return await run_in_threadpool(actor_by_bearer, platform, secret.strip(), address_of(asked))


def address_of(asked: HTTPConnection) -> str | None:
    """Where a connection comes from."""
    return asked.client.host if asked.client else None


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


T = TypeVar("T")


class NoLonger(Exception):
    """The right to what stays open has ended."""


class Allowed:
    """Whether whoever asked for something that stays open may still have it: asked again every ``again_s`` seconds, and no more often.

    ``allowed`` is asked, in a thread, of whoever the token proves by then; it may refuse by raising.
    """

    def __init__(
        self, asked: HTTPConnection, again_s: float, allowed: Callable[[Actor], bool]
    ) -> None:
        self.again_s = again_s
        self._asked = asked
        self._allowed = allowed
        self._due = self._now() + again_s

    async def still(self) -> bool:
        """True until it is known that they may no more."""
        if self._now() < self._due:
            return True
        self._due = self._now() + self.again_s
        try:
            actor = await _known(self._asked)
            return actor is not None and await run_in_threadpool(self._allowed, actor)
        except OuvrageError as error:
            return error.code.startswith("store/")  # nobody could take a right away just now either

    async def until_not(self) -> None:
        """Wait until they may no more."""
        while True:
            await asyncio.sleep(max(0.0, self._due - self._now()))
            if not await self.still():
                return

    async def wait(self, coming: Awaitable[T]) -> T:
        """What comes, for as long as they may have it. ``NoLonger`` once they may not."""
        task = asyncio.ensure_future(coming)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self.again_s)
                if not await self.still():
                    raise NoLonger
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def deny(socket: WebSocket, error: OuvrageError) -> None:
    """Refuse a connection that was not accepted yet."""
    await socket.send_denial_response(refusal(error))
