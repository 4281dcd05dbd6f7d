"""What server and runner say to each other about streams into a sandbox.

The runner holds one connection open on which the server asks for streams; for each it dials once more, and from then on bytes pass
both ways. Nothing ever connects to a node. On a stream, binary messages are what passes and text messages say something about it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ouvrage.wire.runner import Id, Message

CONTROL = "/v1/runner/tunnel"
"""Where the runner waits for what is asked."""
STREAMS = "/v1/runner/streams"
"""Below it, by the stream's id, where the runner dials a stream that was asked for."""
END = "end"
"""A text message of either side: it sends nothing more, and still listens."""
PIECE = 1 << 16
"""So many bytes travel in one message at most."""
STALLED_S = 900.0
"""How long either side of a stream may take nothing before it counts as gone: a reader who pauses answers no ping either."""

Port = Annotated[int, Field(ge=1, le=65535)]


class ToPort(Message):
    """To whatever listens on this port inside the sandbox."""

    to: Literal["port"] = "port"
    port: Port


class ToInside(Message):
    """To a process inside the sandbox that understands ``wire/inside``."""

    to: Literal["inside"] = "inside"


Where = Annotated[ToPort | ToInside, Field(discriminator="to")]


class Open(Message):
    """The server asks for a stream into a running attempt."""

    open: Id
    attempt: Id
    what: Where


class Close(Message):
    """The server's end of a stream is gone, which the runner does not see on the stream itself while nothing is taken from it."""

    close: Id


class Failed(Message):
    """The runner could not make a stream: ``code`` stable, ``words`` for a person."""

    failed: Id
    code: str
    words: str
