"""What passes on a stream to a process inside a sandbox: small frames, each with its sort and its length.

The first frame of whoever asked says what is wanted; after that, data goes both ways. The process inside ends with a frame that says how
it went, so that an end without one is known to be none. Nothing between the two ends looks into them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ouvrage.wire.runner import Message

WANTED, DATA, SIZE, OVER, DONE, ENTRY = 1, 2, 3, 4, 5, 6
"""What is wanted; bytes; the terminal's size changed; nothing more is sent; how it ended; the next of a directory's entries."""
MOST_LEFT = 100
"""So many of what was left out are named."""
LONGEST = 1 << 20
_HEAD = struct.Struct(">BI")

Lines = Annotated[int, Field(ge=1, le=10_000)]


class Size(Message):
    """A terminal's size."""

    rows: Lines
    columns: Lines


class Terminal(Message):
    """A command on a terminal of its own; without one the sandbox's shell. ``term`` is what kind the asker's is."""

    do: Literal["terminal"] = "terminal"
    command: Annotated[list[str], Field(max_length=1000)]
    term: Annotated[str, Field(pattern=r"^[A-Za-z0-9+._-]{1,64}$")]
    size: Size


Path = Annotated[str, Field(min_length=1, max_length=4096)]


class Take(Message):
    """Bring a file out, or a directory where ``tree``: its path below the scratch space."""

    do: Literal["take"] = "take"
    path: Path
    tree: bool = False


class Put(Message):
    """Bring a file in, or a directory: it appears whole or not at all. ``executable`` as it was where it comes from."""

    do: Literal["put"] = "put"
    path: Path
    executable: bool = False
    tree: bool = False


class Ssh(Message):
    """OpenSSH's server for one connection: after a last frame that says it starts, the stream is its and its client's.

    ``host_key`` is a private key in OpenSSH's own form, made by the asker, who knows the server by it; ``keys`` are lines of public keys.
    ``user`` is the name that the client will ask for, so that another is refused in words; None where it is not known.
    """

    do: Literal["ssh"] = "ssh"
    host_key: Annotated[
        str, Field(max_length=4096, pattern=r"^-----BEGIN OPENSSH PRIVATE KEY-----\n")
    ]
    keys: Annotated[
        list[Annotated[str, Field(max_length=8192, pattern=r"^[a-z0-9@. -][ -~]*$")]],
        Field(min_length=1, max_length=20),
    ]
    user: Annotated[str, Field(max_length=256)] | None = None


class Entry(Message):
    """One entry of a directory that travels, below it; a file's bytes follow in frames of data."""

    path: Path
    directory: bool = False
    executable: bool = False


class Wanted(Message):
    """The first frame."""

    what: Annotated[Terminal | Take | Put | Ssh, Field(discriminator="do")]


class Done(Message):
    """The last frame: the command's exit ``code`` (128 and its number for a signal), or what kept it from being done.

    ``left`` says of a directory what did not travel, the first ``MOST_LEFT`` of them; ``left_out`` how many there were.
    """

    code: int
    fault: str | None = None
    executable: bool = False
    left: list[str] = Field(default_factory=list)
    left_out: int = 0


def frame(sort: int, data: bytes = b"") -> bytes:
    """One frame."""
    return _HEAD.pack(sort, len(data)) + data


class Frames:
    """Puts pieces of bytes together into frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Whole frames, as (sort, data). ``ValueError`` for what is none."""
        self._held += data
        while len(self._held) >= _HEAD.size:
            sort, length = _HEAD.unpack_from(self._held)
            if length > LONGEST or not WANTED <= sort <= ENTRY:
                raise ValueError("that is no frame")
            whole = _HEAD.size + length
            if len(self._held) < whole:
                return
            body = bytes(self._held[_HEAD.size : whole])
            del self._held[:whole]
            yield sort, body

    def rest(self) -> bytes:
        """What came behind the last frame that was taken, where the stream goes on without frames."""
        left = bytes(self._held)
        self._held.clear()
        return left
