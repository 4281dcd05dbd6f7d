"""A bill in FOCUS brought in and added up, beside OpenChargeback: the same totals, and the time.

OpenChargeback is on no package index: its sources are taken from the directory that the environment
variable ``OUVRAGE_OPENCHARGEBACK`` names (the one that holds ``src/openchargeback``), and what they import is
installed beside. Its own sample is brought in by both, as it is and grown to ten thousand rows; then rows on which
the two differ, one sort at a time, each with the reason. Its database is asked, not only its words.

    OUVRAGE_OPENCHARGEBACK=DIR python -m bench.chargeback
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from bench._peers import peer
from bench.overhead import Bench

PACKAGES = (
    "typer==0.29.2", "pandas==2.3.3", "pydantic==2.14.4", "pyyaml==6.0.4", "rich==13.9.4", "sqlalchemy==2.1.9",
)  # fmt: skip
PLACE = "OUVRAGE_OPENCHARGEBACK"
SAMPLES = ("tests/fixtures/sample-focus.csv", "sample/sample-focus.csv")
TIMES, GROWN, ROUNDS = 10.0, 1_000, 5
Rows = list[dict[str, str]]


class Took(NamedTuple):
    """Seconds of a command from start to end: by the clock, and of a core."""

    clock: float
    core: float


def main() -> int:
    """Compare and time; 1 where a bar is missed or a difference is not the one expected."""
    source, place = os.environ.get(PLACE), None
    if source is not None:
        place = peer(*PACKAGES)
    if source is None or place is None:
        why = (
            f"{PLACE} names no directory" if source is None else "its packages cannot be installed"
        )
        print(f"not compared with OpenChargeback: {why}; it is on no package index")
        return 0
    sample = _read(next(Path(source) / name for name in SAMPLES if (Path(source) / name).is_file()))
    with tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as directory:
        compared = _Compared(Path(directory), Path(source), place)
        wrong = compared.totals(sample)
        took = compared.timed(_grown(sample))
    bench = Bench("")
    print(f"  {len(sample) * GROWN:,} rows, from cold, {ROUNDS} rounds in turn:")
    for ours, theirs in took:
        print(
            f"    {ours.clock:.2f} s by the clock, {ours.core:.2f} of a core; OpenChargeback {theirs.clock:.2f} "
            f"and {theirs.core:.2f}: {theirs.clock / ours.clock:.1f} and {theirs.core / ours.core:.1f} times"
        )
    for name, ratio in (
        ("by the clock", [theirs.clock / ours.clock for ours, theirs in took]),
        ("of a core", [theirs.core / ours.core for ours, theirs in took]),
    ):
        words = f"a bill brought in, of OpenChargeback's speed, {name}"
        bench.least(words, statistics.median(ratio), TIMES)
    return 1 if bench.missed or wrong else 0


class _Compared:
    """Both programs, each with a home of its own for every file."""

    def __init__(self, directory: Path, source: Path, place: Path) -> None:
        self._directory, self._source, self._python = directory, source, place / "python"
        self._files = 0

    def totals(self, sample: Rows) -> int:
        """Say what both make of each case; how many are not as explained."""
        twice = {**sample[0], "ServiceName": "Amazon EBS", "BilledCost": "1.75"}
        nobody = {**sample[0], "ResourceId": "i-nobody", "Tags": "{}", "BilledCost": "3.10"}
        tenths: Rows = [
            {**sample[0], "ResourceId": f"i-{n}", "BilledCost": "0.10"} for n in range(3)
        ]
        cases: tuple[tuple[str, Rows, str], ...] = (
            ("its sample", sample, ""),
            ("two charges of a resource on a day", [*sample, twice],
             "it keeps one row for a resource and day: the later takes the place of the earlier"),
            ("a charge that nobody is named for", [*sample, nobody],
             "it leaves out a row without the tag pi_email, as an error; we keep what was billed"),
            ("ten cents three times", tenths, "it adds up in binary floating point; the amount itself is 0.30"),
        )  # fmt: skip
        wrong = 0
        for name, rows, why in cases:
            exact = sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0))
            ours, theirs = self._ours(rows)[0], self._theirs(rows)[0]
            same = Decimal(repr(theirs)) == exact
            near = abs(Decimal(theirs) - exact) < Decimal("0.005")
            wrong += ours != exact or not (same or (near and not why) or bool(why))
            found = (
                "the same" if same else "the same to the cent" if near else f"it has {theirs:.2f}"
            )
            print(f"  {name}: {ours} in {len(rows):,} rows; {found}{f' ({why})' if why else ''}")
        return wrong

    def timed(self, rows: Rows) -> list[tuple[Took, Took]]:
        """Seconds by the clock of both, in turn; the totals are the same to the cent."""
        took: list[tuple[Took, Took]] = []
        for _ in range(ROUNDS):
            (ours, our_s), (theirs, their_s) = self._ours(rows), self._theirs(rows)
            assert abs(Decimal(theirs) - ours) < Decimal("0.005")
            took.append((our_s, their_s))
        return took

    def _ours(self, rows: Rows) -> tuple[Decimal, Took]:
        place, file = self._written(rows)
        words = [
            sys.executable,
            "-m",
            "ouvrage",
            "focus",
            "import",
            str(file),
            "--currency",
            "USD",
            "--json",
        ]
        said, took = _run(words, place, Bench(str(place)).environment)
        return Decimal(json.loads(said)["sums"]["BilledCost"]), took

    def _theirs(self, rows: Rows) -> tuple[float, Took]:
        place, file = self._written(rows)
        (place / "instance").mkdir()
        begin = "from openchargeback.cli import app; app()"
        words = [str(self._python), "-c", begin, "ingest", str(file), "--source", "aws"]
        _, took = _run(words, place, {**os.environ, "PYTHONPATH": str(self._source / "src")})
        kept = sqlite3.connect(place / "instance" / "billing.db")
        (found,) = kept.execute("SELECT sum(billed_cost) FROM charges").fetchone()
        kept.close()
        return float(found), took

    def _written(self, rows: Rows) -> tuple[Path, Path]:
        self._files += 1
        place = self._directory / str(self._files)
        place.mkdir()
        with (place / "bill.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return place, place / "bill.csv"


def _run(words: Sequence[str], place: Path, environment: dict[str, str]) -> tuple[str, Took]:
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run(
        words, cwd=place, env=environment, check=True, capture_output=True, text=True
    )
    after, clock = os.times(), time.perf_counter() - begun
    return done.stdout, Took(clock, sum(after[2:4]) - sum(before[2:4]))


def _read(file: Path) -> Rows:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def _grown(sample: Rows) -> Rows:
    """The sample again and again, each time about other resources and with other cents."""
    return [
        {**row, "ResourceId": f"{row['ResourceId']}-{number}",
         "BilledCost": str(Decimal(row["BilledCost"]) + Decimal(number % 97) / 100)}
        for number in range(GROWN)
        for row in sample
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
