"""What an attempt's meter wrote comes to the platform: the attempt is a run, of the same id.

Decides that only the node of an attempt may send its run, and that it is recorded as any other spool: with the meter's own source, once. A
run that cannot be read is refused, and its attempt is none the worse.
"""

from __future__ import annotations

import hashlib

from ouvrage.server.context import Platform
from ouvrage.server.errors import unknown, unreadable
from ouvrage.store.intake import read_lines, record_run
from ouvrage.store.platform.work import attempt_of


def take(platform: Platform, node: str, attempt: str, content: bytes, sha256: str | None) -> None:
    """Record the run of a node's own attempt. ``OuvrageError`` ``spool/…`` where it can't be read."""
    with platform.reading() as connection:
        row = attempt_of(connection, attempt)
    if row is None or row.node != node:
        raise unknown("attempt", attempt)
    if sha256 not in (None, hashlib.sha256(content).hexdigest()):
        raise unreadable(
            "file/damaged", "what came is not what was sent", hint="send it again", field="sha256"
        )
    spool = read_lines(content)
    if spool.run != attempt:
        raise unreadable(
            "run/other",
            "the run is not that of the attempt",
            hint="an attempt's run has its id",
            field="attempt",
        )
    record_run(spool, content, platform.state_dir, platform.store, platform.clock())
