"""Samples of GPUs by the ten million: kept, packed, asked and added up, beside DuckDB and SQLite.

A thousand GPUs, a sample every ten seconds, eight columns. Ours is an Arrow stream with a chain of
hashes, Parquet by the day, and sums of integers by tenant and hour (``usage``); all of it is in an
environment of its own, with the peers. The question is tenant × day: GPU-seconds, mean utilisation,
energy. Each bar is held twice: by processor time, and by the clock. What the clock misses counts where the
machine was free when this began; where other work had its cores, that is said and nothing is made of it.

    python -m bench.archive [--most 10000000] [--draw]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench._peers import peer
from bench.archive.figure import drawn
from bench.overhead import ROOT, Bench

PACKAGES = ("duckdb==2.0.1", "pyarrow==26.0.1", "numpy==2.4.6")
SHARE, P99_MS, BYTES, INGEST = 0.5, 5.0, 10.0, 1.5
PICTURE = ROOT / "docs" / "images" / "archive.svg"
BATCH, TURN = 1_000, 40
LOAD, FREE = os.getloadavg()[0], 0.5
"""How many programs wanted a core over the minute before, and at how many the machine counts as free."""
PEERS = ("sqlite, from tuples", "duckdb, from Arrow")


def main() -> int:
    """Everything; 1 where a bar is missed or a sum differs."""
    parser = argparse.ArgumentParser(prog="python -m bench.archive")
    parser.add_argument("--most", type=int, default=10_000_000, help="samples of the largest size")
    parser.add_argument("--draw", action="store_true", help=f"draw {PICTURE.name} anew")
    given = parser.parse_args()
    place = peer(*PACKAGES)
    if place is None:
        print(f"{', '.join(PACKAGES)} could not be installed here: nothing to compare with")
        return 0
    sizes = [given.most // 100, given.most // 10, given.most]
    found = _measured(place, sizes)
    bench = Bench("")
    for each in found["growth"]:
        _told(each)
    largest = found["growth"][-1]
    _packed(bench, largest["bytes"])
    _asked(bench, largest)
    _kept(bench, found["ingest"])
    wrong = [words for each in found["growth"] for words in each["wrong"]]
    _right(found, wrong)
    if given.draw:
        PICTURE.write_text(drawn(found["growth"]), "utf-8")
    return 1 if bench.missed or wrong else 0


def _measured(place: Path, sizes: list[int]) -> dict[str, Any]:
    """The figures of ``inside``."""
    with tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as directory:
        words = [str(place / "python"), "-m", "bench.archive.inside", directory, *map(str, sizes)]
        done = subprocess.run(
            words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, check=True
        )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _told(each: dict[str, Any]) -> None:
    """A size on three lines."""
    print(
        f"{each['samples']:>10,} samples: {each['bytes']['archive']:.2f} bytes a sample; sealed in",
        end=" ",
    )
    print(f"{_ms(each['seal'])}; sums add {each['bytes']['sums']:.2f} bytes a sample")
    print("           from the rows: " + "; ".join(f"{k} {_ms(v)}" for k, v in each["raw"].items()))
    print(f"           from the sums, priced by the hour: {_ms(each['sums'])}")


def _packed(bench: Bench, sizes: dict[str, float]) -> None:
    print(f"bytes a sample: duckdb {sizes['duckdb']:.1f}, Parquet with zstd {sizes['parquet']:.1f}")
    bench.tell("sealed, sums included", sizes["archive"] + sizes["sums"], BYTES, "bytes")


def _asked(bench: Bench, each: dict[str, Any]) -> None:
    raw = each["raw"]
    share, clock = (_ratios(raw["archive"][kind], raw["duckdb"][kind]) for kind in ("core", "wall"))
    bench.tell("tenant × day from the rows, of DuckDB's", statistics.median(share), SHARE, "times")
    _by_clock(bench, "one thread against two", clock, SHARE)
    core, wall = (_p99s(each["sums"][kind]) for kind in ("core", "wall"))
    bench.tell("tenant × day from the sums, p99", statistics.median(core), P99_MS, "ms")
    _by_clock(bench, "p99 in ms", wall, P99_MS)


def _kept(bench: Bench, took: dict[str, dict[str, list[float]]]) -> None:
    """Synced batches: each ready in the form it takes best; ours from lists of integers as well."""
    for name, each in took.items():
        rate = BATCH * TURN / statistics.median(each["wall"]) / 1e3
        core = statistics.median(each["core"]) / TURN
        print(f"  {name}: {rate:.3f} M samples/s, {core:.3f} ms of a core a batch")
    ours = took["archive, from Arrow"]
    core, clock = (
        max((_ratios(ours[kind], took[other][kind]) for other in PEERS), key=statistics.median)
        for kind in ("core", "wall")
    )
    times = 1 / statistics.median(core)
    bench.least("synced batches of 1,000, of the best peer's", times, INGEST)
    _by_clock(bench, "of which most is the wait for the disk; 1 / times", clock, 1 / INGEST)


def _by_clock(bench: Bench, what: str, rounds: list[float], most: float) -> None:
    """The same bar by the clock: the median of rounds in turn, and between which they lay.

    Counted as missed only where nothing else ran when this began.
    """
    value = statistics.median(rounds)
    kept, busy = value <= most, LOAD > FREE
    mark = "held" if kept else "MISSED"
    why = f", on cores that had {LOAD:.1f} others waiting: not counted" if busy and not kept else ""
    bench.missed += not kept and not busy
    between = f"{min(rounds):.3g} to {max(rounds):.3g} in {len(rounds)} rounds"
    print(f"  by the clock, {what}: {value:.3g} ({between})  bar {most:.3g}  {mark}{why}")


def _right(found: dict[str, Any], wrong: list[str]) -> None:
    killed, cut = found["survived"], found["cut"]
    print(
        f"killed {killed['kills']} times while it wrote: {killed['acknowledged']} batches acknowledged, "
        f"{killed['kept']} whole ones read; cut or changed {cut['damaged']} times: never a wrong row"
    )
    print(
        f"DIFFERS from every sample added up in 128 bits: {', '.join(wrong)}"
        if wrong
        else "rows, sums and amounts equal to the nano-unit what DuckDB adds up from every sample"
    )


def _ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Turn by turn, ours as a share of theirs."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def _p99s(took: list[float]) -> list[float]:
    """The 99th of a hundred of each round of a hundred: what else ran in one does not hide the others."""
    rounds = [took[start : start + 100] for start in range(0, len(took), 100)]
    return [statistics.quantiles(each, n=100)[98] for each in rounds]


def _ms(took: dict[str, list[float]]) -> str:
    wall, core = (statistics.median(took[kind]) for kind in ("wall", "core"))
    return f"{wall:.4g} ms ({core:.4g} of a core)"


if __name__ == "__main__":
    sys.exit(main())
