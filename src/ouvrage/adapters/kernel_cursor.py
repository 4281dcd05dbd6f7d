"""The kernel's log read on and on: from the start of the boot, then what came since, never a line twice.

Decides what a place in the log is: the number of a record in ``/dev/kmsg``, an offset in a file that stands in for it.
Records are told as they stand; only those that a caller's test finds telling are kept, since a log is long and faults
are few. A look takes so many and says that there is more: a flood must not hold it for ever, nor its answer be without
end. That records were overwritten before they were read is told as a number.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ouvrage.adapters.health_sources import NotTold

_RECORD = 1 << 16
_BLOCK = 4 << 20
MOST_READ, MOST_TOLD = 20_000, 1 << 20
"""Records that one look reads, and characters of telling ones that it gives back, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What came since a place: telling lines, how many there were in all, how many were lost, and the new place.

    ``more``: it was too much for one look.
    """

    lines: tuple[str, ...]
    read: int
    lost: int
    place: int
    more: bool = False


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
        data = os.pread(self._fd, _BLOCK, start)
        *whole, rest = data.split(b"\n")
        if len(rest) == _BLOCK:
            return Piece(
                lines=(), read=0, lost=1, place=start + _BLOCK, more=True
            )  # no line is so long
        place, read, size, kept = start, 0, 0, list[str]()
        for each in whole:
            place, read = place + len(each) + 1, read + 1
            line = each.decode("utf-8", "replace")
            if telling(line):
                kept.append(line)
                size += len(line)
            if read >= MOST_READ or size >= MOST_TOLD:
                break
        more = len(data) == _BLOCK or place < start + len(data) - len(rest)
        return Piece(lines=tuple(kept), read=read, lost=0, place=place, more=more)

    def _records(self, place: int | None, telling: Callable[[str], bool]) -> Piece:
        kept: list[str] = []
        read = lost = size = 0
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
                size += len(line)
            if read >= MOST_READ or size >= MOST_TOLD:
                return Piece(lines=tuple(kept), read=read, lost=lost, place=last, more=True)
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
