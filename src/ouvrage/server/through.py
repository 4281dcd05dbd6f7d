"""HTTP through a stream into a sandbox: one request to a service, its answer as it comes.

Decides what is kept from a service and from whoever asks it. The asker's token and cookies never reach the service; nothing that it
answers may set a cookie, relax a policy or register a worker for the address under which the console stands too. Connections are kept
open for the next request, a few for each attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore2

from ouvrage.base.time import SECOND
from ouvrage.server.errors import Refused
from ouvrage.server.tunnels import Stream, Tunnels
from ouvrage.wire.tunnel import ToPort

_AT_ONCE = 128
_KEPT = 8
_IDLE_S = 15.0
_UNUSED_US = 60 * SECOND
_STATUSES = range(200, 600)
_TIMES = {"connect": 20.0, "write": 60.0, "pool": 30.0}

_HOPS = frozenset(
    (b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te",
     b"trailer", b"transfer-encoding", b"upgrade")
)  # fmt: skip
_KEPT_FROM_SERVICE = frozenset(
    (b"authorization", b"cookie", b"host", b"accept-encoding", b"expect", b"x-forwarded-for", b"forwarded",
     b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"x-forwarded-prefix", b"idempotency-key")
)  # fmt: skip
_KEPT_FROM_ASKER = frozenset(
    (b"set-cookie", b"set-cookie2", b"clear-site-data", b"service-worker-allowed", b"strict-transport-security",
     b"content-security-policy", b"content-security-policy-report-only", b"alt-svc", b"x-frame-options",
     b"x-content-type-options", b"www-authenticate", b"report-to", b"nel", b"reporting-endpoints", b"public-key-pins",
     b"cross-origin-opener-policy", b"cross-origin-resource-policy", b"refresh", b"server", b"date")
)  # fmt: skip
SANDBOXED = (b"content-security-policy", b"sandbox; default-src 'none'; frame-ancestors 'none'")
"""Whatever a service answers, a browser runs none of it here."""

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a service: ``target`` is path and query as they came; ``prefix`` what stands before them here."""

    method: str
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    prefix: str
    body: AsyncIterable[bytes]


class Answer:
    """A service's answer. ``close`` it, whether it was read to its end or not."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self.status: int = response.status
        without = _KEPT_FROM_ASKER
        if response.status == 204 or _value(response.headers, b"transfer-encoding"):
            without |= {
                b"content-length"
            }  # of no body, or of another one than comes (RFC 9112, section 6.3)
        self.headers: Headers = _left([*response.headers], without)
        self.content_type = _value(response.headers, b"content-type")
        self.encoded = _value(response.headers, b"content-encoding") not in ("", "identity")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Its body as it comes. ``BrokenOff`` where it stops before its end."""
        try:
            async for piece in self._response.aiter_stream():
                yield piece
        except _BROKEN as error:
            raise BrokenOff from error

    async def close(self) -> None:
        """Give its connection back, or end it where it was not read to its end."""
        await self._response.aclose()


class BrokenOff(Exception):
    """A service ended its answer before it was whole."""


_BROKEN = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    ConnectionError,
)


def headers_for(headers: Sequence[tuple[bytes, bytes]], prefix: str, port: int) -> Headers:
    """What a service is told of whoever asks it, without what is not its business, and under which name it is asked."""
    return [
        *_left(headers, _KEPT_FROM_SERVICE),
        (b"Host", b"localhost:%d" % port),
        (b"X-Forwarded-Prefix", prefix.encode("ascii", "replace")),
    ]


class Services:
    """Connections to services, by attempt and port. In the event loop only."""

    def __init__(self, tunnels: Tunnels, monotonic: Callable[[], int]) -> None:
        self._tunnels = tunnels
        self._monotonic = monotonic
        self._pools: dict[tuple[str, int], _Pool] = {}

    async def ask(self, node: str, attempt: str, port: int, asked: Asked) -> Answer:
        """Ask a service. ``Refused`` 502 or 503 where no answer comes, or one that is none."""
        pool = await self._pool(node, attempt, port)
        pool.asked += 1
        request = httpcore2.Request(
            asked.method,
            httpcore2.URL(scheme=b"http", host=b"localhost", port=port, target=asked.target),
            headers=_to_service(asked, port),
            content=asked.body,
            extensions={"timeout": _TIMES},
        )
        try:
            response = await pool.connections.handle_async_request(request)
            if response.status not in _STATUSES:
                await response.aclose()
                raise _no_answer(ValueError(f"{response.status} is no status"))
            return Answer(response)
        except _BROKEN as error:
            raise _no_answer(error) from error
        finally:
            pool.asked -= 1
            pool.used_us = self._monotonic()

    async def _pool(self, node: str, attempt: str, port: int) -> _Pool:
        now = self._monotonic()
        for key, each in list(self._pools.items()):
            if not each.asked and each.used_us + _UNUSED_US < now and not each.busy:
                del self._pools[key]
                await each.connections.aclose()
        key = (attempt, port)
        if key not in self._pools:
            self._pools[key] = _Pool(_Dialler(self._tunnels, node, attempt), now)
        return self._pools[key]


class _Pool:
    def __init__(self, dialler: _Dialler, now_us: int) -> None:
        self.connections = httpcore2.AsyncConnectionPool(
            network_backend=dialler,
            max_connections=_AT_ONCE,
            max_keepalive_connections=_KEPT,
            keepalive_expiry=_IDLE_S,
        )
        self.asked = 0
        self.used_us = now_us

    @property
    def busy(self) -> bool:
        """Whether an answer is still being read."""
        return any(
            not (each.is_idle() or each.is_closed()) for each in self.connections.connections
        )


class _Dialler(httpcore2.AsyncNetworkBackend):
    """Connections for a pool, each a stream."""

    def __init__(self, tunnels: Tunnels, node: str, attempt: str) -> None:
        self._tunnels = tunnels
        self._node = node
        self._attempt = attempt

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A stream to the port; the host is always the sandbox itself."""
        what = ToPort(port=port)
        return _Line(await self._tunnels.open(self._node, self._attempt, what))


class _Line(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await asyncio.wait_for(self._stream.write(buffer), timeout)
        except ConnectionError as error:
            raise httpcore2.WriteError(str(error)) from error
        except asyncio.TimeoutError as error:
            raise httpcore2.WriteTimeout("it takes no more of the request") from error

    async def aclose(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.readable if info == "is_readable" else None


def _to_service(asked: Asked, port: int) -> Headers:
    headers = headers_for(asked.headers, asked.prefix, port)
    headers.append((b"Accept-Encoding", b"identity"))
    sized = any(name.lower() == b"content-length" for name, _ in asked.headers)
    chunked = any(name.lower() == b"transfer-encoding" for name, _ in asked.headers)
    return [*headers, (b"Transfer-Encoding", b"chunked")] if chunked and not sized else headers


def _left(headers: Sequence[tuple[bytes, bytes]], without: frozenset[bytes]) -> Headers:
    """Headers without those of one connection alone (and those it names so), and without these."""
    named = _value(headers, b"connection").lower().encode("latin-1").split(b",")
    hops = _HOPS | {each.strip() for each in named}
    return [(name, value) for name, value in headers if name.lower() not in hops | without]


def _value(headers: Sequence[tuple[bytes, bytes]], wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), "")


def _no_answer(error: Exception) -> Refused:
    return Refused(
        "service/no-answer",
        f"the service gave no answer: {str(error) or type(error).__name__}",
        status=502,
        hint="ouvrage job logs -f shows what it does",
    )
