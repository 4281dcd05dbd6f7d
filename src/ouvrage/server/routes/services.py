"""``/v1/services/{job}/…``: a service of one's own, asked through the platform.

What comes after the job's name goes to the service as it is, and its answer comes back as it is made, piece by piece. The token ends
here. Each exchange is counted once it has ended, however it did; it ends with the right to it, and where its asker has gone away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from typing import TypeVar

from fastapi import APIRouter, Request, WebSocket
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from ouvrage.base.errors import OuvrageError
from ouvrage.metering.answers import AnswerReader
from ouvrage.metering.service_use import Exchange
from ouvrage.server.access import AskerDep, PlatformDep, acts
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import CutOff, status_of, who_are_you
from ouvrage.server.services.inside import Reached, service
from ouvrage.server.services.uses import Uses
from ouvrage.server.sockets import AGAIN_S, Allowed, NoLonger, actor_of, deny
from ouvrage.server.through import SANDBOXED, Answer, Asked, BrokenOff, Services
from ouvrage.server.through_sockets import Carried

router = APIRouter(tags=["services"])
A = TypeVar("A")

PREFIX = "/v1/services"
_SHOWN = ("GET", "POST")
_OTHERS = ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")


class _Watch:
    """One exchange while it goes on."""

    def __init__(
        self, uses: Uses, found: Reached, monotonic: Callable[[], int], *, kept_open: bool = False
    ) -> None:
        self._kept_open = kept_open
        self._uses = uses
        self._found = found
        self._monotonic = monotonic
        self._began_us = monotonic()
        self._reader = AnswerReader("")
        self._first_us: int | None = None
        self._token_us: int | None = None
        self._noted = False
        self.bytes_in = self.bytes_out = 0

    def answers(self, answer: Answer) -> None:
        """Its answer has begun."""
        self._reader = AnswerReader("" if answer.encoded else answer.content_type)

    def piece(self, data: bytes) -> None:
        """A piece of the answer came."""
        self.bytes_out += len(data)
        if self._first_us is None:
            self._first_us = self._us()
        if self._reader.take(data) and self._token_us is None:
            self._token_us = self._us()

    def passed(self, inward: int, outward: int) -> None:
        """So many bytes of messages passed."""
        self.bytes_in += inward
        self.bytes_out += outward

    def ended(self, status: int | None) -> None:
        """It is over; ``status`` None where no whole answer came. Only the first time counts."""
        if self._noted:
            return
        self._noted = True
        seen = Exchange(
            status=status,
            answered=self._reader.answered(),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            first_us=self._first_us,
            token_us=self._token_us,
            took_us=self._us(),
            kept_open=self._kept_open,
        )
        self._uses.note(self._found.attempt, self._found.job.job, seen)

    def _us(self) -> int:
        return self._monotonic() - self._began_us


@router.api_route(
    PREFIX + "/{job}/{path:path}", methods=[*_OTHERS], include_in_schema=False,
    **acts("service.use"),
)  # fmt: skip
async def other(
    request: Request, platform: PlatformDep, actor: AskerDep, job: str, path: str
) -> Response:
    """The same by another method."""
    return await _through(request, await run_in_threadpool(service, platform, actor, job))


@router.get(PREFIX + "/{job}/{path:path}", response_class=Response, **acts("service.use"))
async def get(
    request: Request, platform: PlatformDep, actor: AskerDep, job: str, path: str
) -> Response:
    """Ask a service of one's own. Every other method goes through as well."""
    return await _through(request, await run_in_threadpool(service, platform, actor, job))


@router.post(PREFIX + "/{job}/{path:path}", response_class=Response, **acts("service.use"))
async def post(
    request: Request, platform: PlatformDep, actor: AskerDep, job: str, path: str
) -> Response:
    """Ask a service of one's own, with a body, of whatever kind it takes."""
    return await _through(request, await run_in_threadpool(service, platform, actor, job))


@router.websocket(PREFIX + "/{job}/{path:path}")
async def socket(connection: WebSocket, job: str, path: str) -> None:
    """The same for a connection that stays open: messages pass both ways, whole, until either side ends it."""
    state = connection.app.state
    platform: Platform = state.platform
    with ExitStack() as held:
        try:
            actor = await actor_of(connection, "user")
            found = await run_in_threadpool(service, platform, actor, job)
            held.enter_context(state.open.one(found.job.org, platform.settings.streams_of_one))
        except OuvrageError as error:
            await deny(connection, error)
            return
        await _kept_open(connection, found)


async def _kept_open(connection: WebSocket, found: Reached) -> None:
    state = connection.app.state
    watch = _Watch(state.uses, found, state.platform.monotonic, kept_open=True)
    allowed = _allowed(connection, found)
    carried = Carried(state.tunnels, found, *_address(connection.scope), watch.passed)
    try:
        status = await carried.until_over(connection, allowed.until_not())
    except OuvrageError as error:
        watch.ended(status_of(error))
        await deny(connection, error)
        return
    except BaseException:
        watch.ended(None)
        raise
    watch.ended(status)


def _allowed(asked: HTTPConnection, found: Reached) -> Allowed:
    """For as long as this very attempt is the asker's to use."""
    platform: Platform = asked.app.state.platform

    def same(now: Actor) -> bool:
        return service(platform, now, found.job.job).attempt == found.attempt

    return Allowed(asked, AGAIN_S, same)


async def _through(request: Request, found: Reached) -> Response:
    assert found.port is not None
    state = request.app.state
    services: Services = state.services
    watch = _Watch(state.uses, found, state.platform.monotonic)
    allowed = _allowed(request, found)
    sent = asyncio.Event()
    asked = _asked(request, watch, sent)
    try:
        answer = await _unless_gone(
            request, sent, allowed.wait(services.ask(found.node, found.attempt, found.port, asked))
        )
    except OuvrageError as error:
        watch.ended(status_of(error))
        raise
    except NoLonger:
        watch.ended(401)
        raise who_are_you() from None
    except BaseException:
        watch.ended(None)
        raise
    watch.answers(answer)
    response = StreamingResponse(_pieces(answer, watch, allowed), status_code=answer.status)
    response.raw_headers = [*answer.headers, SANDBOXED]
    return response


async def _unless_gone(request: Request, sent: asyncio.Event, coming: Awaitable[A]) -> A:
    """What comes. ``ClientDisconnect`` where nobody waits for it any more, which is seen once the whole request is ``sent``."""
    answer = asyncio.ensure_future(coming)
    gone = asyncio.create_task(_gone(request, sent))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        for task in (answer, gone):
            task.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


async def _gone(request: Request, sent: asyncio.Event) -> None:
    await sent.wait()
    while (await request.receive())["type"] != "http.disconnect":
        continue


def _address(scope: Scope) -> tuple[bytes, str]:
    """Path and query as the service is asked for them, and what stands before them here."""
    raw: bytes = scope["raw_path"].partition(b"?")[0]
    _, _, _, job, *rest = raw.split(b"/")
    query: bytes = scope["query_string"]
    target = b"/" + b"/".join(rest) + (b"?" + query if query else b"")
    return target, f"{PREFIX}/{job.decode('ascii', 'replace')}"


def _asked(request: Request, watch: _Watch, sent: asyncio.Event) -> Asked:
    target, prefix = _address(request.scope)

    async def body() -> AsyncIterator[bytes]:
        async for piece in request.stream():
            watch.bytes_in += len(piece)
            if piece:
                yield piece
        sent.set()

    return Asked(
        method=request.method,
        target=target,
        headers=request.headers.raw,
        prefix=prefix,
        body=body(),
    )


async def _pieces(answer: Answer, watch: _Watch, allowed: Allowed) -> AsyncIterator[bytes]:
    """The answer's body; whatever ends it, it is counted and its connection given back."""
    status: int | None = None
    pieces = answer.pieces()
    try:
        while (piece := await allowed.wait(anext(pieces, None))) is not None:
            watch.piece(piece)
            yield piece
        status = answer.status
    except BrokenOff as error:
        raise CutOff("the service ended its answer before it was whole") from error
    except NoLonger as error:
        raise CutOff("the right to it has ended") from error
    finally:
        watch.ended(status)
        await answer.close()
