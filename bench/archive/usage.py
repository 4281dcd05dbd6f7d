# pyright: basic, reportMissingImports=false
"""An archive of usage samples on Arrow and Parquet: appended in batches, sealed by the day, added up.

Decides how a batch is on disk before it is said to be, how a torn tail is told from rows, in which order
and encoding a day is sealed, and which partial sums are kept. No storage engine: an Arrow stream, a
Parquet file, an Arrow file with its sums. Every sum is of integers, and money is rounded once.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STEP_S = 10
"""Seconds that a sample stands for."""
_COLUMNS = {
    "t_us": pa.int64(),
    "gpu": pa.int32(),
    "job": pa.int32(),
    "tenant": pa.int16(),
    "util": pa.uint8(),
    "power_mw": pa.int32(),
    "energy_mj": pa.int64(),
    "memory_mib": pa.int32(),
}
SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _COLUMNS.items()])
ORDER = ("tenant", "gpu", "t_us")
HOT = ("util", "power_mw")
"""What the question of every day reads: kept as it lies in memory, so that reading it is mapping it."""
COLD = pa.schema([field for field in SCHEMA if field.name not in HOT])
PACKED = {
    "compression": "zstd",
    "use_dictionary": ["gpu", "job", "tenant", "memory_mib"],
    "column_encoding": {"t_us": "DELTA_BINARY_PACKED", "energy_mj": "DELTA_BINARY_PACKED"},
}
ROW_GROUP = 131_072
DAY_US, HOUR_US, DAY_H = 86_400_000_000, 3_600_000_000, 24
MJ_IN_KWH = 3_600_000_000
_MJ_IN_KWS = 1_000_000
_DIGEST = b"sha256"


class Log:
    """One Arrow stream that batches are appended to; each is on disk when ``append`` returns.

    A process that begins anew begins a new file: what an earlier one left is never written to again,
    so a torn tail can only be the last batch of a file, one that was never acknowledged.
    """

    def __init__(self, path: Path) -> None:
        self._file = io.BufferedWriter(io.FileIO(path, "xb"), 1 << 20)
        self._writer = pa.ipc.new_stream(self._file, SCHEMA)
        self._digest = b""

    def append(self, columns: Mapping[str, object]) -> None:
        """Keep a batch, columns of integers by name, and wait for the disk.

        The hash of all up to and with it stands beside it. Raises ``pyarrow.ArrowInvalid`` for what
        does not fit its column, with nothing written.
        """
        self.append_ready(pa.RecordBatch.from_pydict(columns, schema=SCHEMA))

    def append_ready(self, batch: pa.RecordBatch) -> None:
        """Keep a batch that is in Arrow's form already."""
        self._digest = chained(self._digest, batch)
        self._writer.write_batch(batch, custom_metadata={_DIGEST: self._digest})
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Write the mark that says that nothing follows."""
        self._writer.close()
        self._file.close()


def chained(before: bytes, batch: pa.RecordBatch) -> bytes:
    """SHA-256 over the digest before and the values of a batch."""
    found = hashlib.sha256(before)
    for column in batch.columns:
        found.update(np.ascontiguousarray(column.to_numpy()).data)
    return found.hexdigest().encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The whole ``batches`` of a log, and how many bytes after them are none (0: it is whole)."""

    batches: list[pa.RecordBatch]
    left: int


def read_log(path: Path) -> Read:
    """What was kept in a log, up to the first batch that is torn or not what its hash says."""
    found: list[pa.RecordBatch] = []
    digest, good = b"", 0
    with pa.memory_map(str(path)) as source:
        try:
            reader = pa.ipc.open_stream(source)
            if reader.schema != SCHEMA:
                raise pa.ArrowInvalid("other columns")
            good = source.tell()
            while True:
                entry = reader.read_next_batch_with_custom_metadata()
                digest = chained(digest, entry.batch)
                if entry.custom_metadata is None or entry.custom_metadata[_DIGEST] != digest:
                    break
                found.append(entry.batch)
                good = source.tell()
        except StopIteration:
            good = source.tell()
        except (pa.ArrowException, ValueError, OSError, KeyError, MemoryError):
            pass  # torn here: what stands before was read
        return Read(batches=found, left=source.size() - good)


def seal(rows: pa.Table, place: Path) -> list[Path]:
    """For each day a Parquet file, an Arrow file of the ``HOT`` columns in its order, and one of sums.

    Rows of a tenant stand together, so the statistics of row groups lead to them.
    """
    days = rows["t_us"].to_numpy() // DAY_US
    made: list[Path] = []
    for day in np.unique(days):
        of_day = rows.filter(pa.array(days == day))
        columns = [of_day[name].to_numpy() for name in reversed(ORDER)]
        ordered = of_day.take(pa.array(np.lexsort(columns)))
        path = place / f"{day}.parquet"
        cold = ordered.select(COLD.names)
        pq.write_table(cold, path, row_group_size=ROW_GROUP, **PACKED)
        _write(ordered.select(HOT), place / f"{day}.hot.arrow")
        _write(_by_hour(ordered), place / f"{day}.sums.arrow")
        made.append(path)
    return made


def sealed_in(place: Path) -> list[Path]:
    """The files of samples, in order of their days."""
    return sorted(place.glob("*.parquet"))


def _write(table: pa.Table, path: Path) -> None:
    """A table as it lies in memory: reading it back is mapping it."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def _mapped(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(0)


def table_of(path: Path) -> pa.Table:
    """A sealed day whole, its columns in their own order."""
    rows, hot = pq.read_table(path), _mapped(path.with_suffix(".hot.arrow"))
    for name in HOT:
        rows = rows.append_column(SCHEMA.field(name), hot[name])
    return rows.select(SCHEMA.names)


def _starts(values: np.ndarray) -> np.ndarray:
    """Where runs of one value begin."""
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def _by_hour(ordered: pa.Table) -> pa.Table:
    """For each tenant and hour, by tenant: samples, the sum of utilisation (%), of power (mW)."""
    hour = ordered["t_us"].to_numpy() // HOUR_US
    first = int(hour.min())
    width = int(hour.max()) - first + 1
    cell = ordered["tenant"].to_numpy().astype(np.int64) * width + (hour - first)
    # Rows of a GPU stand together, so an hour of it is one run.
    starts = _starts(cell)
    found, where = np.unique(cell[starts], return_inverse=True)
    of_runs = {
        "samples": np.diff(starts, append=len(cell)),
        "util": np.add.reduceat(ordered["util"].to_numpy(), starts, dtype=np.int64),
        "power_mw": np.add.reduceat(ordered["power_mw"].to_numpy(), starts, dtype=np.int64),
    }
    sums = {"tenant": (found // width).astype(np.int16), "hour": found % width + first}
    for name, values in of_runs.items():
        sums[name] = np.zeros(len(found), np.int64)
        np.add.at(sums[name], where, values)
    return pa.table(sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantDay:
    """``samples`` of a tenant in a day, the sum of their utilisation in percent, of power in mW."""

    samples: int
    util: int
    power_mw: int


def tenant_days(place: Path) -> dict[tuple[int, int], TenantDay]:
    """Every tenant's every day, from the sealed samples themselves."""
    found: dict[tuple[int, int], TenantDay] = {}
    for path in sealed_in(place):
        file = pq.ParquetFile(path, memory_map=True, pre_buffer=False)
        tenant = file.read(columns=["tenant"], use_threads=False)["tenant"].to_numpy()
        util, power = (each.to_numpy() for each in _mapped(path.with_suffix(".hot.arrow")).columns)
        starts = _starts(tenant).tolist()
        # One run after the other: all at once would be copied into 64 bits first.
        for start, stop in zip(starts, [*starts[1:], len(tenant)], strict=True):
            found[int(tenant[start]), int(path.stem)] = TenantDay(
                samples=stop - start,
                util=int(util[start:stop].sum(dtype=np.int64)),
                power_mw=int(power[start:stop].sum(dtype=np.int64)),
            )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Nano-units for a kilowatt-hour and for a GPU-hour in each hour from ``first_hour`` (since 1970)."""

    first_hour: int
    kwh: np.ndarray
    gpu: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A tenant's day: GPU-seconds, mean utilisation in percent, energy, and its price in nano-units."""

    gpu_seconds: int
    utilisation: float
    energy_mj: int
    nano: int


def lines(place: Path, prices: Prices) -> dict[tuple[int, int], Line]:
    """Every tenant's every day, priced by the hour, from the sums alone."""
    found: dict[tuple[int, int], Line] = {}
    for path in sorted(place.glob("*.sums.arrow")):
        day = int(path.name.partition(".")[0])
        tenant, hour, samples, util, power = (each.to_numpy() for each in _mapped(path).columns)
        starts = _starts(tenant)
        when = hour - prices.first_hour
        energy = _weighed(power, prices.kwh[when], starts)
        time = _weighed(samples, prices.gpu[when], starts)
        sums = (np.add.reduceat(each, starts).tolist() for each in (samples, util, power))
        for key, n, u, p, e, t in zip(tenant[starts].tolist(), *sums, energy, time, strict=True):
            found[key, day] = Line(
                gpu_seconds=n * STEP_S,
                utilisation=u / n,
                energy_mj=p * STEP_S,
                nano=rounded((e + t * _MJ_IN_KWS) * STEP_S),
            )
    return found


def _weighed(values: np.ndarray, weights: np.ndarray, starts: np.ndarray) -> list[int]:
    """The sum of ``values × weights`` from each start to the next, exact, in two halves of 64 bits.

    A day has at most 25 hours, so a product of up to 58 bits may be added up that often.
    """
    if values.max() >> 40 or weights.max() >> 37:
        raise OverflowError("more than 2^40 in an hour, or a price of more than 2^37 nano-units")
    high = np.add.reduceat((values >> 20) * weights, starts).tolist()
    low = np.add.reduceat((values & 0xFFFFF) * weights, starts).tolist()
    return [(h << 20) + rest for h, rest in zip(high, low, strict=True)]


def rounded(amount: int) -> int:
    """Nano-units from 3,600,000,000ths of one (mJ × nano per kWh), half to even."""
    whole, rest = divmod(amount, MJ_IN_KWH)
    return whole + (2 * rest > MJ_IN_KWH or (2 * rest == MJ_IN_KWH and whole % 2))
