"""What a route asks for in its signature: the platform, who asks, a key against repetition, a page of a list.

Decides how each is found in a request and which bucket a request empties. ``/v1`` takes ``Authorization: Bearer`` alone and
never a cookie, so that no form on another site can reach it; pages take the session's cookie alone.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ouvrage.server.authorise import ACTIONS, NODE, PUBLIC, SELF
from ouvrage.server.context import Actor, Platform
from ouvrage.server.engine import Engine
from ouvrage.server.errors import Refused, bad_request, may_not, who_are_you
from ouvrage.server.gate import Gate
from ouvrage.server.identify import actor_by_bearer
from ouvrage.server.intake import Intake
from ouvrage.server.limits import Limits
from ouvrage.server.once import Once
from ouvrage.wire.api import ErrorBody

_KEY = re.compile(r"[A-Za-z0-9_.:-]{8,128}")
LARGEST_PAGE = 200
BODY_S = 120.0
"""Whoever sends a body more slowly than that holds a place that others wait for."""
REFUSALS = (400, 401, 403, 404, 409, 413, 422, 429, 503)
"""The statuses of every refusal, which every address declares."""

_bearer = HTTPBearer(auto_error=False, description="A token, or a node's own key.")


def platform_of(request: Request) -> Platform:
    """The platform that this application serves."""
    return request.app.state.platform


def address_of(request: Request) -> str | None:
    """Where a request comes from."""
    return request.client.host if request.client else None


def limits_of(request: Request) -> Limits:
    """The buckets of this process."""
    return request.app.state.limits


def engine_of(request: Request) -> Engine:
    """The engine of this process."""
    return request.app.state.engine


def gate_of(request: Request) -> Gate:
    """The gate through which large requests come."""
    return request.app.state.gate


def intake_of(request: Request) -> Intake:
    """Where telemetry is taken."""
    return request.app.state.intake


async def _platform(request: Request) -> Platform:
    return platform_of(request)


async def _engine(request: Request) -> Engine:
    return engine_of(request)


# What only looks something up is a coroutine: a thread for it would take longer than it does.
PlatformDep = Annotated[Platform, Depends(_platform)]
EngineDep = Annotated[Engine, Depends(_engine)]


def stranger(request: Request, platform: PlatformDep) -> None:
    """Empty the bucket of an address that proves nothing about itself."""
    settings = platform.settings
    limits_of(request).take(
        f"address {address_of(request)}",
        a_second=settings.strangers_a_second,
        at_once=settings.strangers_at_once,
    )


Shown = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def _proved(
    request: Request, platform: Platform, shown: HTTPAuthorizationCredentials | None
) -> Actor:
    """Whoever the credentials prove, kept with the request; who proves nobody empties a stranger's bucket."""
    actor = actor_by_bearer(platform, shown.credentials, address_of(request)) if shown else None
    if actor is None:
        stranger(request, platform)
        raise who_are_you()
    request.state.actor = actor
    return actor


def asker(
    request: Request,
    platform: PlatformDep,
    shown: Shown,
) -> Actor:
    """Who asks a service, a user; services have a bucket of their own, since they are asked by programs."""
    actor = _proved(request, platform, shown)
    settings = platform.settings
    limits_of(request).take(
        f"service {actor.id}", a_second=settings.asked_a_second, at_once=settings.asked_at_once
    )
    return _a_user(actor)


def anyone(
    request: Request,
    platform: PlatformDep,
    shown: Shown,
) -> Actor:
    """Who asks, a user or a node; ``Refused`` 401 where that is nobody known."""
    actor = _proved(request, platform, shown)
    settings = platform.settings
    limits_of(request).take(
        f"{actor.kind} {actor.id}",
        a_second=settings.requests_a_second,
        at_once=settings.requests_at_once,
    )
    return actor


AnyoneDep = Annotated[Actor, Depends(anyone)]


async def user(actor: Annotated[Actor, Depends(anyone)]) -> Actor:
    """Who asks, who must be a user."""
    return _a_user(actor)


def _a_user(actor: Actor) -> Actor:
    if actor.kind != "user":
        raise may_not("use what is for people", ("any user",))
    return actor


async def node(actor: Annotated[Actor, Depends(anyone)]) -> Actor:
    """Which node asks, by its own key."""
    if actor.kind != "node":
        raise may_not("speak as a node", ("a node",))
    return actor


UserDep = Annotated[Actor, Depends(user)]
AskerDep = Annotated[Actor, Depends(asker)]
NodeDep = Annotated[Actor, Depends(node)]


async def once(
    request: Request,
    platform: PlatformDep,
    actor: UserDep,
    key: Annotated[
        str,
        Header(
            alias="Idempotency-Key",
            description="A new text for every new request; the same for its repetition.",
            min_length=8,
            max_length=128,
            pattern=f"^{_KEY.pattern}$",
        ),
    ],
) -> Once:
    """The request as one that may be sent twice; 400 without a key."""
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    where = f"{request.method} {asked}"
    return Once(platform=platform, actor=actor, key=key, where=where)


OnceDep = Annotated[Once, Depends(once)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list is asked for: at most ``limit`` after a place (empty: from the beginning)."""

    limit: int
    after: str


async def page(
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = 50,
    cursor: Annotated[str | None, Query(max_length=400)] = None,
) -> Page:
    """The part of a list that a request asks for; 400 for a cursor that is none."""
    if cursor is None:
        return Page(limit=limit, after="")
    try:
        place = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        after = place.decode("ascii")
        if not after.isprintable():
            raise ValueError(
                "no place of ours holds a control character, and a database refuses some"
            )
        return Page(limit=limit, after=after)
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise bad_request(
            "list/cursor",
            "that is no cursor",
            hint="hand back `next` of the answer before, as it is",
            field="cursor",
        ) from error


PageDep = Annotated[Page, Depends(page)]
Row = TypeVar("Row")


def cut(rows: Sequence[Row], asked: Page, place: Any) -> tuple[Sequence[Row], str | None]:
    """Rows to show out of one more than asked for, and the cursor to what follows them.

    ``place`` gives a row's place in the list as ASCII text.
    """
    if len(rows) <= asked.limit:
        return rows, None
    shown = rows[: asked.limit]
    return shown, base64.urlsafe_b64encode(place(shown[-1]).encode("ascii")).decode("ascii")


def acts(action: str, *, status: int = 200) -> dict[str, Any]:
    """What every route says of itself: its action, its status, and the shape of refusals.

    ``action`` stands in ``authorise.ACTIONS``, or is ``public``, ``node`` or one about oneself.
    """
    if action not in ACTIONS and action not in SELF | {PUBLIC, NODE}:
        raise KeyError(action)
    return {
        "openapi_extra": {"x-action": action},
        "status_code": status,
        "responses": {code: {"model": ErrorBody} for code in REFUSALS},
    }


async def body_of(request: Request) -> bytes:
    """The whole body, 408 where it takes too long to come."""
    try:
        return await asyncio.wait_for(request.body(), BODY_S)
    except asyncio.TimeoutError as error:
        raise Refused(
            "request/slow",
            f"the body did not come within {BODY_S:g} s",
            status=408,
            hint="send it again, in smaller parts where the line is slow",
        ) from error


def binary_body(said: dict[str, Any]) -> dict[str, Any]:
    """What a route says of itself that takes gzip and no JSON."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    body = {"required": True, "content": {"application/gzip": schema}}
    slow = {408: {"model": ErrorBody}}
    return {
        **said,
        "openapi_extra": {**said["openapi_extra"], "requestBody": body},
        "responses": {**said["responses"], **slow},
    }
