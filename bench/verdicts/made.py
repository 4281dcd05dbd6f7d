"""The files that the programs work on, made once, of seeded noise that nothing can squeeze.

Decides their names and sizes and brings them to the disk; who reads them how is the programs' matter.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

MB = 1 << 20
BLOB, TABLE = "blob.bin", "table.bin"
NAMES = (BLOB, TABLE)


def prepare(directory: Path, size: int = 96 * MB) -> None:
    """Make what is missing, each file of so many bytes, and bring it to the disk."""
    for name in NAMES:
        path = directory / name
        if path.is_file() and path.stat().st_size == size:
            continue
        some = random.Random(name)
        with path.open("wb") as out:
            for _ in range(size // MB):
                out.write(some.randbytes(MB))
            out.flush()
            os.fsync(out.fileno())


def forget(directory: Path) -> None:
    """Drop the files' pages from memory: pages held by others count against nobody's limit."""
    for name in NAMES:
        with (directory / name).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
