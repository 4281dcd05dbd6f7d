"""Closed months as Parquet: one file a seal beside the store, whose bytes a fact states by hash.

Decides the file's form: one table, amounts as exact decimal text, moments as timestamps in UTC, so that
any reader of Parquet can ask it. Written with pyarrow, an extra that only this needs; equal rows give
equal bytes with equal versions of it. A file that is there is never overwritten with other content.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.store.samples import write_whole

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.parquet")
_MOMENTS = {"from_us": "begins", "to_us": "ends"}


def parquet(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> bytes:
    """Rows as a Parquet file. ``OuvrageError`` ``archive/not-here`` without pyarrow.

    Texts stay texts, ``facts`` is a list of texts, ``from_us`` and ``to_us`` become the timestamps
    ``begins`` and ``ends``.
    """
    try:
        arrow = importlib.import_module("pyarrow")
        files = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise OuvrageError(
            "archive/not-here",
            "the library that writes Parquet is not installed",
            hint="pip install 'ouvrage[archive]'",
        ) from error
    fields, arrays = [], []
    for name in columns:
        kind = arrow.string()
        if name in _MOMENTS:
            kind = arrow.timestamp("us", tz="UTC")
        elif name == "facts":
            kind = arrow.list_(arrow.string())
        fields.append(arrow.field(_MOMENTS.get(name, name), kind))
        arrays.append(arrow.array([row[name] for row in rows], type=kind))
    made = arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))
    into = io.BytesIO()
    files.write_table(made, into, compression="zstd", version="2.6")
    return into.getvalue()


def path_of(home: Path, file: str) -> Path:
    """Where the file of a closed month is, or would be."""
    if not _NAME.fullmatch(file):
        raise OuvrageError("close/file", f"{file!r} is not the file of a closed month")
    return home / "closed" / file


def closed_sha256(home: Path, file: str) -> str | None:
    """The hash of a closed month's file, None where it is not here."""
    try:
        return hashlib.sha256(path_of(home, file).read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def keep(home: Path, file: str, data: bytes) -> str:
    """Keep the file of a closed month and give its hash; other content under its name is refused."""
    sha256 = hashlib.sha256(data).hexdigest()
    held = closed_sha256(home, file)
    if held is not None and held != sha256:
        raise OuvrageError(
            "close/differs",
            f"{path_of(home, file)} holds something else",
            hint="move it away; it belongs to no closing that is recorded here",
        )
    if held is None:
        write_whole(path_of(home, file), data)
    return sha256
