"""One run as one file: all its facts and its raw samples, to carry from machine to machine.

Decides the file's form, which any version reads or refuses with a reason. The file is gzip over
lines: first ``{"format":"ouvrage-run","version":1,...}`` with the SHA-256 of all that follows, then
one line per fact, then the samples as they were. Equal runs give equal files. Standard library
only, because the single-file meter exports with it from machines on which nothing is installed.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ouvrage.base.canonical import canonical
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.lines import fact_line, read_fact_line

FORMAT = "ouvrage-run"
VERSION = 1
LARGEST = 1 << 30
"""Bytes that an exported run may unpack to: a month of samples takes a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What a file holds: the run's facts in order, and its samples (None: not exported)."""

    run: str
    facts: tuple[Fact, ...]
    samples: bytes | None


def export_run(run: str, facts: Iterable[Fact], samples: bytes | None) -> bytes:
    """The file for a run; ``samples`` are the uncompressed bytes of its sealed file."""
    lines = [fact_line(fact).encode() + b"\n" for fact in facts]
    body = b"".join(lines) + (samples or b"")
    first: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "run": run,
        "facts": len(lines),
        "samples": None if samples is None else len(samples),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(canonical(first).encode() + b"\n" + body) + packer.flush()


def read_export(data: bytes, *, largest: int | None = None) -> Exported:
    """What a file holds; ``OuvrageError`` ``exchange/...`` where it is not whole, not ours, or unpacks to more than
    ``largest`` (None: ``LARGEST``).
    """
    head, _, body = _unpacked(data, LARGEST if largest is None else largest).partition(b"\n")
    first = _first_line(head)
    if hashlib.sha256(body).hexdigest() != first.get("sha256"):
        raise _damaged("its contents do not have the hash that its first line states")
    *lines, rest = body.split(b"\n", first["facts"])
    if len(lines) != first["facts"]:
        raise _damaged("it holds fewer facts than its first line states")
    facts = tuple(_fact(line, number) for number, line in enumerate(lines, 2))
    return Exported(run=first["run"], facts=facts, samples=_samples(first, rest))


def _unpacked(data: bytes, largest: int) -> bytes:
    unpacker = zlib.decompressobj(31)
    try:
        text = unpacker.decompress(data, largest)
    except zlib.error as error:
        raise _damaged("it is not a gzip file, or is damaged") from error
    if unpacker.unconsumed_tail:
        raise OuvrageError("exchange/too-large", f"the run unpacks to more than {largest} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise _damaged("its end is missing, or something follows it")
    return text


def _first_line(line: bytes) -> dict[str, Any]:
    try:
        first = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _damaged("its first line is not JSON") from error
    if not isinstance(first, dict) or first.get("format") != FORMAT:
        raise _damaged(f"its first line does not say that it is an {FORMAT}")
    if first.get("version") != VERSION:
        raise OuvrageError(
            "exchange/newer",
            f"the run was exported in form {first.get('version')!r}, this version reads {VERSION}",
            hint="import it with a newer version of Ouvrage",
        )
    count, size = first.get("facts"), first.get("samples")
    if type(count) is not int or count < 0 or not isinstance(first.get("run"), str):
        raise _damaged("its first line does not say what it holds")
    if size is not None and type(size) is not int:
        raise _damaged("its first line does not say what it holds")
    return first


def _fact(line: bytes, number: int) -> Fact:
    try:
        fact, sha256 = read_fact_line(line)
    except ValueError as error:
        raise _damaged(f"line {number} is not a fact: {error}") from error
    if sha256 != fact.sha256:
        raise _damaged(f"line {number}: the fact does not have the hash that it states")
    return fact


def _samples(first: dict[str, Any], rest: bytes) -> bytes | None:
    size = first["samples"]
    if len(rest) != (size or 0):
        raise _damaged(f"{size or 0} bytes of samples were expected, {len(rest)} are there")
    return None if size is None else rest


def _damaged(found: str) -> OuvrageError:
    return OuvrageError(
        "exchange/damaged",
        f"this is not an exported run that can be used: {found}",
        hint="export it again where it was metered: ouvrage run export RUN",
    )
