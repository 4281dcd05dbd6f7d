# pyright: basic, reportMissingImports=false
"""The measurement itself, in the environment that has DuckDB and Arrow; its figures go out as JSON.

Decides what is timed and how often. Everything that is compared takes turns, so that a busy machine is
busy for all; each time is taken by the clock and by the processor (user and system, all threads).

    python -m bench.archive.inside DIRECTORY SAMPLES...
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.archive import usage
from bench.archive.made import GPUS, START_US, samples
from bench.archive.rivals import Duck, Lite

BATCH = 1_000
TURN, TURNS = 40, 11
RAW_TURNS, SUM_TURNS = 9, 700
KILLS, CUTS = 6, 200
SQLITE_MOST = 1_000_000
"""Above so many rows SQLite is not asked: it is an order of magnitude behind well before."""
Took = dict[str, list[float]]


def main() -> None:
    """Every part; one JSON object on the standard output."""
    place = Path(sys.argv[1])
    if sys.argv[2:] == ["append"]:
        _append_for_ever(place)
    sizes = [int(word) for word in sys.argv[2:]]
    found: dict[str, Any] = {"growth": [_grown(place / str(size), size) for size in sizes]}
    found["ingest"] = _ingest(place)
    found["survived"] = _killed(place)
    found["cut"] = _cut(place)
    print(json.dumps(found))


def turns(work: dict[str, Callable[[], object]], count: int) -> dict[str, Took]:
    """Each work so often, in turn: its milliseconds by the clock and of the processor, by turn."""
    took: dict[str, Took] = {name: {"wall": [], "core": []} for name in work}
    names = list(work)
    for number in range(count):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            wall, core = time.perf_counter(), time.process_time()
            work[name]()
            took[name]["core"].append((time.process_time() - core) * 1e3)
            took[name]["wall"].append((time.perf_counter() - wall) * 1e3)
    return took


def _prices() -> usage.Prices:
    """A price of electricity that changes every hour, and one of GPUs that changes at noon."""
    hours = 72
    return usage.Prices(
        first_hour=START_US // usage.HOUR_US,
        kwh=np.random.default_rng(11).integers(100_000_000, 420_000_000, hours),
        gpu=np.where(np.arange(hours) % 24 < 12, 310_000_001, 289_999_999).astype(np.int64),
    )


def _grown(place: Path, size: int) -> dict[str, Any]:
    """What one size takes: bytes, sealing, the question from the rows and from the sums."""
    place.mkdir()
    rows, prices = samples(size // GPUS), _prices()
    sealing = turns({"seal": lambda: usage.seal(rows, place)}, 1)["seal"]
    duck = Duck(place / "duck.db")
    duck.load(rows)
    asked: dict[str, Callable[[], object]] = {
        "archive": lambda: usage.tenant_days(place),
        "duckdb": duck.tenant_days,
    }
    if size <= SQLITE_MOST:
        lite = Lite(place / "lite.db")
        lite.append(list(_tuples(rows)))
        asked["sqlite"] = lite.tenant_days
    plain = place / "plain"
    pq.write_table(rows, plain, compression="zstd")
    found = {
        "samples": size,
        "bytes": {
            "archive": _size(place, "*.parquet", "*.hot.arrow") / size,
            "sums": _size(place, "*.sums.arrow") / size,
            "duckdb": (place / "duck.db").stat().st_size / size,
            "parquet": plain.stat().st_size / size,
        },
        "seal": sealing,
        "raw": turns(asked, RAW_TURNS),
        "sums": turns({"all": lambda: usage.lines(place, prices)}, SUM_TURNS)["all"],
        "wrong": _wrong(place, duck, prices),
    }
    duck.close()
    return found


def _size(place: Path, *patterns: str) -> int:
    return sum(path.stat().st_size for pattern in patterns for path in place.glob(pattern))


def _wrong(place: Path, duck: Duck, prices: usage.Prices) -> list[str]:
    """What of the archive differs from what DuckDB makes of every sample; nothing, if it is right."""
    raw, sums, wrong = usage.tenant_days(place), usage.lines(place, prices), []
    if {
        key: (day.samples, day.util, day.power_mw) for key, day in raw.items()
    } != duck.tenant_days():
        wrong.append("tenant × day from the rows")
    if {key: line.nano for key, line in sums.items()} != duck.amounts(prices):
        wrong.append("nano-units from the sums")
    energy = {key: day.power_mw * usage.STEP_S for key, day in raw.items()}
    if {key: line.energy_mj for key, line in sums.items()} != energy:
        wrong.append("energy from the sums")
    sealed = pa.concat_tables([usage.table_of(path) for path in usage.sealed_in(place)])
    if duck.mark() != duck.mark(sealed):
        wrong.append("the sealed rows")
    return wrong


def _tuples(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[int, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _ingest(place: Path) -> dict[str, Took]:
    """Milliseconds for ``TURN`` synced batches of each, by turn."""
    made = samples(TURN * BATCH // GPUS + 1).combine_chunks().to_batches()[0]
    ready = [made.slice(start * BATCH, BATCH) for start in range(TURN)]
    lists = [batch.to_pydict() for batch in ready]
    tuples = [list(_tuples(batch)) for batch in ready]
    log, other = usage.Log(place / "log"), usage.Log(place / "ready")
    duck, lite = Duck(place / "ingest.db").appender(), Lite(place / "ingest.lite")
    bare = os.open(place / "bare", os.O_WRONLY | os.O_CREAT)
    written = memoryview(bytes(36 * BATCH))

    def synced(data: memoryview) -> None:
        os.write(bare, data)
        os.fdatasync(bare)

    def all_of(append: Callable[[Any], object], given: list[Any]) -> Callable[[], object]:
        return lambda: [append(each) for each in given]

    took = turns(
        {
            "archive, from lists of integers": all_of(log.append, lists),
            "archive, from Arrow": all_of(other.append_ready, ready),
            "sqlite, from tuples": all_of(lite.append, tuples),
            "duckdb, from Arrow": all_of(duck, ready),
            "the same bytes, written and synced": all_of(synced, [written] * TURN),
        },
        TURNS,
    )
    for each in (log, other):
        each.close()
    read = usage.read_log(place / "log")
    assert (len(read.batches), read.left) == (TURN * TURNS, 0)
    return took


def _append_for_ever(place: Path) -> None:
    """Append the batches that ``_batch`` makes, and say the number of each once it is kept."""
    log, number = usage.Log(place), 0
    while True:
        log.append_ready(_batch(number))
        number += 1
        os.write(1, b"%d\n" % number)


def _batch(number: int) -> pa.RecordBatch:
    rng = np.random.default_rng(number)
    return pa.RecordBatch.from_arrays(
        [pa.array(rng.integers(0, 127, BATCH), field.type) for field in usage.SCHEMA],
        schema=usage.SCHEMA,
    )


def _killed(place: Path) -> dict[str, int]:
    """Kill a writer at once, again and again: what it said was kept is there, and nothing else."""
    kept = acknowledged = 0
    for kill in range(KILLS):
        path = place / f"killed-{kill}"
        words = [sys.executable, "-m", "bench.archive.inside", str(path), "append"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(20 + 7 * kill):
                writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
            said = 20 + 7 * kill + len(writer.stdout.read().splitlines())
        read = usage.read_log(path)
        assert said <= len(read.batches) <= said + 1, (said, len(read.batches))
        assert all(each.equals(_batch(number)) for number, each in enumerate(read.batches))
        kept, acknowledged = kept + len(read.batches), acknowledged + said
    return {"kills": KILLS, "acknowledged": acknowledged, "kept": kept}


def _cut(place: Path) -> dict[str, int]:
    """Cut a log anywhere, or turn one bit: a whole prefix is read, and the rest is told."""
    whole = (place / "killed-0").read_bytes()
    rng, damaged = np.random.default_rng(5), place / "damaged"
    told = 0
    for number in range(CUTS):
        where = int(rng.integers(1, len(whole)))
        data = bytearray(whole[:where] if number % 2 else whole)
        if not number % 2:
            data[where] ^= 1 << int(rng.integers(0, 8))
        damaged.write_bytes(data)
        read = usage.read_log(damaged)
        assert all(each.equals(_batch(index)) for index, each in enumerate(read.batches)), where
        told += read.left > 0
    return {"damaged": CUTS, "told": told}


if __name__ == "__main__":
    main()
