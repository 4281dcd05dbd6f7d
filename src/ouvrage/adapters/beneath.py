"""Opens what lies below a directory that somebody else filled, and nothing that lies elsewhere.

Decides that a link is never followed, in no part of a path: whoever could write in the directory could
otherwise have us read any file of the machine. What is not a plain file is refused by its sort.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

_SORTS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


def open_below(root: str, path: str) -> int:
    """A descriptor to read a plain file with. ``OSError`` or ``ValueError`` with the reason."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise ValueError("its path leads out of the directory")
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(part, flags, dir_fd=at)
            os.close(at)
            at = inner
        told = os.stat(parts[-1], dir_fd=at, follow_symlinks=False)
        for is_that, sort in _SORTS:
            if is_that(told.st_mode):
                raise ValueError(f"it is {sort}, not a file")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(parts[-1], flags, dir_fd=at)
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
