"""The runner's end of streams into sandboxes: it dials out, for each stream the server asks for.

Decides that only an attempt that runs is ever entered, that one stream too many is refused, not queued, and that no attempt takes the
places of all others. One thread with
an event loop carries all streams; each holds what is on its way in one direction and no more, so that a slow reader slows its
own writer alone. A server that is away is dialled again, later and later; attempts do not notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import TypeAdapter, ValidationError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from ouvrage.adapters.inside import Listed, connect_inside
from ouvrage.meter.feed import command
from ouvrage.wire.tunnel import CONTROL, END, PIECE, STALLED_S, STREAMS, Close, Failed, Open, ToPort

MOST = 512
"""Streams to ports of one node at a time."""
MOST_INSIDE = 64
"""Terminals, files and the like: each has a process of ours beside its sandbox, of tens of MiB."""
_CONNECT_S = 5.0
_DIAL_S = 10.0
_ANSWERS_S = 20.0
_LAST_WORDS_S = 30.0
"""How long somebody may still send to what has ended its own half."""
_PAUSES_S = (0.5, 15.0)
_TROUBLE = (OSError, WebSocketException, asyncio.TimeoutError)
_ASKED: TypeAdapter[Open | Close] = TypeAdapter(Open | Close)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A running attempt, to be reached into: its processes, its control group, where its command started."""

    listed: Listed
    group: str
    workdir: str
    isolation: str


Finds = Callable[[str], Within | None]
"""By an attempt's id; None unless it runs."""


class Places:
    """Places that attempts share: each may hold as many as it leaves free, so that none ever holds them all. In one thread only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, attempt: str) -> Generator[None]:
        """A place of an attempt's. ``OSError`` where it may have no more."""
        held, left = self._held[attempt], self._most - self._held.total()
        if held >= left:
            raise OSError(f"{held} streams into it are open, and the node has {left} left for all")
        self._held[attempt] += 1
        try:
            yield
        finally:
            self._held -= Counter((attempt,))


class Tunnel(threading.Thread):
    """Holds the connection on which streams are asked for, until the process ends."""

    def __init__(self, server: str, ca: str | None, key: str, finds: Finds) -> None:
        super().__init__(name="tunnel", daemon=True)
        self._base = f"ws{server.removeprefix('http').rstrip('/')}"
        self._ssl = ssl.create_default_context(cafile=ca) if server.startswith("https:") else None
        self._key = key
        self._finds = finds
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._ports, self._inside = Places(MOST), Places(MOST_INSIDE)

    def run(self) -> None:
        """Serve for as long as the process lives."""
        asyncio.run(self._again_and_again())

    def _dial(self, path: str, answers_within_s: float) -> Any:
        return connect(
            f"{self._base}{path}",
            additional_headers={"Authorization": f"Bearer {self._key}"},
            ssl=self._ssl,
            compression=None,
            proxy=None,
            max_size=4 * PIECE,
            open_timeout=_DIAL_S,
            close_timeout=1,
            ping_timeout=answers_within_s,
        )

    async def _again_and_again(self) -> None:
        pause, longest = _PAUSES_S
        while True:
            try:
                async with self._dial(CONTROL, _ANSWERS_S) as control:
                    pause = _PAUSES_S[0]
                    await self._serve(control)
            except _TROUBLE as trouble:
                _log.debug("tunnel.away", why=str(trouble), again_in_s=pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)

    async def _serve(self, control: ClientConnection) -> None:
        async for message in control:
            try:
                asked = _ASKED.validate_json(message)
            except ValidationError:
                _log.warning("tunnel.not_understood")
                continue
            if isinstance(asked, Close):
                if (given_up := self._under_way.get(asked.close)) is not None:
                    given_up.cancel()
                continue
            task = asyncio.create_task(self._stream(control, asked))
            self._under_way[asked.open] = task
            task.add_done_callback(lambda _, stream=asked.open: self._under_way.pop(stream, None))

    async def _stream(self, control: ClientConnection, asked: Open) -> None:
        try:
            await self._carried(control, asked)
        except _TROUBLE as trouble:
            _log.debug("tunnel.stream_broke", stream=asked.open, why=str(trouble))

    async def _carried(self, control: ClientConnection, asked: Open) -> None:
        with contextlib.ExitStack() as held:
            try:
                places = self._ports if isinstance(asked.what, ToPort) else self._inside
                held.enter_context(places.one(asked.attempt))
                reader, writer = await self._entered(asked)
            except OSError as error:
                code = "refused" if isinstance(error, ConnectionRefusedError) else "not-reached"
                words = error.strerror or str(error)
                failed = Failed(failed=asked.open, code=code, words=words)
                await control.send(failed.model_dump_json())
                return
            held.callback(writer.close)
            async with self._dial(f"{STREAMS}/{asked.open}", STALLED_S) as stream:
                await carry(stream, reader, writer)

    async def _entered(self, asked: Open) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        found = self._finds(asked.attempt)
        if found is None:
            raise OSError("the attempt does not run here")
        if isinstance(asked.what, ToPort):
            made = await asyncio.to_thread(
                connect_inside, found.listed, asked.what.port, _CONNECT_S
            )
        else:
            made = await asyncio.to_thread(_let_in, found)
        made.setblocking(False)
        return await asyncio.open_connection(sock=made, limit=PIECE)


def _let_in(found: Within) -> socket.socket:
    """The stream of a process beside the sandbox that lets its asker in; it ends with the stream."""
    if found.isolation == "none":
        raise OSError(f"isolation {found.isolation} cannot be entered; its ports can be reached")
    ours, theirs = socket.socketpair()
    with theirs:
        child = subprocess.Popen(
            command("ouvrage.agent.entered"),
            stdin=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        assert child.stdin is not None
        told = {
            "stream": theirs.fileno(),
            "group": found.group,
            "workdir": found.workdir,
            "isolation": found.isolation,
        }
        with child.stdin as words:
            words.write(json.dumps(told).encode())
    threading.Thread(target=child.wait, name="entered", daemon=True).start()
    return ours


async def carry(
    stream: ClientConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass bytes both ways until both have ended, or either breaks: also while whoever is entered takes nothing and says nothing."""
    out = asyncio.create_task(_outward(stream, reader))
    into = asyncio.create_task(_inward(stream, writer))
    gone = asyncio.create_task(stream.wait_closed())
    try:
        done, _ = await asyncio.wait({out, into, gone}, return_when=asyncio.FIRST_COMPLETED)
        if out in done:
            await asyncio.wait(
                {into, gone}, timeout=_LAST_WORDS_S, return_when=asyncio.FIRST_COMPLETED
            )
        elif into in done and into.exception() is None and into.result():
            # only its half has ended; else it has gone, and nobody reads what may still come
            await asyncio.wait({out, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not (out.done() and into.done()):
            writer.transport.abort()  # a close would first wait until all that was sent is taken
        for task in (out, into, gone):
            task.cancel()
        await asyncio.gather(out, into, gone, return_exceptions=True)


async def _outward(stream: ClientConnection, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(PIECE):
        await stream.send(data)
    await stream.send(END)


async def _inward(stream: ClientConnection, writer: asyncio.StreamWriter) -> bool:
    """Whether the other side only ended its half."""
    async for message in stream:
        if isinstance(message, str):
            with contextlib.suppress(OSError):
                writer.write_eof()
            return True
        writer.write(message)
        await writer.drain()
    return False
