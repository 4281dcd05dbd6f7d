"""How fast facts are recorded, against bare SQLite given the same bytes and the same durability.

Both write batches of 1,000 window facts to a new file, in WAL mode with ``synchronous=FULL``, and
wait for the disk after each; they take turns, so that a slow moment of the disk meets both. *Bare*
is ``executemany`` into a table with the same columns and the same two indexes, with rows that are
ready made and no trigger. *Ours* begins with the values of a meter: it encodes, hashes, checks,
inserts, commits. A second bare table without any index is shown as the floor.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.ledger.admission import admit
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of, payload_of
from ouvrage.model.runs import RunWindow
from ouvrage.store.engine import writing
from ouvrage.store.rows import insert_rows, row_of
from ouvrage.store.schema import facts
from ouvrage.store.store import Store, move_head, open_store, wait_for_head

BATCH = 1000
ROUNDS = 15
TARGET = 0.2
RUN = "0193a0b0c0d070008123456789abcdef"
SOURCE = "0193a0b0c0d070008fedcba987654321"
COLUMNS = tuple(column.name for column in facts.columns)
INDEXES = (
    "CREATE UNIQUE INDEX identity ON facts (source, id)",
    "CREATE INDEX subject ON facts (subject)",
)


def main() -> int:
    """Measure, print, and fail below the target."""
    with tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as directory:
        place = Path(directory)
        with open_store(place / "ours.db") as store:
            ours, indexed, plain = _take_turns(
                store, _bare(place / "bare.db", INDEXES), _bare(place / "plain.db", ())
            )
            shares = _shares(store)
    ratio, floor = indexed / ours, plain / ours
    print(f"synced batches of {BATCH:,} facts, median of {ROUNDS}:")
    print(f"  ours                    {ours * 1e3:7.1f} ms   {BATCH / ours:9,.0f} facts/s")
    print(f"  bare, same indexes      {indexed * 1e3:7.1f} ms   ours is {ratio:.2f} x as fast")
    print(f"  bare, no index at all   {plain * 1e3:7.1f} ms   ours is {floor:.2f} x as fast")
    print("  where ours goes         " + ", ".join(shares))
    print(f"  target {TARGET} x the bare table with the same indexes: ", end="")
    print("met" if ratio >= TARGET else "missed")
    return 0 if ratio >= TARGET else 1


def _window(number: int) -> RunWindow:
    """A window as a meter makes it: counters of some size, nothing missing."""
    names = [field.name for field in fields(RunWindow)]
    values: dict[str, Any] = dict.fromkeys(names, number * 7919 % 10_000_000 + 1000)
    values["run"] = RUN
    return RunWindow(**values)


def _fact(number: int, window: RunWindow) -> Fact:
    return fact_of(
        window,
        source=SOURCE,
        id=f"{RUN}/window/{number}",
        subject=RUN,
        valid_from=number * 10_000_000,
        valid_to=(number + 1) * 10_000_000,
        grade=Grade.MEASURED,
    )


def _bare(path: Path, indexes: Sequence[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    types = [
        f"{column.name} {'TEXT' if str(column.type) == 'TEXT' else 'INTEGER'}"
        for column in facts.columns
    ]
    connection.execute(f"CREATE TABLE facts ({', '.join(types)}, PRIMARY KEY (seq))")
    for index in indexes:
        connection.execute(index)
    return connection


def _take_turns(
    store: Store, indexed: sqlite3.Connection, plain: sqlite3.Connection
) -> tuple[float, float, float]:
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for turn in range(ROUNDS):
        first = turn * BATCH
        windows = [_window(number) for number in range(first, first + BATCH)]
        made = [_fact(number, window) for number, window in enumerate(windows, first)]
        rows = [row_of(fact, n, turn + 1) for n, fact in enumerate(made, first + 1)]
        times[0].append(_timed(lambda w=windows, f=first: _ours(store, w, f)))
        times[1].append(_timed(lambda r=rows: _insert(indexed, r)))
        times[2].append(_timed(lambda r=rows: _insert(plain, r)))
    indexed.close()
    plain.close()
    return (
        statistics.median(times[0]),
        statistics.median(times[1]),
        statistics.median(times[2]),
    )


def _ours(store: Store, windows: Sequence[RunWindow], first: int) -> None:
    made = [_fact(number, window) for number, window in enumerate(windows, first)]
    store.append(made, now_us=1, own_source=SOURCE)


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    marks = ", ".join("?" * len(COLUMNS))
    connection.executemany(f"INSERT INTO facts VALUES ({marks})", rows)
    connection.execute("COMMIT")


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _shares(store: Store) -> list[str]:
    """What each step takes of a batch: the same calls that ``append`` makes, timed one by one."""
    rounds = [_steps(store, number) for number in range(ROUNDS, ROUNDS + 5)]
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    total = sum(medians.values())
    return [f"{name} {value / total:.0%}" for name, value in medians.items()]


def _steps(store: Store, turn: int) -> dict[str, float]:
    first = turn * BATCH
    windows = [_window(number) for number in range(first, first + BATCH)]
    encode = _timed(lambda: [payload_of(window) for window in windows])
    made: list[Fact] = []
    both = _timed(lambda: made.extend(_fact(n, w) for n, w in enumerate(windows, first)))
    check = _timed(lambda: [admit(fact) for fact in made])
    start = time.perf_counter()
    with writing(store.engine) as connection:
        before = wait_for_head(connection)
        moment = before.recorded_at + 1
        rows = [row_of(fact, seq, moment) for seq, fact in enumerate(made, before.seq + 1)]
        insert_rows(connection, rows)
        move_head(connection, before.seq + BATCH, moment)
        inserted = time.perf_counter()
    commit = time.perf_counter() - inserted
    return {
        "encode": encode,
        "hash": both - encode,
        "check": check,
        "insert": inserted - start,
        "commit": commit,
    }


if __name__ == "__main__":
    sys.exit(main())
