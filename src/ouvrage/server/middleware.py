"""What happens to every request before a route sees it, and to every answer after.

Decides the headers of all answers, how large a body may be, and that no secret travels in an address: addresses stand in logs,
histories and other sites' Referer. The first request with one is refused, so that nobody comes to rely on it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from ouvrage.adapters.clock import new_id
from ouvrage.base.errors import OuvrageError
from ouvrage.server.context import Settings
from ouvrage.server.credentials import SECRET
from ouvrage.server.errors import CutOff, Refused, bad_request, body_of, status_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = structlog.get_logger("ouvrage.server")

_TELLING = re.compile(
    r"(?:access|auth|api|id|refresh|bearer)?[_-]?(?:token|key|secret|password)", re.I
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_DATA = "default-src 'none'; frame-ancestors 'none'"
_ALL: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)

LARGER: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"/v1/runner/attempts/[0-9a-f]{32}/outputs/"), 8 << 30),
    (re.compile(r"/v1/runner/attempts/[0-9a-f]{32}/log$"), 64 << 20),
    (re.compile(r"/v1/jobs/[^/]+/files/"), 8 << 30),
    (re.compile(r"/v1/services/[^/]+/"), 1 << 30),
    (re.compile(r"/v1/facts$"), 32 << 20),
    (re.compile(r"/v1/samples$"), 512 << 10),
)
"""Addresses that take more than the usual body, in bytes; streams are counted as they come."""


def largest_body(path: str, usual: int) -> int:
    """The largest body that an address takes, in bytes."""
    return next((size for pattern, size in LARGER if pattern.match(path)), usual)


def refusal(error: OuvrageError) -> JSONResponse:
    """A refusal as an answer."""
    headers: dict[str, str] = {}
    if isinstance(error, Refused) and error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if status_of(error) == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body_of(error), status_code=status_of(error), headers=headers)


def _unexpected(number: str) -> Refused:
    return Refused(
        "server/failed",
        f"something went wrong here; it stands in the server's log under {number}",
        status=500,
        hint="tell whoever runs this server",
    )


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it before anybody reads its body."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        found = fault_in_address(scope)
        if found is not None:
            await refusal(found)(scope, receive, self._dressed(scope, send))
            return
        if scope["type"] == "http":
            limit = largest_body(scope["path"], self._settings.body_bytes)
            receive = _counted(scope, receive, limit)
        await self._answered(scope, receive, self._dressed(scope, send))

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve; what nobody expected is logged under a number, and the client is told that alone."""
        begun = False

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except CutOff:
            raise
        except ClientDisconnect:
            return  # nobody waits for an answer any more
        except Exception as error:
            number = new_id()
            _log.error("request.failed", number=number, path=scope["path"], exc_info=error)
            if begun:
                raise
            await refusal(_unexpected(number))(scope, receive, send)

    def _dressed(self, scope: Scope, send: Send) -> Send:
        """``send`` with the headers of every answer."""
        data = scope["path"].startswith("/v1/")
        extra = [*_ALL, (b"content-security-policy", (_DATA if data else _PAGES).encode())]
        if self._settings.secure:
            extra.append((b"strict-transport-security", b"max-age=31536000"))

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                told = {name.lower() for name, _ in message.get("headers", ())}
                more = [each for each in extra if each[0] not in told]
                if b"cache-control" not in told:
                    more.append((b"cache-control", b"no-store"))
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        return sending


def fault_in_address(scope: Scope) -> OuvrageError | None:
    """What is wrong with an address that holds a secret, or what no name of ours holds; None for a good one."""
    query = scope.get("query_string", b"").decode("latin-1")
    if _CONTROL.search(scope["path"]) or _CONTROL.search(unquote_plus(query)):
        return bad_request(
            "request/address",
            "the address holds a control character",
            hint="addresses are made of letters, digits and what names are made of",
        )
    pairs = parse_qsl(query, keep_blank_values=True)
    named = [name for name, _ in pairs if _TELLING.fullmatch(name)]
    if named or SECRET.search(query) or SECRET.search(scope["path"]):
        return bad_request(
            "request/secret-in-address",
            "a secret was sent in the address, where logs and histories keep it",
            hint="send it as Authorization: Bearer; revoke the one that was sent: ouvrage token revoke",
            field=named[0] if named else None,
        )
    return None


def _counted(scope: Scope, receive: Receive, limit: int) -> Receive:
    """``receive`` that ends with 413 where a body grows beyond its limit, said beforehand or not."""
    said = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
    taken = int(said) if said.isdigit() else 0
    announced = taken > limit
    count = 0

    async def receiving() -> MutableMapping[str, Any]:
        nonlocal count
        if announced:
            raise HTTPException(413)
        message = await receive()
        count += len(message.get("body", b""))
        if count > limit:
            raise HTTPException(413)
        return message

    return receiving
