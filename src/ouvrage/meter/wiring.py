"""How the command's three standard descriptors are connected.

A terminal stays a terminal and a pipe a pipe. Where input and output are one terminal that is ours
to use, the command gets a terminal of its own with everything a terminal does. Where only an output
is one, that output alone becomes a terminal that changes no byte. Two descriptors on one file share
one way, so that what they write stays in order. Input is otherwise the caller's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ouvrage.meter import terminal
from ouvrage.meter.pump import Pump

NAMES = {1: "stdout", 2: "stderr"}
Action = tuple[Any, ...]


class Wiring:
    """The connections of one run; made before the command starts.

    ``actions`` are those of ``posix_spawn``. ``full`` is our side of the command's own terminal, or
    -1. ``give_away`` holds the command's side of everything, closed here once it runs.
    """

    def __init__(self) -> None:
        self.closed = [fd for fd in (0, 1, 2) if not _is_open(fd)]
        for fd in self.closed:
            _occupy(fd)
        self.actions: list[Action] = [(os.POSIX_SPAWN_CLOSE, fd) for fd in self.closed]
        self.full = -1
        self.outputs: list[tuple[str, int, int, bool]] = []
        self.give_away: list[int] = []
        if self._one_terminal():
            self._connect_terminal()
        self._connect_outputs()

    def _one_terminal(self) -> bool:
        return (
            not {0, 1} & set(self.closed)
            and terminal.is_terminal(0)
            and terminal.is_terminal(1)
            and terminal.same_file(0, 1)
            and terminal.in_foreground(0)
        )

    def _connect_terminal(self) -> None:
        ours, theirs = terminal.open_like(0)
        path = os.ttyname(theirs)
        self.full = ours
        self.give_away.append(theirs)
        # Opened by the command itself, first thing in its new session: so it becomes the session's.
        self.actions.append((os.POSIX_SPAWN_OPEN, 0, path, os.O_RDWR, 0))
        self.actions.append((os.POSIX_SPAWN_DUP2, 0, 1))
        self.outputs.append(("stdout", ours, 1, True))

    def _connect_outputs(self) -> None:
        for fd in (1, 2):
            if fd in self.closed or (fd == 1 and self.full >= 0):
                continue
            if fd == 2 and 1 not in self.closed and terminal.same_file(1, 2):
                self.actions.append((os.POSIX_SPAWN_DUP2, 1, 2))
                continue
            is_terminal = terminal.is_terminal(fd)
            ours, theirs = terminal.open_for_output(fd) if is_terminal else os.pipe()
            self.give_away.append(theirs)
            self.actions.append((os.POSIX_SPAWN_DUP2, theirs, fd))
            self.outputs.append((NAMES[fd], ours, fd, is_terminal))

    def pumps(self, stop: int, seen: Callable[[str, bytes], None]) -> list[Pump]:
        """A pump for each output, not yet started."""
        return [
            Pump(name, ours, fd, stop, seen, terminal=is_terminal, keep_source=ours == self.full)
            for name, ours, fd, is_terminal in self.outputs
        ]

    def started(self) -> None:
        """The command has its side; ours of it is closed."""
        for fd in self.give_away:
            os.close(fd)
        self.give_away = []

    def resize(self) -> bool:
        """Give every terminal of the command the real one's size; whether there is one."""
        for _, ours, fd, is_terminal in self.outputs:
            if is_terminal:
                terminal.copy_size(fd, ours)
        return any(is_terminal for *_, is_terminal in self.outputs)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _occupy(fd: int) -> None:
    """Put something harmless at a closed standard descriptor, so that no file of ours lands there."""
    other = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    if other != fd:
        os.dup2(other, fd, inheritable=False)
        os.close(other)
