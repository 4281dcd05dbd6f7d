"""A deadline for a whole exchange over a network: what is not over by then is cut off.

Decides only when a connection ends. A socket's own timeout counts from one byte to the next, so that a device which sends a
byte now and then would hold a program for ever. Which answers are good is for those who ask.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class CutOff:
    """Connections that end together after ``seconds``; ``passed`` says that they did."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._seconds = seconds
        self._watched: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> CutOff:
        self._timer = threading.Timer(self._seconds, self._end)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            for each in self._watched:
                each.close()
            self._watched.clear()

    def watch(self, connection: socket.socket) -> None:
        """Let it end with the others. TLS may take it over later: what is kept is another handle of it."""
        with self._lock:
            self._watched.append(connection.dup())
        if self.passed:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self.passed = True
            for each in self._watched:
                with contextlib.suppress(OSError):  # the other side has ended it already
                    socket.socket.shutdown(each, socket.SHUT_RDWR)
