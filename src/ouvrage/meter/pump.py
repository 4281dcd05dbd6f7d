"""Carries one output stream of the command to where it was going, byte for byte, and looks on.

One thread a stream, so that a reader who is slow with one never holds up the other. What cannot be
written any more is answered as the kernel would: the reading end is closed, so the command gets
SIGPIPE or EPIPE. Nothing here decides what the bytes mean.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import stat
import struct
import termios
import threading
from collections.abc import Callable, Sequence

BLOCK = 65_536
_LEAVE_OFF = 1 << 20
_TERMINAL_LAG_MS = 50
"""The kernel hands a terminal's bytes over in the background; a pipe's are there at once."""
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTOU)


class Pump(threading.Thread):
    """Copies from ``source`` to ``target`` until the end, or until ``stop`` becomes readable.

    After ``stop`` it still carries what had arrived by then. ``source`` is -1 when it has been read
    to its end; ``trouble`` names an error of the target other than a reader that went away.
    ``keep_source`` is for a terminal that must stay open though nobody looks at it any more.
    """

    def __init__(
        self,
        name: str,
        source: int,
        target: int,
        stop: int,
        seen: Callable[[str, bytes], None],
        *,
        terminal: bool,
        keep_source: bool = False,
    ) -> None:
        super().__init__(name=f"pump-{name}", daemon=True)
        self.stream = name
        self.source = source
        self.target = target
        self.terminal = terminal
        self.trouble: str | None = None
        self.done = False
        self._stop_fd = stop
        self._seen = seen
        self._keep = keep_source
        self._broken = False

    def run(self) -> None:
        """Copy, then tell the supervisor, which waits for signals."""
        try:
            self._copy()
        finally:
            self.done = True
            os.kill(os.getpid(), signal.SIGCHLD)

    def _copy(self) -> None:
        poller = select.poll()
        poller.register(self.source, select.POLLIN)
        poller.register(self._stop_fd, select.POLLIN)
        if _has_reader(self.target):
            poller.register(self.target, 0)
        while self.source >= 0:
            ready = dict(poller.poll())
            if self.target in ready:
                self._give_up(None)
                if self.source >= 0:
                    poller.unregister(self.target)
            elif self.source in ready:
                self._carry(BLOCK)
            elif self._stop_fd in ready:
                return
            if self._stop_fd in ready:
                self._carry_the_rest()
                return

    def _carry_the_rest(self) -> None:
        """What is in the pipe now; a writer that never ends must not keep us."""
        left = _LEAVE_OFF if self.terminal else _buffered(self.source)
        poller = select.poll()
        if self.source >= 0:
            poller.register(self.source, select.POLLIN)
        patience_ms = _TERMINAL_LAG_MS if self.terminal else 0
        while self.source >= 0 and poller.poll(patience_ms):
            # With nothing left to carry, one more read may still tell that the stream has ended.
            if left <= 0 and _buffered(self.source):
                return
            left -= self._carry(min(BLOCK, max(left, 1)))

    def _carry(self, most: int) -> int:
        try:
            data = os.read(self.source, most)
        except OSError:  # EIO: the last process closed the terminal
            data = b""
        if not data:
            self._close()
            return 0
        if not self._broken:
            try:
                write_all(self.target, data)
            except BrokenPipeError:
                self._give_up(None)
            except OSError as error:
                self._give_up(error.strerror)
        self._seen(self.stream, data)
        return len(data)

    def _give_up(self, trouble: str | None) -> None:
        self.trouble = self.trouble or trouble
        self._broken = True
        if not self._keep:
            self._close()

    def _close(self) -> None:
        source, self.source = self.source, -1
        if not self._keep:
            os.close(source)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, also to a descriptor that somebody made non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            poller = select.poll()
            poller.register(fd, select.POLLOUT)
            poller.poll()


def _buffered(source: int) -> int:
    if source < 0:
        return 0
    try:
        return struct.unpack("i", fcntl.ioctl(source, termios.FIONREAD, b"\0" * 4))[0]
    except OSError:
        return 0


def _has_reader(target: int) -> bool:
    """Whether a reader can go away before anything is written to it."""
    try:
        mode = os.fstat(target).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def carry_on(pumps: Sequence[Pump]) -> None:
    """Leave a small process behind that copies until the last writer is gone.

    Processes that outlive the command still hold its outputs. Without it they would be killed by
    SIGPIPE, and ``$(...)`` would return before they are done, as it does not without the meter.
    Called when no other thread runs.
    """
    if os.fork():
        return
    try:
        _be_small(pumps)
        _copy_all({pump.source: pump.target for pump in pumps})
    finally:
        os._exit(0)


def _be_small(pumps: Sequence[Pump]) -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.chdir("/")
    kept = {fd for pump in pumps for fd in (pump.source, pump.target)}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _copy_all(targets: dict[int, int]) -> None:
    poller = select.poll()
    for source, target in targets.items():
        poller.register(source, select.POLLIN)
        if _has_reader(target):
            poller.register(target, 0)
    while targets:
        for fd, _ in poller.poll():
            gone = [source for source, target in targets.items() if target == fd]
            if fd in targets and not _copy_once(fd, targets[fd]):
                gone = [fd]
            for source in gone:
                poller.unregister(source)
                os.close(source)
                del targets[source]
            if gone and fd not in gone:
                poller.unregister(fd)


def _copy_once(source: int, target: int) -> bool:
    try:
        data = os.read(source, BLOCK)
        write_all(target, data)
    except OSError:
        return False
    return bool(data)
