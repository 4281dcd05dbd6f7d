"""Runs the pattern of ``--unit-regex`` in a process of its own, because a pattern may never end.

Python holds its lock while it matches, so a pattern such as ``(a+)+$`` would stop every thread of
the meter: the command's output, its signals, its end. Here the pump only puts what went by into a
bounded queue, and the kernel ends the process that matches when one block costs it too much. Then,
and when output comes faster than it can be matched, units are no longer looked for and ``fault``
says why; what was found before stays. Which lines are units is ``metering.recognise``'s.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable

from ouvrage.metering.recognise import Mark, Recogniser

MOST_WAITING = 16 << 20
CPU_S_PER_BLOCK = 1.0
PATIENCE_S = 3.0
_HEAD = struct.Struct("<Iq16s")
_SIZE = struct.Struct("<I")
_LAST = b"\0flush"
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)


class Matcher:
    """The process and the thread that speaks with it. Made before any other thread is.

    ``taken`` gets the marks, in the thread. ``pid`` is 0 where no process could be made.
    """

    def __init__(self, unit: str | None, regex: str) -> None:
        self.fault: str | None = None
        self.pid = 0
        self._items: deque[tuple[bytes, bytes, int]] = deque()
        self._waiting = 0
        self._change = threading.Condition()
        self._taken: Callable[[Iterable[Mark]], None] = lambda _marks: None
        self._thread = threading.Thread(target=self._speak, name="matcher", daemon=True)
        self._socket, theirs = socket.socketpair()
        try:
            self.pid = os.fork()
        except OSError as error:
            self.fault = f"no process for --unit-regex: {error.strerror}"
        if not self.pid and self.fault is None:
            _match(theirs, unit, regex)
        theirs.close()

    def attend(self, taken: Callable[[Iterable[Mark]], None]) -> None:
        """Begin; from now on ``taken`` gets the marks."""
        self._taken = taken
        self._thread.start()

    def feed(self, stream: str, data: bytes, t: int) -> None:
        """Take what went by at ``t``. Never waits."""
        with self._change:
            if self.fault is not None:
                return
            if self._waiting + len(data) > MOST_WAITING:
                self._fail("the output came faster than it could be matched")
                return
            self._waiting += len(data)
            self._items.append((stream.encode(), data, t))
            self._change.notify()

    def finish(self, t: int) -> None:
        """Wait, for a while, until everything is matched; afterwards no mark comes any more."""
        with self._change:
            self._items.append((_LAST, b"", t))
            self._change.notify()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_S)
            with self._change:
                if self._thread.is_alive():
                    self._fail("matching was not done when the command was")
            self._thread.join()
        self.close()

    def close(self) -> None:
        """End the process; it is waited for where all children of the meter are."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._socket.close()

    def _fail(self, why: str) -> None:
        """With the lock held: give up."""
        self.fault = self.fault or why
        self._items.clear()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._change.notify()

    def _next(self) -> tuple[bytes, bytes, int] | None:
        with self._change:
            while not self._items:
                if self.fault is not None:
                    return None
                self._change.wait()
            item = self._items.popleft()
            self._waiting -= len(item[1])
            return item

    def _speak(self) -> None:
        while (item := self._next()) is not None:
            name, data, t = item
            try:
                self._socket.sendall(_HEAD.pack(len(data), t, name) + data)
                answer = json.loads(
                    _exactly(self._socket, _SIZE.unpack(_exactly(self._socket, 4))[0])
                )
            except (OSError, EOFError):
                with self._change:
                    self._fail("--unit-regex takes too long on what the command prints")
                return
            self._taken(Mark(*values) for values in answer)
            if name == _LAST:
                return


def _exactly(source: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = source.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _match(meter: socket.socket, unit: str | None, regex: str) -> None:
    """The process: answer each block with its marks until the meter is gone."""
    try:
        _be_small(meter.fileno())
        recogniser = Recogniser(unit, regex)
        while True:
            size, t, name = _HEAD.unpack(_exactly(meter, _HEAD.size))
            data = _exactly(meter, size)
            stream = name.rstrip(b"\0")
            signal.setitimer(signal.ITIMER_PROF, CPU_S_PER_BLOCK)
            marks = (
                recogniser.flush(t)
                if stream == _LAST
                else recogniser.feed(stream.decode(), data, t)
            )
            signal.setitimer(signal.ITIMER_PROF, 0)
            text = json.dumps([(m.name, m.via, m.mark, m.n, m.t) for m in marks]).encode()
            meter.sendall(_SIZE.pack(len(text)) + text)
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


def _be_small(kept: int) -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir("/")
    for name in os.listdir("/proc/self/fd"):
        if int(name) != kept:
            with contextlib.suppress(OSError):
                os.close(int(name))
