"""Terminals: what is one, whose it is, how it is set; raw and back.

``Screen`` is the person's own terminal while the command runs on one of ours. It is put back to
what it was on every way out, and is never touched while another job holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import termios
from typing import Any

SIZE = 8
INPUT, OUTPUT, CONTROL, LOCAL = 0, 1, 2, 3


def is_terminal(fd: int) -> bool:
    """Whether this descriptor is open on a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def same_file(one: int, other: int) -> bool:
    """Whether two descriptors lead to the same file, pipe or terminal."""
    try:
        first, second = os.fstat(one), os.fstat(other)
    except OSError:
        return False
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def in_foreground(fd: int) -> bool:
    """Whether this process's group holds the terminal."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False


def copy_size(source: int, target: int) -> None:
    """Give one terminal the other's size."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * SIZE)
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def open_like(real: int) -> tuple[int, int]:
    """A new terminal (ours, the command's) set and sized like a real one."""
    ours, theirs = os.openpty()
    with contextlib.suppress(termios.error):
        termios.tcsetattr(theirs, termios.TCSANOW, termios.tcgetattr(real))
    copy_size(real, theirs)
    return ours, theirs


def open_for_output(real: int) -> tuple[int, int]:
    """A new terminal (ours, the command's) for output alone, which changes no byte.

    The real terminal behind it still does its own output processing.
    """
    ours, theirs = os.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[OUTPUT] &= ~termios.OPOST
    attributes[LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    copy_size(real, theirs)
    return ours, theirs


def control_bytes(ours: int, *which: int) -> bytes:
    """The bytes that make signals on a terminal of ours now; none where it is set raw."""
    try:
        attributes: list[Any] = termios.tcgetattr(ours)
    except termios.error:
        return b""
    if not attributes[LOCAL] & termios.ISIG:
        return b""
    found = [attributes[6][index] for index in which]
    return b"".join(byte for byte in found if isinstance(byte, bytes) and byte != b"\0")


class Screen:
    """The person's terminal, raw while ``active``."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.active = False
        self._before: list[Any] = termios.tcgetattr(fd)

    def enter(self) -> bool:
        """Set it raw, if it is ours to set; whether it is raw now."""
        if not self.active and in_foreground(self.fd):
            with contextlib.suppress(termios.error):
                self._before = termios.tcgetattr(self.fd)
                termios.tcsetattr(self.fd, termios.TCSANOW, _raw(self._before))
                self.active = True
        return self.active

    def leave(self) -> None:
        """Put it back as it was, unless another job has it by now and set it for itself."""
        if self.active:
            self.active = False
            if not in_foreground(self.fd):
                return
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fd, termios.TCSANOW, self._before)


def _raw(before: list[Any]) -> list[Any]:
    raw: list[Any] = list(before)
    raw[6] = list(before[6])
    raw[INPUT] &= ~(
        termios.BRKINT
        | termios.ICRNL
        | termios.IGNBRK
        | termios.IGNCR
        | termios.INLCR
        | termios.INPCK
        | termios.ISTRIP
        | termios.IXON
        | termios.PARMRK
    )
    raw[OUTPUT] &= ~termios.OPOST
    raw[CONTROL] = raw[CONTROL] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[LOCAL] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    return raw
