"""A small file of the kernel's that is read again and again.

A descriptor kept open and read with ``pread`` costs a third of open, read, close. The number kept
is bounded, so that a large process tree never exhausts the meter's descriptors; beyond it a file
is opened for each reading. A kept ``/proc/<pid>/...`` stays bound to its process: when the process
is gone reading fails, also when its number has been given to another. The kernel hands out a long
list a page at a time, by whole lines: what comes short of half a page is all of it.
"""

from __future__ import annotations

import os

SIZE = 16_384
_LARGEST = 262_144
_HALF_PAGE = 2048


class Room:
    """How many more descriptors may be kept open."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left = limit


class KeptFile:
    """``read`` gives the content, to ``largest`` bytes, or None where it is gone or may not be read."""

    __slots__ = ("_fd", "_largest", "_path", "_room", "_size")

    def __init__(self, path: str, room: Room, largest: int = _LARGEST) -> None:
        self._path = path
        self._room = room
        self._size = min(SIZE, largest)
        self._largest = largest
        self._fd = -1

    def read(self) -> bytes | None:
        """The content now; None where the file is gone or may not be read."""
        try:
            if self._fd >= 0:
                data = os.pread(self._fd, self._size, 0)
                return data if len(data) < _HALF_PAGE else self._whole(self._fd, data)
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        if self._room.left > 0:
            self._room.left -= 1
            self._fd = descriptor
        try:
            return self._whole(descriptor, os.pread(descriptor, self._size, 0))
        except OSError:
            return None
        finally:
            if self._fd < 0:
                os.close(descriptor)

    def _whole(self, descriptor: int, data: bytes) -> bytes:
        """What lies behind a page, where there is something."""
        while _HALF_PAGE <= len(data) < self._largest:
            more = os.pread(descriptor, self._size, len(data))
            if not more:
                break
            data += more
        return data[: self._largest]

    def close(self) -> None:
        """Give the descriptor back; a later ``read`` opens the file anew."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._room.left += 1
