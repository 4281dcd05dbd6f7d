"""What every verb that enters a running job does alike: the address, and frames out of a stream.

Decides nothing of its own: what passes is ``wire/inside``, and who may is the server's.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from ouvrage.adapters.stream_client import Line, dial
from ouvrage.cli.talking import server_meant
from ouvrage.wire import inside
from ouvrage.wire.inside import Frames, Put, Ssh, Take, Terminal, Wanted, frame


def entered(job: str, what: Terminal | Take | Put | Ssh) -> Line:
    """A stream into a job, on which this was asked for. Raises ``OuvrageError``."""
    line = dial(server_meant(), f"/v1/jobs/{in_address(job)}/inside")
    line.send(frame(inside.WANTED, Wanted(what=what).model_dump_json().encode()))
    return line


def frames_of(line: Line) -> Iterator[tuple[int, bytes]]:
    """The frames that come, until the other side ends."""
    frames = Frames()
    for piece in line.pieces():
        yield from frames.take(piece)


def in_address(job: str) -> str:
    """A job's name as a part of an address."""
    return quote(job, safe="")
