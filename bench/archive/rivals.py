# pyright: basic, reportMissingImports=false
"""DuckDB and SQLite with the same samples, each in the form that it takes best.

Decides how they are asked: DuckDB is given Arrow and two threads, SQLite tuples and WAL with
``synchronous=FULL``; both commit each batch and wait for the disk. DuckDB is also the one who adds
everything up again, sample by sample in 128 bits, to see whether the archive is right.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.archive.usage import DAY_US, HOUR_US, SCHEMA, STEP_S, Prices, rounded

DAYS = f"""
SELECT tenant, t_us // {DAY_US} AS day, count(*) AS samples, sum(util) AS util, sum(power_mw) AS power
FROM samples GROUP BY ALL
"""
LINES = f"""
SELECT tenant, t_us // {DAY_US} AS day,
       sum(power_mw::HUGEINT * {STEP_S} * kwh + {STEP_S * 1_000_000}::HUGEINT * gpu_hour)::VARCHAR AS amount
FROM samples JOIN prices ON prices.hour = t_us // {HOUR_US} GROUP BY ALL
"""


class Duck:
    """DuckDB on disk, two threads."""

    def __init__(self, path: Path) -> None:
        self._at = duckdb.connect(str(path))
        self._at.execute("SET threads = 2")

    def load(self, rows: pa.Table) -> None:
        """All rows at once, checkpointed."""
        self._at.register("given", rows)
        self._at.execute("CREATE TABLE samples AS SELECT * FROM given")
        self._at.unregister("given")
        self._at.execute("CHECKPOINT")

    def appender(self) -> Callable[[pa.RecordBatch], object]:
        """Takes batches: an insert from Arrow, committed."""
        self._at.register("given", SCHEMA.empty_table())
        self._at.execute("CREATE TABLE samples AS SELECT * FROM given")

        def append(batch: pa.RecordBatch) -> None:
            self._at.register("batch", batch)
            self._at.execute("INSERT INTO samples SELECT * FROM batch")

        return append

    def tenant_days(self) -> dict[tuple[int, int], tuple[int, int, int]]:
        """Samples, utilisation and power of every tenant's every day, from the rows."""
        return {(row[0], row[1]): row[2:] for row in self._at.execute(DAYS).fetchall()}

    def amounts(self, prices: Prices) -> dict[tuple[int, int], int]:
        """Nano-units of every tenant's every day, from each row and the price of its hour."""
        hours = range(prices.first_hour, prices.first_hour + len(prices.kwh))
        table = pa.table({"hour": list(hours), "kwh": prices.kwh, "gpu_hour": prices.gpu})
        self._at.register("prices", table)
        rows = self._at.execute(LINES).fetchall()
        return {(tenant, day): rounded(int(amount)) for tenant, day, amount in rows}

    def mark(self, rows: pa.Table | None = None) -> tuple[int, int]:
        """How many rows (its own without any), and a sum over all their values that no order changes."""
        source = "samples" if rows is None else "other"
        if rows is not None:
            self._at.register("other", rows)
        columns = ", ".join(SCHEMA.names)
        found = self._at.execute(
            f"SELECT count(*), sum(hash({columns})::HUGEINT)::VARCHAR FROM {source}"
        ).fetchall()
        return int(found[0][0]), int(found[0][1])

    def close(self) -> None:
        """Let go of the file."""
        self._at.close()


class Lite:
    """SQLite on disk; each batch is committed and waited for."""

    def __init__(self, path: Path) -> None:
        self._at = sqlite3.connect(path, isolation_level=None)
        self._at.execute("PRAGMA journal_mode = WAL")
        self._at.execute("PRAGMA synchronous = FULL")
        self._at.execute(f"CREATE TABLE samples ({', '.join(SCHEMA.names)})")
        self._insert = f"INSERT INTO samples VALUES ({', '.join('?' * len(SCHEMA.names))})"

    def append(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Rows as tuples, in one transaction."""
        self._at.execute("BEGIN")
        self._at.executemany(self._insert, rows)
        self._at.execute("COMMIT")

    def tenant_days(self) -> int:
        """How many tenants' days there are, each with its sums."""
        return len(self._at.execute(DAYS.replace("//", "/").replace("ALL", "1, 2")).fetchall())

    def close(self) -> None:
        """Let go of the file."""
        self._at.close()
