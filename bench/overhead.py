"""What the meter costs: wall time, a share of a core, memory, and the calls it gives programs.

Each figure is set against its bar in the same run. Pairs are interleaved, so that a busy machine is
busy for both. Prints a table; exit code 1 where a bar is missed.

    python bench/overhead.py [--pairs 9] [--seconds 10] [--sampled 30]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PY = sys.executable
WALL, SHARE, MEMORY_MB, VERSION_MS, CALL_US = 0.01, 0.002, 40.0, 120.0, 2.0
WORK = "x = 1\nfor _ in range({turns}): x = x * 1103515245 + 12345 & 0x7FFFFFFF\n"
CALLS = """
import ouvrage, time
def cost(call, turns=200_000):
    start = time.perf_counter_ns()
    for _ in range(turns): call()
    return (time.perf_counter_ns() - start) / turns / 1000
def spanned():
    with ouvrage.span("data"): pass
def empty(): pass
base = min(cost(empty) for _ in range(5))
items = range(200_000)
start = time.perf_counter_ns()
for _ in ouvrage.watch(items): pass
watched = (time.perf_counter_ns() - start) / len(items) / 1000
print(min(cost(lambda: ouvrage.unit("epoch")) for _ in range(5)) - base,
      min(cost(spanned) for _ in range(5)) - base, watched)
"""


class Bench:
    """Runs things and prints figures beside their bars."""

    def __init__(self, home: str) -> None:
        self.missed = 0
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "OUVRAGE_SOCKET")
        } | {"OUVRAGE_HOME": home, "PYTHONPATH": str(ROOT / "src")}

    def tell(self, name: str, value: float, bar: float, unit: str) -> None:
        """One line of the table."""
        kept = value <= bar
        self.missed += not kept
        mark = "held" if kept else "MISSED"
        sys.stdout.write(f"{name:<44} {value:>9.4g} {unit:<9} bar {bar:g}  {mark}\n")
        sys.stdout.flush()

    def least(self, name: str, value: float, bar: float) -> None:
        """One line of the table where more is better."""
        kept = value >= bar
        self.missed += not kept
        mark = "held" if kept else "MISSED"
        sys.stdout.write(f"{name:<44} {value:>9.4g} {'times':<9} bar {bar:g}  {mark}\n")
        sys.stdout.flush()

    def timed(self, words: list[str]) -> float:
        """Wall seconds of a command."""
        start = time.perf_counter()
        subprocess.run(
            words,
            env=self.environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - start

    def metered(self, *command: str, options: tuple[str, ...] = ()) -> list[str]:
        """The words that run a command under the meter."""
        return [PY, "-m", "ouvrage", "run", *options, "--", *command]


def turns_for(bench: Bench, seconds: float) -> int:
    """How many turns of the loop take about so long here."""
    probe = 2_000_000
    return int(probe * seconds / bench.timed([PY, "-c", WORK.format(turns=probe)]))


def wall(bench: Bench, pairs: int, seconds: float) -> None:
    """A fixed job that keeps one core busy, alone and metered, in turn."""
    job = [PY, "-c", WORK.format(turns=turns_for(bench, seconds))]
    bench.timed(bench.metered("true"))
    ratios: list[float] = []
    for number in range(pairs):
        words = [job, bench.metered(*job)]
        first = number % 2
        times = {first: bench.timed(words[first])}
        times[1 - first] = bench.timed(words[1 - first])
        ratios.append(times[1] / times[0] - 1)
    shown = " ".join(f"{ratio:+.3%}" for ratio in sorted(ratios))
    sys.stdout.write(f"  wall overhead of {pairs} pairs of about {seconds:g} s: {shown}\n")
    bench.tell("wall time added, median of pairs", statistics.median(ratios), WALL, "of wall")


def share(bench: Bench, seconds: float) -> None:
    """The meter's own processor time and memory beside a small tree of processes."""
    idle = "trap 'kill 0' TERM; sleep 3600 & sleep 3600 & wait"
    with subprocess.Popen(
        bench.metered("sh", "-c", idle),
        env=bench.environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        wait(4.0)
        before, start = own_time(process.pid), time.perf_counter()
        wait(seconds)
        used, elapsed = own_time(process.pid) - before, time.perf_counter() - start
        memory = resident(process.pid)
        process.terminate()
    bench.tell(f"share of a core at 1 Hz over {seconds:g} s", used / elapsed, SHARE, "of a core")
    bench.tell("resident memory", memory / 1e6, MEMORY_MB, "MB")


def wait(seconds: float) -> None:
    """Let the meter do its work; time itself is what is measured here."""
    threading.Event().wait(seconds)


def own_time(pid: int) -> float:
    """Processor seconds of all threads, to the nanosecond."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        total += int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0])
    return total / 1e9


def resident(pid: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def version(bench: Bench) -> None:
    """``ouvrage --version``, the best of several: what the program itself takes."""
    times = [bench.timed([PY, "-m", "ouvrage", "--version"]) for _ in range(7)]
    bench.tell("ouvrage --version, median of 7", statistics.median(times) * 1000, VERSION_MS, "ms")


def calls(bench: Bench) -> None:
    """``unit``, ``span`` and ``watch`` where nobody listens."""
    done = subprocess.run(
        [PY, "-c", CALLS], env=bench.environment, check=True, capture_output=True, text=True
    )
    for name, value in zip(
        ("unit()", "with span()", "watch(), an item"), done.stdout.split(), strict=True
    ):
        bench.tell(f"{name}, nobody listens", float(value), CALL_US, "us")


def main() -> int:
    """Everything, in order."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--sampled", type=float, default=30.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(home)
        version(bench)
        calls(bench)
        share(bench, given.sampled)
        wall(bench, given.pairs, given.seconds)
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
