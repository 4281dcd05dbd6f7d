"""The server's end of streams into sandboxes: asked of a node's runner, which dials them.

Decides that a stream is found by the node and the attempt that the caller already proved its right to, waits a few seconds for the
runner and not longer, and holds only a few pieces on their way, so that whoever reads slowly slows whoever writes. It stands in this
process's event loop alone: a runner is connected to one server process, and only that one reaches into its sandboxes. Another one says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from ouvrage.server.errors import Refused, conflict
from ouvrage.wire.tunnel import END, PIECE, Close, Failed, Open, ToInside, ToPort

_OPEN_S = 15.0
_CLOSE_S = 1.0
_HELD = 8

_log = structlog.get_logger("ouvrage.server")


class Stream:
    """One stream. Used in the event loop only; ``close`` may be called at any time and again."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_HELD)
        self._rest = b""
        self._over = False
        self._closed = asyncio.Event()

    async def carry(self) -> None:
        """Take what comes, until the other side is gone or ``close``; for whoever accepted the connection."""
        coming = asyncio.create_task(self._take())
        closing = asyncio.create_task(self._closed.wait())
        await asyncio.wait({coming, closing}, return_when=asyncio.FIRST_COMPLETED)
        for task in (coming, closing):
            task.cancel()
        await asyncio.gather(coming, closing, return_exceptions=True)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, asyncio.TimeoutError):
            await asyncio.wait_for(
                self._socket.close(), _CLOSE_S
            )  # not while nobody takes the word

    async def _take(self) -> None:
        ended = False
        while True:
            message = await self._socket.receive()
            gone = message["type"] == "websocket.disconnect"
            if message.get("bytes") and not ended:
                await self._pieces.put(message["bytes"])
            elif (gone or message.get("text") == END) and not ended:
                ended = True
                await self._pieces.put(None)
            if gone:
                return

    @property
    def readable(self) -> bool:
        """Whether something, or the end, is there to be read at once."""
        return bool(self._rest) or self._over or not self._pieces.empty()

    async def read(self, most: int = PIECE) -> bytes:
        """The next bytes; none at the end."""
        if not self._rest and not self._over:
            piece = await self._pieces.get()
            self._over = piece is None
            self._rest = piece or b""
        data, self._rest = self._rest[:most], self._rest[most:]
        return data

    async def write(self, data: bytes) -> None:
        """Send bytes. ``ConnectionError`` where nobody takes them any more."""
        try:
            for start in range(0, len(data), PIECE):
                await self._socket.send_bytes(data[start : start + PIECE])
        except (RuntimeError, WebSocketDisconnect, OSError) as error:
            raise ConnectionError("the stream into the sandbox has ended") from error

    async def end(self) -> None:
        """Say that nothing more is sent."""
        with contextlib.suppress(RuntimeError, WebSocketDisconnect, OSError):
            await self._socket.send_text(END)

    def close(self) -> None:
        """Give it up."""
        self._closed.set()


class Tunnels:
    """All nodes that are connected to this process, and the streams that are being made."""

    def __init__(
        self, ids: Callable[[], str], elsewhere: Callable[[str], bool] = lambda _: False
    ) -> None:
        """``elsewhere``: whether a node is connected to another server process; asked in a thread, where it is not to this."""
        self._ids = ids
        self._elsewhere = elsewhere
        self._controls: dict[str, WebSocket] = {}
        self._awaited: dict[str, tuple[str, asyncio.Future[Stream]]] = {}

    async def hold(self, node: str, control: WebSocket) -> None:
        """Keep a node's connection until it breaks; a newer one takes its place."""
        self._controls[node] = control
        try:
            while True:
                self._failed(node, await control.receive_text())
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass
        finally:
            if self._controls.get(node) is control:
                del self._controls[node]

    def _failed(self, node: str, text: str) -> None:
        try:
            told = Failed.model_validate_json(text)
        except ValidationError:
            _log.warning("tunnel.not_understood", node=node)
            return
        waiting = self._awaited.get(told.failed)
        if waiting is not None and waiting[0] == node and not waiting[1].done():
            waiting[1].set_exception(_not_made(told))

    async def deliver(self, node: str, stream: str, socket: WebSocket) -> bool:
        """A stream that a node dialled; held until it ends. False where nobody waits for it."""
        waiting = self._awaited.get(stream)
        if waiting is None or waiting[0] != node or waiting[1].done():
            return False
        await socket.accept()
        made = Stream(socket)
        waiting[1].set_result(made)
        try:
            await made.carry()
        finally:
            await self._gone(node, stream)
        return True

    async def _gone(self, node: str, stream: str) -> None:
        control = self._controls.get(node)
        if control is not None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await control.send_text(Close(close=stream).model_dump_json())

    async def open(self, node: str, attempt: str, what: ToPort | ToInside) -> Stream:
        """A stream into a running attempt on a node. ``Refused`` 503 where there is none to be had."""
        control = self._controls.get(node)
        if control is None:
            other = await run_in_threadpool(self._elsewhere, node)
            raise _at_another() if other else _away()
        asked = Open(open=self._ids(), attempt=attempt, what=what)
        future: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()
        self._awaited[asked.open] = (node, future)
        try:
            await control.send_text(asked.model_dump_json())
            return await asyncio.wait_for(future, _OPEN_S)
        except (asyncio.TimeoutError, RuntimeError, WebSocketDisconnect) as error:
            raise _away() from error
        finally:
            del self._awaited[asked.open]


def _away() -> Refused:
    return Refused(
        "node/not-connected",
        "the node's runner does not answer just now",
        status=503,
        hint="it dials again by itself; try again in a moment",
        retry_after=5,
    )


def _at_another() -> Refused:
    return Refused(
        "node/other-server",
        "the node's runner is connected to another server of this platform, and only that one reaches into its jobs",
        status=503,
        hint="ask again: where several servers share an address the next answer may be the other's; else name the server that "
        "the runner dials: OUVRAGE_URL, or ouvrage login",
        retry_after=1,
    )


def _not_made(told: Failed) -> Refused:
    if told.code == "refused":
        return Refused(
            "service/not-listening",
            "nothing listens at that port inside the job",
            status=503,
            hint="it may still be starting: ouvrage job logs -f shows what it does",
            retry_after=2,
        )
    return conflict(
        "attempt/not-reached",
        f"the job could not be reached: {told.words}",
        hint="ouvrage job show",
    )
