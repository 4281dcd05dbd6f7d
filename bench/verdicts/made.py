"""The files that the programs work on, made once, of seeded noise that nothing can squeeze.

Decides their names and sizes and brings them to the disk; who reads them how is the programs' matter.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

MB = 1 << 20
BLOB, TABLE = "blob.bin", "table.bin"
SIZES = {BLOB: 96 * MB, TABLE: 96 * MB}


def prepare(directory: Path) -> None:
    """Make what is missing and bring it to the disk."""
    for name, size in SIZES.items():
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
    for name in SIZES:
        with (directory / name).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
