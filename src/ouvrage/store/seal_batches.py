"""A file of batches turned into Parquet: ``python -m ouvrage.store.seal_batches BATCHES BYTES PARQUET``.

Decides the form of the sealed file: one row a moment for each GPU, and one for its node (without a device), by node, device and moment,
so that any reader of Parquet can ask it. It is a process of its own, with the least priority: it takes seconds of a processor, which
whoever asks the server for something should not wait for.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ouvrage.store.sample_frames import Frame, frames_in
from ouvrage.store.samples import write_whole
from ouvrage.wire.samples import GPU, NODE, Column, decode

_TYPES = {
    "busy_percent": "uint8",
    "cpu_permille": "uint16",
    "memory_mib": "int32",
    "power_mw": "int32",
    "energy_mj": "int64",
    "temperature_c": "uint8",
}
_NAMES = ("t", "node", "device", *_TYPES)
_AT_ONCE = 500
_PACKED: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["node", "device", "busy_percent", "cpu_permille", "temperature_c"],
    "column_encoding": dict.fromkeys(("t", "power_mw", "energy_mj"), "DELTA_BINARY_PACKED"),
    "version": "2.6",
}


def sealed(batches: Path, limit: int) -> tuple[bytes, int]:
    """The Parquet file made from batches up to byte ``limit``, and how many rows it has."""
    arrow = importlib.import_module("pyarrow")
    frames = frames_in(batches, limit)
    tables: list[Any] = []
    while some := list(islice(frames, _AT_ONCE)):
        tables.append(_table(arrow, some))
    whole = arrow.concat_tables(tables).combine_chunks()
    ordered = whole.sort_by([(name, "ascending") for name in ("node", "device", "t")])
    into = io.BytesIO()
    importlib.import_module("pyarrow.parquet").write_table(ordered, into, **_PACKED)
    return into.getvalue(), ordered.num_rows


def _table(arrow: Any, frames: Sequence[Frame]) -> Any:
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES}
    for frame in frames:
        for times, device, values in _parts(frame):
            columns["t"] += times
            columns["node"] += [frame.node] * len(times)
            columns["device"] += [device] * len(times)
            for name in _TYPES:
                columns[name] += values.get(name) or [None] * len(times)
    types = {
        "t": arrow.timestamp("us", tz="UTC"),
        "node": arrow.string(),
        "device": arrow.string(),
        **{name: getattr(arrow, kind)() for name, kind in _TYPES.items()},
    }
    return arrow.table({name: arrow.array(columns[name], types[name]) for name in _NAMES})


def _parts(frame: Frame) -> Iterator[tuple[Sequence[int], str | None, dict[str, Column]]]:
    """The rows of a batch by what they are about: the node, then each GPU."""
    batch = decode(frame.content)
    many = len(batch.times)
    yield batch.times, None, {name: batch.node[name] for name in NODE if name in batch.node}
    for number, device in enumerate(batch.devices):
        place = slice(number * many, (number + 1) * many)
        yield (
            batch.times,
            device,
            {name: batch.gpu[name][place] for name in GPU if name in batch.gpu},
        )


def main(arguments: Sequence[str]) -> int:
    """Write the sealed file, and say what it is."""
    os.nice(19)
    batches, limit, target = arguments
    data, rows = sealed(Path(batches), int(limit))
    write_whole(Path(target), data)
    told = {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data), "samples": rows}
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
