"""Opens what lies below a directory that somebody else filled, and nothing that lies elsewhere.

Decides that a link is never followed, in no part of a path: whoever could write in the directory could
otherwise have us read any file of the machine. What is not a plain file is refused by its sort.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

SORTS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)
"""What stands there where it is no plain file, by its mode."""


def open_below(root: str, path: str) -> int:
    """A descriptor to read a plain file with. ``OSError`` or ``ValueError`` with the reason."""
    at, name = parent_below(root, path)
    try:
        told = os.stat(name, dir_fd=at, follow_symlinks=False)
        for is_that, sort in SORTS:
            if is_that(told.st_mode):
                raise ValueError(f"it is {sort}, not a file")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=at)
    finally:
        os.close(at)


def parent_below(root: str, path: str) -> tuple[int, str]:
    """A descriptor of the directory that a path leads to without a link, and the last part of the path."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/"):
        raise ValueError("its path leads out of the directory")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts[:-1]:
        try:
            inner = os.open(part, flags, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at, parts[-1]


@contextmanager
def put_below(root: str, path: str, *, executable: bool) -> Iterator[IO[bytes]]:
    """A file to be written, which appears under its name once all of it is there, and not otherwise."""
    at, name = parent_below(root, path)
    draft = f".{name[:200]}.{os.getpid()}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(draft, flags, 0o700 if executable else 0o600, dir_fd=at)
        try:
            with os.fdopen(fd, "wb") as file:
                yield file
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                    raise ValueError("what stands there is no plain file")
            os.rename(draft, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            os.unlink(draft, dir_fd=at)
            raise
    finally:
        os.close(at)


def copy_below(root: str, path: str, target: Path) -> int:
    """Copy such a file to ``target``, for its owner alone; its length in bytes."""
    descriptor = open_below(root, path)
    with os.fdopen(descriptor, "rb") as source, open(target, "xb", opener=_private) as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
        return copy.tell()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
