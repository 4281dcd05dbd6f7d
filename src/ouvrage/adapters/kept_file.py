"""A small file of the kernel's that is read again and again.

A descriptor kept open and read with ``pread`` costs a third of open, read, close. The number kept
is bounded, so that a large process tree never exhausts the meter's descriptors; beyond it a file
is opened for each reading. A kept ``/proc/<pid>/...`` stays bound to its process: when the process
is gone reading fails, also when its number has been given to another.
"""

from __future__ import annotations

import os

SIZE = 16_384


class Room:
    """How many more descriptors may be kept open."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left = limit


class KeptFile:
    """``read`` gives the whole content, or None where it is gone or may not be read."""

    __slots__ = ("_fd", "_path", "_room", "_size")

    def __init__(self, path: str, room: Room, size: int = SIZE) -> None:
        self._path = path
        self._room = room
        self._size = size
        self._fd = -1

    def read(self) -> bytes | None:
        """The content now; None where the file is gone or may not be read."""
        try:
            if self._fd >= 0:
                return os.pread(self._fd, self._size, 0)
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        if self._room.left > 0:
            self._room.left -= 1
            self._fd = descriptor
        try:
            return os.pread(descriptor, self._size, 0)
        except OSError:
            return None
        finally:
            if self._fd < 0:
                os.close(descriptor)

    def close(self) -> None:
        """Give the descriptor back; a later ``read`` opens the file anew."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._room.left += 1
