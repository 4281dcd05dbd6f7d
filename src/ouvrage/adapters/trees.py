"""A directory that travels between two machines that do not trust one another, entry by entry.

Decides that plain files and directories travel and nothing else: a link, a pipe, a device, or a name that is no plain text is left out and
named. What arrives is a stranger's: its names are judged, nothing is put down through a link, over something else or outside of the
directory, and the whole appears under its name once all of it is there, where nothing stood before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from ouvrage.adapters.beneath import SORTS, parent_below

DEEPEST = 64
"""Directories in one another."""
LONGEST = 4096
_ODD = "a name that is no plain text"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An entry: its ``path`` below the directory, and a descriptor to read it with, its reader's to close; None for a directory."""

    path: str
    descriptor: int | None
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What does not travel, and what it is."""

    path: str
    sort: str


def entries_below(root: str, path: str) -> Iterator[Found | LeftOut]:
    """What lies in a directory below ``root``, parents first. ``OSError`` or ``ValueError`` with the reason."""
    at, name = parent_below(root, path)
    try:
        inner = _opened(at, name)
    finally:
        os.close(at)
    yield from _entries(inner, "", DEEPEST)


def _opened(at: int, name: str) -> int:
    mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    if not stat.S_ISDIR(mode):
        raise ValueError(f"it is {_sort(mode)}, not a directory")
    return os.open(name, _DIRECTORY, dir_fd=at)


def _entries(
    at: int, before: str, deeper: int, itself: Found | None = None
) -> Iterator[Found | LeftOut]:
    """An open directory, which is closed with its last entry: ``itself`` first, then what lies in it."""
    try:
        if deeper < 0:
            raise ValueError(f"there are more than {DEEPEST} directories in one another")
        if itself is not None:
            yield itself
        for name in sorted(os.listdir(at)):
            path = f"{before}{name}"
            try:
                found, inner = _entry(at, name, path)
            except FileNotFoundError:
                found, inner = LeftOut(path=path, sort="gone meanwhile"), None
            except PermissionError:
                found, inner = LeftOut(path=path, sort="not to be read"), None
            if inner is None:
                yield found
            elif isinstance(found, Found):
                yield from _entries(inner, f"{path}/", deeper - 1, found)
    finally:
        os.close(at)


def _entry(at: int, name: str, path: str) -> tuple[Found | LeftOut, int | None]:
    """One entry, and the descriptor of a directory. Who uses the directory meanwhile may take it away."""
    mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    if not _plain(path):
        return LeftOut(path=ascii(path)[1:-1], sort=_ODD), None
    if stat.S_ISDIR(mode):
        return Found(path=path, descriptor=None), _opened(at, name)
    return (
        _file(at, name, path) if stat.S_ISREG(mode) else LeftOut(path=path, sort=_sort(mode))
    ), None


def _file(at: int, name: str, path: str) -> Found:
    """A file, also where something else takes its place meanwhile: then it is refused."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=at)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise ValueError(f"{path} became {_sort(mode)}")
    return Found(path=path, descriptor=descriptor, executable=bool(mode & stat.S_IXUSR))


def _sort(mode: int) -> str:
    return next((sort for is_that, sort in SORTS if is_that(mode)), "a file")


def _plain(path: str) -> bool:
    """Whether a path can be said in text, on one line, and is no longer than any may be."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return False
    return path.isprintable() and length <= LONGEST


class Planting:
    """A directory that is being put down. ``ValueError`` or ``OSError`` for what does not belong there."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._file: IO[bytes] | None = None
        self.files = self.size = 0

    def entry(self, path: str, *, directory: bool, executable: bool) -> None:
        """The next entry; its directory came before it, and it before what lies in it."""
        self.close()
        parts = path.split("/")
        if not _plain(path) or {"", ".", ".."} & set(parts) or len(parts) > DEEPEST + 1:
            raise ValueError(f"{path!a} is no path that belongs here")
        at = self._directory(parts[:-1])
        try:
            if directory:
                os.mkdir(parts[-1], 0o777, dir_fd=at)
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            mode = 0o777 if executable else 0o666
            self._file = os.fdopen(os.open(parts[-1], flags, mode, dir_fd=at), "wb")
            self.files += 1
        except FileExistsError:
            raise ValueError(f"{path} came twice") from None
        finally:
            os.close(at)

    def _directory(self, parts: list[str]) -> int:
        at = os.dup(self._root)
        for part in parts:
            try:
                inner = os.open(part, _DIRECTORY, dir_fd=at)
            finally:
                os.close(at)
            at = inner
        return at

    def write(self, data: bytes) -> None:
        """More of the file whose entry came last."""
        if self._file is None:
            raise ValueError("bytes came that belong to no file")
        self.size += self._file.write(data)

    def close(self) -> None:
        """Nothing more is written to the last file."""
        if self._file is not None:
            self._file.close()
        self._file = None


@contextmanager
def plant_below(root: str, path: str) -> Iterator[Planting]:
    """A directory to be put down below ``root``, which appears once all of it is there, and not otherwise."""
    at, name = parent_below(root, path)
    draft = f".{name[:200]}.{os.getpid()}.part"
    try:
        _nothing_stands(at, name)
        os.mkdir(draft, 0o777, dir_fd=at)
        try:
            inner = os.open(draft, _DIRECTORY, dir_fd=at)
            with contextlib.closing(Planting(inner)) as planting:
                yield planting
            os.close(inner)
            _nothing_stands(at, name)
            os.rename(draft, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            shutil.rmtree(f"/proc/self/fd/{at}/{draft}", ignore_errors=True)
            raise
    finally:
        os.close(at)


def _nothing_stands(at: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.stat(name, dir_fd=at, follow_symlinks=False)
        raise ValueError("something of that name is there already")
