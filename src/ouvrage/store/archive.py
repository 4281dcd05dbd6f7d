"""Backup and restore: the whole ledger and the sealed samples in one file, between any two stores.

The file is a compressed tar of ``manifest.json`` (what it holds, with hashes), ``facts.ndjson``
(every record with its place and moment of recording), ``samples/`` and ``closed/``. Equal ledgers give equal
files. A restore checks all of it before it writes any of it, and only into a store that holds
nothing: merging is what ``run import`` is for.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouvrage.base.canonical import canonical
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.lines import read_record_line, record_line
from ouvrage.model.closings import BooksClosed
from ouvrage.model.runs import RunSamples
from ouvrage.store.closed_months import path_of as closed_path
from ouvrage.store.samples import path_of, write_whole
from ouvrage.store.store import Store

FORMAT = "ouvrage-backup"
VERSION = 1
_MANIFEST, _FACTS = "manifest.json", "facts.ndjson"
_MEMBER = re.compile(
    r"facts\.ndjson|samples/[0-9a-f]{32}\.ndjson\.gz|closed/[A-Za-z0-9][A-Za-z0-9._-]*\.parquet"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What a backup holds: facts, files of samples, and runs whose samples were not there."""

    facts: int
    last_recorded_at: int
    samples: int
    missing: tuple[str, ...]


def backup(store: Store, home: Path, file: Path) -> Archived:
    """Write everything recorded into a new file, which is there entirely or not at all."""
    if file.exists():
        raise OuvrageError(
            "backup/exists", f"{file} exists", hint="backups are never overwritten; name a new file"
        )
    records = store.records()
    runs = sorted({value.run for value in _samples_stated(records)})
    members = {_FACTS: b"".join(record_line(entry).encode() + b"\n" for entry in records)}
    missing: list[str] = []
    for run in runs:
        path = path_of(home, run)
        if path.exists():
            members[f"samples/{path.name}"] = path.read_bytes()
        else:
            missing.append(run)
    for name in sorted({seal.file for seal in _seals_stated(records)}):
        if (sealed := closed_path(home, name)).exists():
            members[f"closed/{name}"] = sealed.read_bytes()
    manifest = _manifest(records, members, missing)
    try:
        write_whole(file, _packed({_MANIFEST: canonical(manifest).encode(), **members}))
    except OSError as error:
        raise OuvrageError(
            "backup/unwritable", f"{file} cannot be written: {error.strerror}"
        ) from error
    return _archived(manifest)


def restore(file: Path, store: Store, home: Path) -> Archived:
    """Fill an empty store, and the samples beside it, from a backup."""
    manifest, members = _unpacked(file)
    records = _records(members[_FACTS], manifest)
    samples = {name: data for name, data in members.items() if name != _FACTS}
    store.refuse_unless_empty()
    for name, data in samples.items():
        _refuse_other(home / name, data)
    # Samples first: interrupted here, the same restore can be done again.
    for name, data in samples.items():
        write_whole(home / name, data)
    store.refill(records)
    return _archived(manifest)


def _samples_stated(records: Sequence[Recorded]) -> list[RunSamples]:
    stated = [read(entry.fact) for entry in records if entry.fact.kind == RunSamples.KIND]
    return [value for value in stated if isinstance(value, RunSamples)]


def _seals_stated(records: Sequence[Recorded]) -> list[BooksClosed]:
    stated = [read(entry.fact) for entry in records if entry.fact.kind == BooksClosed.KIND]
    return [value for value in stated if isinstance(value, BooksClosed)]


def _manifest(
    records: Sequence[Recorded], members: Mapping[str, bytes], missing: Sequence[str]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "facts": len(records),
        "last_recorded_at": records[-1].recorded_at if records else 0,
        "missing": list(missing),
        "members": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }


def _archived(manifest: Mapping[str, Any]) -> Archived:
    return Archived(
        facts=manifest["facts"],
        last_recorded_at=manifest["last_recorded_at"],
        samples=sum(name.startswith("samples/") for name in manifest["members"]),
        missing=tuple(manifest["missing"]),
    )


def _packed(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o600
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _unpacked(file: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the members it lists, all of them with the hashes it states."""
    try:
        with tarfile.open(file, "r:gz") as tar:
            members = {entry.name: _content(tar, entry) for entry in tar}
    except FileNotFoundError as error:
        raise OuvrageError("restore/absent", f"there is no file {file}") from error
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise _damaged(file, f"it cannot be unpacked ({error})") from error
    manifest = _read_manifest(file, members.pop(_MANIFEST, b""))
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    if hashes != manifest["members"] or _FACTS not in hashes:
        odd = sorted(set(hashes.items()) ^ set(manifest["members"].items()))
        raise _damaged(file, f"{odd[0][0] if odd else _FACTS} is not what its manifest states")
    if not all(_MEMBER.fullmatch(name) for name in members):
        raise _damaged(file, "it holds files that do not belong into a backup")
    return manifest, members


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(entry) if entry.isreg() else None
    return b"" if content is None else content.read()


def _read_manifest(file: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(file, "its manifest is missing or not JSON") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _damaged(file, "its manifest is not that of a backup")
    if manifest.get("version") != VERSION:
        raise OuvrageError(
            "restore/newer",
            f"{file} is a backup of form {manifest.get('version')!r}, not {VERSION}",
            hint="restore it with the version of Ouvrage that wrote it, or a newer one",
        )
    expected = {"facts": int, "last_recorded_at": int, "members": dict, "missing": list}
    if not all(isinstance(manifest.get(name), kind) for name, kind in expected.items()):
        raise _damaged(file, "its manifest does not say what the backup holds")
    return manifest


def _records(text: bytes, manifest: Mapping[str, Any]) -> list[Recorded]:
    records: list[Recorded] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            records.append(read_record_line(line))
        except ValueError as error:
            raise _damaged(Path(_FACTS), f"line {number} is not a record: {error}") from error
    if len(records) != manifest["facts"]:
        raise _damaged(Path(_FACTS), f"{manifest['facts']} facts expected, {len(records)} found")
    return records


def _refuse_other(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() != data:
        raise OuvrageError(
            "restore/not-empty",
            f"{path} exists with other content",
            hint="restore into an empty home: OUVRAGE_HOME=DIR ouvrage restore FILE",
        )


def _damaged(file: Path, found: str) -> OuvrageError:
    return OuvrageError(
        "restore/damaged",
        f"{file} is not a backup that can be used: {found}",
        hint="try another backup",
    )
