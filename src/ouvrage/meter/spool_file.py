"""The spool: what a run states about itself, line by line, on disk while it runs.

Decides how a line reaches the disk whole or not at all: a failed write is cut back to the last
whole line, its lines are kept in memory and tried again, and the run goes on. The file is locked
as long as the meter lives, so whoever gets the lock knows that the meter is gone. It appears under
its name only when locked and headed. What the lines mean is not decided here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_WAITING = 4096
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class SpoolFile:
    """Lines waiting in memory and, where there is one, the locked file they go to.

    ``trouble`` is the first reason why the disk did not take what it was given; ``lost`` counts
    lines given up because too many waited.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.trouble: str | None = None
        self.lost = 0
        self._waiting: deque[bytes] = deque()
        self._length = 0
        self._fd = -1
        self._kept: list[bytes] = []

    def open(self, header: dict[str, Any]) -> None:
        """Create the file with its first line. ``OSError`` where that cannot be."""
        line = _line(header)
        if self.path is None:
            self._kept.append(line)
            return
        draft = self.path.with_name(f".{self.path.name}.new")
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.write(fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(draft))
            os.rename(draft, self.path)
        except OSError:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise
        self._fd = fd
        self._length = len(line)

    def write(self, record: dict[str, Any]) -> None:
        """Take one line; it reaches the disk with the next ``flush``."""
        self._waiting.append(_line(record))
        if self.path is not None and len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.lost += 1

    def flush(self, *, sync: bool = False) -> None:
        """Bring what waits to the disk; what it refuses waits on."""
        if self.path is None:
            self._kept.extend(self._waiting)
            self._waiting.clear()
            return
        if self._fd < 0:
            return
        try:
            self._append(b"".join(self._waiting))
            if sync:
                os.fsync(self._fd)
                if not os.fstat(self._fd).st_nlink:
                    self.trouble = self.trouble or "its file was removed while it was written"
        except OSError as error:
            self.trouble = self.trouble or f"{error.strerror or error}"

    def _append(self, lines: bytes) -> None:
        """Write waiting lines in one piece; of a piece that broke off the whole lines stay."""
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._fd, lines[written:])
        finally:
            whole = lines.rfind(b"\n", 0, written) + 1
            self._length += whole
            if whole < written:
                os.ftruncate(self._fd, self._length)
            while whole:
                whole -= len(self._waiting.popleft())

    def lines(self) -> Iterator[str]:
        """Every line so far, also those that still wait."""
        if self._fd >= 0:
            data = os.pread(self._fd, self._length, 0)
            yield from (line + "\n" for line in data.decode().split("\n")[:-1])
        for line in (*self._kept, *self._waiting):
            yield line.decode()

    def discard(self) -> None:
        """Remove the file: nothing was run."""
        if self._fd >= 0 and self.path is not None:
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Release the file and its lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _line(record: dict[str, Any]) -> bytes:
    return (_encode(record) + "\n").encode("utf-8", "backslashreplace")
