"""Telemetry of a node on its way to the server: a batch of samples in columns of integer differences, as gzip over JSON.

Decides the batch's form and every limit that keeps a hostile one small: bytes, unpacked bytes, moments, devices, the greatest value of
each column. A batch names its source and its number there, by which it counts once. What was not read is missing, never zero.

A column holds all moments of the first device, then all of the second; each number is the difference to the one before it, so
that steady figures and rising counters take a byte or two once packed. The node's own columns hold one number a moment.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from ouvrage.base.errors import OuvrageError

VERSION = 1
LARGEST = 512 << 10
"""Bytes of a batch as it is sent."""
UNPACKED = 4 << 20
MOST_TIMES, MOST_DEVICES, MOST_ROWS = 10_000, 64, 60_000

GPU: dict[str, int] = {
    "busy_percent": 100,
    "memory_mib": 1 << 24,
    "power_mw": 20_000_000,
    "energy_mj": 1 << 60,
    "temperature_c": 250,
}
"""What is told of a GPU, and the greatest value each may have; ``energy_mj`` is the card's counter."""
NODE: dict[str, int] = {"cpu_permille": 1000, "memory_mib": 1 << 30}
"""What is told of a node: how much of all its cores was busy since the moment before, and memory in use."""

_LATEST = 1 << 53
_SOURCE = re.compile(r"[0-9a-f]{32}")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,79}")
_FIELDS = frozenset(("v", "source", "sequence", "times", "devices", "gpu", "node", "missing"))

Column = Sequence["int | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples of a node: number ``sequence`` of a ``source`` that counts from 1 without gaps.

    ``times`` are moments in µs, rising. ``gpu`` holds, by column, ``len(devices) × len(times)`` values, device by device; ``node``
    one value a moment. None is what was not read.
    """

    source: str
    sequence: int
    times: tuple[int, ...]
    devices: tuple[str, ...]
    gpu: Mapping[str, Column]
    node: Mapping[str, Column]

    @property
    def samples(self) -> int:
        """Rows: one a moment for each device, and one for the node."""
        return len(self.times) * (len(self.devices) + 1)


def encode(batch: Batch) -> bytes:
    """A batch as it is sent; equal batches give equal bytes."""
    missing: dict[str, list[int]] = {}
    said = {
        "v": VERSION,
        "source": batch.source,
        "sequence": batch.sequence,
        "times": _differences(batch.times),
        "devices": list(batch.devices),
        "gpu": {
            name: _packed(f"gpu.{name}", values, missing) for name, values in batch.gpu.items()
        },
        "node": {
            name: _packed(f"node.{name}", values, missing) for name, values in batch.node.items()
        },
        "missing": missing,
    }
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(json.dumps(said, separators=(",", ":")).encode("ascii")) + packer.flush()


def decode(data: bytes) -> Batch:
    """A sent batch. Raises ``OuvrageError`` ``samples/...`` for anything that ``encode`` does not make."""
    try:
        return _read(json.loads(_unpacked(data)))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        words = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise OuvrageError(
            "samples/unreadable",
            f"this is no batch of samples: {words[:200]}",
            hint="an agent no newer than the server sends what it reads",
        ) from error


def _unpacked(data: bytes) -> bytes:
    if len(data) > LARGEST:
        raise ValueError(f"more than {LARGEST} bytes")
    unpacker = zlib.decompressobj(31)
    try:
        text = unpacker.decompress(data, UNPACKED)
    except zlib.error as error:
        raise ValueError("not gzip, or damaged") from error
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {UNPACKED} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("its end is missing, or something follows it")
    return text


def _read(said: Any) -> Batch:
    if not isinstance(said, dict) or said.keys() != _FIELDS or said["v"] != VERSION:
        raise ValueError(f"not the fields of version {VERSION}")
    source, sequence, devices = said["source"], said["sequence"], said["devices"]
    if not isinstance(source, str) or not _SOURCE.fullmatch(source):
        raise ValueError("no proper source")
    if type(sequence) is not int or not 0 < sequence < _LATEST:
        raise ValueError("no proper sequence")
    if not isinstance(devices, list) or len(set(devices)) != len(devices):
        raise ValueError("devices are not a list of different names")
    if len(devices) > MOST_DEVICES or not all(map(_named, devices)):
        raise ValueError("devices are not names of GPUs")
    times = _times(said["times"])
    if len(times) * (len(devices) + 1) > MOST_ROWS:
        raise ValueError(f"more than {MOST_ROWS} samples")
    missing = said["missing"]
    if not isinstance(missing, dict):
        raise ValueError("missing is no table")
    used: set[str] = set()
    gpu = _columns("gpu", said["gpu"], GPU, len(times) * len(devices), missing, used)
    node = _columns("node", said["node"], NODE, len(times), missing, used)
    if missing.keys() - used:
        raise ValueError("what is missing stands in no column")
    return Batch(
        source=source, sequence=sequence, times=times, devices=tuple(devices), gpu=gpu, node=node
    )


def _named(device: object) -> bool:
    return isinstance(device, str) and _DEVICE.fullmatch(device) is not None


def _times(said: Any) -> tuple[int, ...]:
    times = _summed(said, MOST_TIMES)
    if not times or times[0] < 0 or times[-1] >= _LATEST or (said[1:] and min(said[1:]) < 1):
        raise ValueError("times are no moments that rise")
    return tuple(times)


def _columns(
    kind: str,
    said: Any,
    known: Mapping[str, int],
    rows: int,
    missing: Mapping[str, Any],
    used: set[str],
) -> dict[str, Column]:
    if not isinstance(said, dict) or said.keys() - known.keys():
        raise ValueError(f"{kind} is no table of known columns")
    found: dict[str, Column] = {}
    for name, column in said.items():
        values = _summed(column, rows)
        if len(values) != rows:
            raise ValueError(f"{kind}.{name} holds {len(values)} values for {rows} rows")
        if rows and (min(values) < 0 or max(values) > known[name]):
            raise ValueError(f"{kind}.{name} holds a value that cannot be")
        key = f"{kind}.{name}"
        if key in missing:
            used.add(key)
            found[name] = _with_gaps(values, missing[key])
        else:
            found[name] = values
    return found


def _with_gaps(values: list[int], said: Any) -> list[int | None]:
    """The values, None where one was not read; the places are told as differences too."""
    places = _summed(said, len(values))
    if not places or places[0] < 0 or places[-1] >= len(values) or min([1, *said[1:]]) < 1:
        raise ValueError("what is missing stands in no row")
    found: list[int | None] = [*values]
    for place in places:
        found[place] = None
    return found


def _summed(said: Any, most: int) -> list[int]:
    """The sums of a list of differences, no longer than ``most``.

    A text, a list or null in it cannot be added to a number, and a fraction leaves one at the end; so first and last are looked at.
    """
    if not isinstance(said, list) or len(said) > most:
        raise ValueError("not a list in its bounds")
    sums = list(accumulate(said))
    if sums and not (type(sums[0]) is int and type(sums[-1]) is int):
        raise ValueError("not whole numbers")
    return sums


def _packed(key: str, values: Column, missing: dict[str, list[int]]) -> list[int]:
    """Differences of a column; what was not read repeats the value before it and is noted as missing."""
    places = [place for place, value in enumerate(values) if value is None]
    if places:
        missing[key] = _differences(places)
    known: list[int] = []
    last = 0
    for value in values:
        last = last if value is None else value
        known.append(last)
    return _differences(known)


def _differences(values: Sequence[int]) -> list[int]:
    return [*values[:1], *(later - earlier for earlier, later in pairwise(values))]
