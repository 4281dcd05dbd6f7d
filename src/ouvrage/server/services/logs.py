"""Attempts' logs, kept as files that grow: appended by byte, read by byte, cut at a size and never silently.

Decides that a place in a log is a number of bytes, so that a writer who repeats and a reader who comes back meet exactly; neither needs the
server to remember anything. A cut log ends with a line that says so.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.home import make_private
from ouvrage.server.errors import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far a log goes, in bytes, and whether it takes no more."""

    bytes: int
    full: bool


def log_file(state_dir: Path, attempt: str) -> Path:
    """Where an attempt's log is: a directory for each of its id's last two letters, which are random."""
    return state_dir / "logs" / attempt[-2:] / f"{attempt}.log"


def cut_line(limit: int) -> bytes:
    """What stands at the end of a log that was cut."""
    return f"\n[ouvrage: the log was cut here, at {limit} bytes; what came after was not kept]\n".encode()


def append(state_dir: Path, attempt: str, offset: int, content: bytes, *, limit: int) -> Place:
    """Append what is new of ``content``, which begins at ``offset``. Beyond the end: ``Refused`` 409 with the place."""
    path = log_file(state_dir, attempt)
    make_private(make_private(path.parent.parent) / path.parent.name)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # another server process may hold the same file
        return _append(descriptor, offset, content, limit)
    finally:
        os.close(descriptor)


def _append(descriptor: int, offset: int, content: bytes, limit: int) -> Place:
    size = os.fstat(descriptor).st_size
    if size >= limit:
        return Place(bytes=limit, full=True)
    if offset > size:
        raise Refused(
            "log/gap",
            f"the log is had up to byte {size}, and this begins at {offset}",
            status=409,
            hint=f"send it from byte {size} on",
            field=str(size),
        )
    new = content[size - offset :][: limit - size]
    end = size + len(new)
    full = end >= limit
    os.lseek(descriptor, size, os.SEEK_SET)
    _write(descriptor, new + (cut_line(limit) if full else b""))
    return Place(bytes=end, full=full)


def _write(descriptor: int, content: bytes) -> None:
    """Write all of it, however often the system takes only a part."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def keep(state_dir: Path, attempt: str) -> None:
    """Make sure that what is had of a log outlives a power cut, before its runner forgets it."""
    try:
        descriptor = os.open(log_file(state_dir, attempt), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place(state_dir: Path, attempt: str, *, limit: int) -> Place:
    """How far a log goes for a reader, the line that says it was cut included."""
    try:
        size = log_file(state_dir, attempt).stat().st_size
    except FileNotFoundError:
        return Place(bytes=0, full=False)
    return Place(bytes=size, full=size >= limit)


def piece(state_dir: Path, attempt: str, offset: int, most: int) -> bytes:
    """Up to ``most`` bytes of a log from ``offset`` on."""
    try:
        with log_file(state_dir, attempt).open("rb") as file:
            file.seek(offset)
            return file.read(most)
    except FileNotFoundError:
        return b""
