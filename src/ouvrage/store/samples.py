"""Sealed samples: one gzip file per run beside the store, whose content a fact states by hash.

Decides how such a file comes to be whole or not at all, and that it is never overwritten with
other content. Raw samples are too many to be facts; the fact is the hash.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path

from ouvrage.base.errors import OuvrageError

_RUN = re.compile(r"[0-9a-f]{32}")


def path_of(home: Path, run: str) -> Path:
    """Where a run's sealed samples are, or would be."""
    if not _RUN.fullmatch(run):
        raise OuvrageError("samples/run", f"{run!r} is not the id of a run")
    return home / "samples" / f"{run}.ndjson.gz"


def read_sealed(home: Path, run: str) -> bytes | None:
    """The uncompressed samples of a run, None where they are not here."""
    path = path_of(home, run)
    try:
        return gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        return None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise OuvrageError(
            "samples/damaged",
            f"{path} cannot be unpacked: {error}",
            hint="its facts are not touched; restore the file from a backup",
            exit_code=1,
        ) from error


def seal(home: Path, run: str, data: bytes) -> None:
    """Keep a run's samples; doing it again changes nothing, other samples are refused."""
    held = read_sealed(home, run)
    if held is None:
        write_whole(path_of(home, run), gzip.compress(data, mtime=0))
    elif held != data:
        raise OuvrageError(
            "samples/differ",
            f"{path_of(home, run)} holds other samples of the same run",
            hint="nothing was overwritten",
        )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, for its owner only, so that it is there entirely or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make what was renamed or removed in a directory outlast a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
