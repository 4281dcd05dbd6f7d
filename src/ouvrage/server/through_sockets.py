"""WebSockets through a stream into a sandbox: messages pass whole, both ways, each side's end becomes the other's.

Decides the same as ``through`` about what either side is told of the other: no token, no cookie, no origin. The two handshakes and their frames
are apart, so that nothing a service sends is ever read by the asker's client as anything but messages of an open connection; compression
ends here too, since its state would be memory that either side makes us hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, WebSocketException
from websockets.typing import Subprotocol

from ouvrage.server.errors import Refused
from ouvrage.server.services.inside import Reached
from ouvrage.server.through import headers_for
from ouvrage.server.tunnels import Stream, Tunnels
from ouvrage.wire.tunnel import PIECE, ToPort

LARGEST = 16 << 20
"""Bytes of one message, which is held whole; as the server itself takes from askers."""
_HELD = 1
_HANDSHAKE_S = 20.0
_OWN = frozenset(
    (b"origin", b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-extensions",
     b"sec-websocket-protocol", b"host", b"user-agent")
)  # fmt: skip
_NORMAL, _GOING, _BROKEN, _POLICY = 1000, 1001, 1011, 1008
_UNSAID = frozenset((1004, 1005, 1006, 1015))
"""Codes that stand for what was never sent."""


class _Connect(connect):
    """A connection to the service that was asked for: where it sends us elsewhere, that is its answer."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Never followed."""
        return exc


class Carried:
    """One connection through the platform. ``passed`` is told how many bytes went in and out."""

    def __init__(
        self, tunnels: Tunnels, found: Reached, target: bytes, prefix: str,
        passed: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self._tunnels = tunnels
        self._found = found
        self._target = target.decode("ascii", "replace")
        self._prefix = prefix
        self._passed = passed

    async def until_over(self, asker: WebSocket, allowed: Coroutine[Any, Any, None]) -> int | None:
        """Pass messages until it ends; 101, or None where the service broke off. ``Refused`` where it did not begin.

        ``allowed`` ends once the asker may no more.
        """
        watch = asyncio.ensure_future(allowed)
        try:
            async with self._joined(asker) as service:
                await asker.accept(service.subprotocol)
                return await self._carry(asker, service, watch)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    @asynccontextmanager
    async def _joined(self, asker: WebSocket) -> AsyncIterator[ClientConnection]:
        port = self._found.port
        assert port is not None
        what = ToPort(port=port)
        stream = await self._tunnels.open(self._found.node, self._found.attempt, what)
        ours, theirs = socket.socketpair()
        pump = asyncio.create_task(_pumped(stream, theirs))
        try:
            headers = headers_for(asker.headers.raw, self._prefix, port)
            told = [
                (n.decode("latin-1"), v.decode("latin-1"))
                for n, v in headers
                if n.lower() not in _OWN
            ]
            offered = [Subprotocol(each) for each in asker.scope.get("subprotocols", ())]
            try:
                service = await _Connect(
                    f"ws://localhost:{port}{self._target}", sock=ours, additional_headers=told,
                    subprotocols=offered or None, compression=None, proxy=None, max_size=LARGEST,
                    max_queue=_HELD, ping_interval=None, open_timeout=_HANDSHAKE_S, close_timeout=2,
                    user_agent_header=None,
                )  # fmt: skip
            except (OSError, asyncio.TimeoutError, WebSocketException) as error:
                raise _no_socket(error) from error
            async with service:
                yield service
        finally:
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
            for end in (ours, theirs):
                end.close()
            stream.close()

    async def _carry(
        self, asker: WebSocket, service: ClientConnection, watch: asyncio.Future[None]
    ) -> int | None:
        inward = asyncio.create_task(self._inward(asker, service))
        outward = asyncio.create_task(self._outward(asker, service))
        done, _ = await asyncio.wait({inward, outward, watch}, return_when=asyncio.FIRST_COMPLETED)
        for task in (inward, outward):
            task.cancel()
        await asyncio.gather(inward, outward, return_exceptions=True)
        if outward in done:
            code = service.close_code or _BROKEN
            await _closed(asker, code, service.close_reason or "")
            return None if code in _UNSAID or code == _BROKEN else 101
        if inward in done and not inward.cancelled() and inward.exception() is None:
            code, reason = inward.result()
            await service.close(_GOING if code in _UNSAID else code, reason)
            return 101
        await _closed(asker, _POLICY, "the right to it has ended")
        return 101

    async def _inward(self, asker: WebSocket, service: ClientConnection) -> tuple[int, str]:
        """Until the asker ends it: with which code, and why."""
        while True:
            message = await asker.receive()
            if message["type"] == "websocket.disconnect":
                return message.get("code") or _NORMAL, message.get("reason") or ""
            data: str | bytes = (
                message.get("text")
                or message.get("bytes")
                or ("" if message.get("text") is not None else b"")
            )
            self._passed(_length(data), 0)
            with contextlib.suppress(ConnectionClosed):  # the other task says so
                await service.send(data)

    async def _outward(self, asker: WebSocket, service: ClientConnection) -> None:
        """Until the service ends it."""
        with contextlib.suppress(ConnectionClosed, WebSocketDisconnect, RuntimeError):
            while True:
                data = await service.recv()
                self._passed(0, _length(data))
                if isinstance(data, str):
                    await asker.send_text(data)
                else:
                    await asker.send_bytes(data)


async def _closed(asker: WebSocket, code: int, reason: str) -> None:
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await asker.close(_BROKEN if code in _UNSAID else code, reason)


async def _pumped(stream: Stream, end: socket.socket) -> None:
    """Pass bytes between a stream and the other end of a pair, until either has ended."""
    end.setblocking(False)
    loop = asyncio.get_running_loop()

    async def into() -> None:
        while data := await loop.sock_recv(end, PIECE):
            await stream.write(data)
        await stream.end()

    async def out() -> None:
        while data := await stream.read():
            await loop.sock_sendall(end, data)
        end.shutdown(socket.SHUT_WR)

    tasks = [asyncio.create_task(into()), asyncio.create_task(out())]
    try:
        await asyncio.gather(*tasks)
    except OSError:
        end.shutdown(socket.SHUT_RDWR)  # whoever reads the other end learns of it
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _length(data: str | bytes) -> int:
    return len(data.encode() if isinstance(data, str) else data)


def _no_socket(error: Exception) -> Refused:
    words = str(error) or type(error).__name__
    takes = (
        "takes no connection of that kind there"
        if isinstance(error, InvalidHandshake)
        else "gave no answer"
    )
    return Refused(
        "service/no-socket",
        f"the service {takes}: {words}",
        status=502,
        hint="ouvrage job logs -f shows what it does",
    )
