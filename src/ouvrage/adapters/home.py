"""Where a person's own facts live: ``OUVRAGE_HOME``, and what stands in it.

Decides the layout and who may read it (the owner alone). Nothing is created until it is asked for.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ouvrage.adapters.clock import new_id
from ouvrage.base.errors import OuvrageError

_SOURCE = re.compile(r"[0-9a-f]{32}")


def home() -> Path:
    """The home directory: ``OUVRAGE_HOME``, else ``~/.local/share/ouvrage``."""
    named = os.environ.get("OUVRAGE_HOME")
    if named:
        return Path(named).absolute()
    return Path(os.path.expanduser("~"), ".local", "share", "ouvrage")


def spool_dir(where: Path) -> Path:
    """The directory of runs that are live or not yet brought into the store."""
    return where / "spool"


def make_private(directory: Path) -> Path:
    """Create a directory for its owner alone; parents as the system makes them."""
    if not directory.is_dir():
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def write_once(file: Path, data: bytes) -> None:
    """A private file that appears whole or not at all, and stays as whoever came first wrote it."""
    draft = file.with_name(f".{file.name}-{new_id()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, file)
    finally:
        os.unlink(draft)


def source_id(where: Path) -> str:
    """This home's source id, created on first use.

    Two processes that come first at once agree: the file appears whole under its name or not at
    all, and whoever comes second reads the first one's.
    """
    file = make_private(where) / "source"
    if not file.exists():
        write_once(file, (new_id() + "\n").encode())
    text = file.read_text(encoding="ascii", errors="replace").strip()
    if not _SOURCE.fullmatch(text):
        raise OuvrageError(
            "home/source",
            f"{file} does not hold a source id",
            hint="it names the origin of every fact recorded here: restore it from a backup",
        )
    return text
