"""A file drop: a directory into which runs are pushed, until a server receives them.

Decides that a file there is whole or absent, is never changed, and is named by its content: the same
run pushed again is the same file, and more known about it makes another. Whoever empties the drop
imports every file; importing twice changes nothing.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.store.samples import sync_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Where a run lies, and whether it was not there before."""

    path: Path
    new: bool


def drop(run: str, content: bytes, directory: Path) -> Dropped:
    """Put an exported run into a drop. ``OuvrageError`` ``push/...`` where that cannot be."""
    if not directory.is_dir():
        raise OuvrageError(
            "push/no-directory",
            f"{directory} is no directory",
            hint="it is not made here, since a place that is not mounted would look just the same",
        )
    target = directory / f"{run}-{hashlib.sha256(content).hexdigest()[:16]}.ouvrage"
    try:
        if target.exists():
            _refuse_no_file(target)
            return _there_already(target, content)
        _write(target, content)
    except OSError as error:
        raise OuvrageError(
            "push/not-written",
            f"{target} could not be written: {error.strerror}",
            hint="nothing half-written is left; push again",
        ) from error
    return Dropped(path=target, new=True)


def _refuse_no_file(target: Path) -> None:
    if not target.is_file():  # a pipe would be waited for, without end
        raise OuvrageError(
            "push/not-written", f"{target} is there, and no file", hint="remove it and push again"
        )


def _there_already(target: Path, content: bytes) -> Dropped:
    if target.read_bytes() != content:
        raise OuvrageError(
            "push/damaged",
            f"{target} is not what its name says",
            hint="it was changed where it lies; remove it and push again",
        )
    return Dropped(path=target, new=False)


def _write(target: Path, content: bytes) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(target.parent)
