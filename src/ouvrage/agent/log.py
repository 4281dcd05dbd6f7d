"""The log of an attempt: what its command printed, in one file, up to a limit.

Decides that a command is never held up by its own log, that the file never grows past its limit, and
that a log which was cut says so in its last line.
"""

from __future__ import annotations

import os
from pathlib import Path

BLOCK = 65_536
_MOST_AT_ONCE = 16


class Log:
    """Reads the pipe that the command prints into. ``lost`` counts the bytes beyond the limit."""

    def __init__(self, path: Path, pipe: int, limit: int) -> None:
        self.pipe = pipe
        self.lost = 0
        self._notice = f"\n[ouvrage: the log ends here, at its limit of {limit} bytes]\n".encode()
        self._left = max(
            0, limit - len(self._notice) - 1
        )  # a full one is cut by the server, in its words
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.set_blocking(pipe, False)

    def carry(self) -> bool:
        """Take what is there; False when every writer is gone."""
        for _ in range(_MOST_AT_ONCE):
            try:
                data = os.read(self.pipe, BLOCK)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._keep(data)
        return True

    def say(self, text: str) -> None:
        """A line of ours."""
        self._keep(f"[ouvrage: {text}]\n".encode())

    def _keep(self, data: bytes) -> None:
        kept = data[: self._left]
        beyond = len(data) - len(kept)
        self._left -= len(kept)
        if beyond and not self.lost:
            kept += self._notice
        self.lost += beyond
        try:
            while kept:
                kept = kept[os.write(self._fd, kept) :]
        except OSError:  # the disk is full: the command goes on, its words are lost
            self.lost += len(kept)

    def close(self) -> None:
        """Bring it to the disk."""
        os.fsync(self._fd)
        os.close(self._fd)
        os.close(self.pipe)
