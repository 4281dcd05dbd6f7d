"""A terminal with a person at it, for tests."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

from tests.support.meter import PATIENCE_S


class Person:
    """Starts a program on a terminal of its own, types, and reads what appears.

    ``seen`` is everything that has appeared so far.
    """

    def __init__(
        self, words: Sequence[str], env: Mapping[str, str], *, stderr: int | None = None
    ) -> None:
        self.seen = b""
        self.status: int | None = None
        self.pid, self.screen = pty.fork()
        if self.pid == 0:
            # Whoever sits at a terminal is told when it goes, also where these tests were started by nohup.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            if stderr is not None:
                os.dup2(stderr, 2)
            os.execvpe(words[0], list(words), dict(env))

    def types(self, keys: bytes) -> None:
        os.write(self.screen, keys)

    def waits_for(self, text: bytes, after: int = 0) -> int:
        """Read until the text has appeared beyond ``after``; where it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.seen[after:]:
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{text!r} did not appear; seen: {self.seen!r}")
        return self.seen.index(text, after) + len(text)

    def _read(self, patience: float) -> bool:
        screen = select.poll()  # select() knows no number above 1023
        screen.register(self.screen, select.POLLIN)
        if not screen.poll(patience * 1000):
            return False
        try:
            data = os.read(self.screen, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def leaves(self) -> int:
        """Read to the end and wait, not for ever; the wait status as an exit code."""
        while self._read(PATIENCE_S):
            pass
        deadline = time.monotonic() + PATIENCE_S
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        while not pid:
            if time.monotonic() > deadline:
                raise AssertionError(f"the program did not end; seen: {self.seen!r}")
            select.select([], [], [], 0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def settings(self) -> list[object]:
        return termios.tcgetattr(self.screen)

    def resizes(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.close(self.screen)
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 9)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
