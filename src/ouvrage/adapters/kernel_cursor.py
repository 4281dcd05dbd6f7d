"""The kernel's log read on and on: from the start of the boot, then what came since, never a line twice.

Decides what a place in the log is: the number of a record in ``/dev/kmsg``, an offset in a file that stands in for it.
Records are told as they stand; only those that a caller's test finds telling are kept, since a log is long and faults
are few. That records were overwritten before they were read is told as a number.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ouvrage.adapters.health_sources import NotTold
from ouvrage.health.kernel_log import lines_in

_RECORD = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What came since a place: telling lines, how many there were in all, how many were lost, and the new place."""

    lines: tuple[str, ...]
    read: int
    lost: int
    place: int


class KernelCursor:
    """One open log. ``device`` says whether it gives records with numbers. Raises ``NotTold``."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)
        except OSError as error:
            raise NotTold(
                f"{path}: {error.strerror}; the kernel's log is root's to read"
            ) from error

    def after(self, place: int | None, telling: Callable[[str], bool]) -> Piece:
        """What came after a place; None: everything that the log still holds. Raises ``NotTold``."""
        try:
            return (
                self._file(place or 0, telling) if self._is_file else self._records(place, telling)
            )
        except OSError as error:
            raise NotTold(f"{self._path}: {error.strerror}") from error

    def _file(self, offset: int, telling: Callable[[str], bool]) -> Piece:
        """Whole lines after an offset; a file that became shorter is another one and read from its start."""
        size = os.stat(self._path).st_size
        start = offset if offset <= size else 0
        data = b""
        while piece := os.pread(self._fd, 1 << 20, start + len(data)):
            data += piece
        whole = data[: data.rfind(b"\n") + 1]
        lines = lines_in(whole.decode("utf-8", "replace"))[:-1]
        told = tuple(line for line in lines if telling(line))
        return Piece(lines=told, read=len(lines), lost=0, place=start + len(whole))

    def _records(self, place: int | None, telling: Callable[[str], bool]) -> Piece:
        kept: list[str] = []
        read = lost = 0
        last = -1 if place is None else place
        for record in self._each():
            line = record.partition("\n")[0]
            number = _number(line)
            if number is None or number <= last:
                continue
            lost += max(0, number - last - 1) if last >= 0 else 0
            last, read = number, read + 1
            if telling(line):
                kept.append(line)
        return Piece(lines=tuple(kept), read=read, lost=lost, place=last)

    def _each(self) -> Iterator[str]:
        while True:
            try:
                data = os.read(self._fd, _RECORD)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # overwritten meanwhile: the next record's number tells how many
            if not data:
                return
            yield data.decode("utf-8", "replace")

    def close(self) -> None:
        """Let go of it."""
        with suppress(OSError):
            os.close(self._fd)


def _number(line: str) -> int | None:
    """``6,339,5140900,-;text``: the record's number."""
    words = line.split(",", 2)
    return int(words[1]) if len(words) == 3 and words[1].isdecimal() else None
