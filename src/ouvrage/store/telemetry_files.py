"""The files of telemetry in a server's directory: which are sealed, which are in the way, how much they take; and the law about them.

Decides nothing about when: the server does. What is not here is no breach, since files are moved and dropped; what is here must be what
was stated, and each batch in it must follow the one before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.model.ingest import TelemetryDropped, TelemetrySealed
from ouvrage.store.engine import reading, told
from ouvrage.store.platform.ingest_tables import sample_logs
from ouvrage.store.sample_frames import SUFFIX, frames_in
from ouvrage.store.store import Store
from ouvrage.store.telemetry import DIRECTORY, Key, last_kept, path_of
from ouvrage.wire.samples import decode

_FILE = re.compile(r"[0-9a-f]{32}\.parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A file of telemetry and its size."""

    path: Path
    bytes: int

    @property
    def sealed(self) -> bool:
        """Whether it is sealed, or batches still."""
        return self.path.suffix != SUFFIX


def held_in(home: Path) -> list[Held]:
    """The files of telemetry, oldest first; drafts are none."""
    names = (*home.glob(f"{DIRECTORY}/*.parquet"), *home.glob(f"{DIRECTORY}/*{SUFFIX}"))
    files = sorted(path for path in names if not path.name.startswith("."))
    return [Held(path=path, bytes=path.stat().st_size) for path in files]


def sealed_path(home: Path, file: str) -> Path:
    """Where a sealed file is, or would be."""
    if not _FILE.fullmatch(file):
        raise OuvrageError("telemetry/file", f"{file!r} is not a sealed file of telemetry")
    return home / DIRECTORY / file


def sealed_stated(store: Store) -> dict[str, TelemetrySealed]:
    """The sealed files that were not dropped, by name."""
    dropped = {
        value.file
        for value in (read(e.fact) for e in store.records(kind=TelemetryDropped.KIND))
        if isinstance(value, TelemetryDropped)
    }
    stated = (read(e.fact) for e in store.records(kind=TelemetrySealed.KIND))
    return {
        value.file: value
        for value in stated
        if isinstance(value, TelemetrySealed) and value.file not in dropped
    }


def telemetry_law(store: Store, home: Path) -> Law:
    """The law that files of telemetry are what was stated of them, and hold each batch once."""

    def check(records: Sequence[Recorded]) -> Iterator[tuple[str, str]]:
        for entry in records:
            seal = read(entry.fact) if entry.fact.kind == TelemetrySealed.KIND else None
            if isinstance(seal, TelemetrySealed):
                path = sealed_path(home, seal.file)
                if path.exists() and _sha256(path) != seal.sha256:
                    yield seal.file, "it is not what was sealed"
        yield from _unsealed(store, home)

    return Law(
        name="store/telemetry",
        statement="files of telemetry that are here are what was kept, each batch once",
        check=check,
    )


def _unsealed(store: Store, home: Path) -> Iterator[tuple[str, str]]:
    kept = last_kept(store)
    last: dict[Key, int] = {}
    query = select(sample_logs.c.log, sample_logs.c.bytes).order_by(sample_logs.c.log)
    with told(store.engine), reading(store.engine) as connection:
        logs = connection.execute(query).all()
    for log, size in logs:
        path = path_of(home, log)
        if not path.exists():
            continue
        try:
            for frame in frames_in(path, size):
                batch = decode(frame.content)
                key = (frame.node, batch.source)
                if last.get(key, batch.sequence - 1) != batch.sequence - 1:
                    yield path.name, f"batch {batch.sequence} does not follow {last[key]}"
                last[key] = batch.sequence
        except OuvrageError as error:
            yield path.name, error.message
    for key, sequence in last.items():
        if sequence > kept.get(key, sequence):
            yield key[0], f"batch {sequence} is in a file, and {kept[key]} is the last one kept"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
