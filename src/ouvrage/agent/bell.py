"""How a supervisor tells the runner that something of its attempt has changed.

Decides nothing and holds nothing: what changed is on the disk, and whoever misses the bell sees it at
the next look. A named pipe, because its path may be of any length and nobody needs to listen.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
from pathlib import Path

_NAME = "bell"
_MANY = 65_536


def ring(state: Path) -> None:
    """Let the runner look, where there is one."""
    wake(state / _NAME)


def wake(pipe: Path) -> None:
    """Let whoever reads a named pipe look; nobody may be there."""
    try:
        fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENXIO, errno.ENOENT):
            raise
        return
    with contextlib.suppress(BlockingIOError):
        os.write(fd, b"!")
    os.close(fd)


class Bell:
    """The runner's end; ``hear`` lets others ring too, by pipes of their own."""

    def __init__(self, state: Path) -> None:
        path = state / _NAME
        if not path.exists():
            os.mkfifo(path, 0o600)
        self._fds = [os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)]

    def hear(self, pipe: int) -> None:
        """Be rung by this open pipe as well; it is closed with this."""
        self._fds.append(pipe)

    def wait(self, seconds: float) -> None:
        """Until somebody rings, or so long."""
        for fd in select.select(self._fds, [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                os.read(fd, _MANY)

    def ring(self) -> None:
        """For another thread of the runner."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._fds[0], b"!")

    def close(self) -> None:
        """Take it down; the pipes stay."""
        for fd in self._fds:
            os.close(fd)
