"""A stream to a server of ours that stays open, from the command line's side.

Decides the same as ``server_client``: the token goes in a header alone, no proxy of the environment's is used, and a refusal is told as
the server put it. Bytes pass in pieces; ``None`` is their end.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from ouvrage import __version__
from ouvrage.adapters.server_client import UNREACHABLE, Server, refusal_of
from ouvrage.base.errors import OuvrageError
from ouvrage.wire.tunnel import END, PIECE, STALLED_S

_DIAL_S = 40.0


class Line:
    """An open stream. ``send`` and ``pieces`` may be used in two threads."""

    def __init__(self, connection: ClientConnection, ends: ExitStack) -> None:
        self._connection = connection
        self._ends = ends

    def send(self, data: bytes) -> None:
        """Send bytes. ``ConnectionError`` where nobody takes them."""
        try:
            for start in range(0, len(data), PIECE):
                self._connection.send(data[start : start + PIECE])
        except ConnectionClosed as error:
            raise ConnectionError("the stream has ended") from error

    def end(self) -> None:
        """Say that nothing more is sent; whoever has ended already needs no word."""
        with suppress(ConnectionClosed):
            self._connection.send(END)

    def pieces(self) -> Iterator[bytes]:
        """What comes, until the other side ends."""
        try:
            for message in self._connection:
                if isinstance(message, str):
                    return
                yield message
        except ConnectionClosed:
            return

    def close(self) -> None:
        """End it."""
        self._ends.close()


def dial(server: Server, path: str) -> Line:
    """Open a stream at an address of a server. Raises ``OuvrageError``."""
    trust = ssl.create_default_context(cafile=str(server.ca) if server.ca else None)
    try:
        ends = ExitStack()
        connecting = connect(
            f"ws{server.url.removeprefix('http')}{path}",
            additional_headers={"Authorization": f"Bearer {server.token}"},
            user_agent_header=f"ouvrage/{__version__}",
            ssl=trust if server.url.startswith("https:") else None,
            compression=None,
            proxy=None,
            max_size=4 * PIECE,
            open_timeout=_DIAL_S,
            close_timeout=2,
            ping_timeout=STALLED_S,
        )
        return Line(ends.enter_context(connecting), ends)
    except InvalidStatus as refused:
        raise refusal_of(refused.response.status_code, _value(refused.response.body)) from refused
    except (OSError, WebSocketException) as error:
        raise OuvrageError(
            UNREACHABLE,
            f"{server.url} does not answer: {error}",
            hint="ouvrage up starts a server here; ouvrage login names another",
            exit_code=1,
        ) from error


def _value(body: bytes | bytearray | None) -> object:
    try:
        return json.loads(body or b"")
    except ValueError:
        return None
