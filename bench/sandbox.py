"""What a sandbox adds to the start of a command, and how many durable sandboxed jobs a second this node runs.

The same command (``/bin/true``) is started bare with ``posix_spawn`` and inside everything an attempt
stands in: its own space on the disk, its control group, the filter, bubblewrap, all made, read and taken away
again. They take turns; medians. Then a node with its real runner takes orders from a server on
loopback: each job's order, beginning and end are on the disk before the next step. Exit code 1 where a
bar is missed.

    python -m bench.sandbox [--rounds 40] [--jobs 100]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from ouvrage.adapters import scratch
from ouvrage.adapters.bubblewrap import make_etc
from ouvrage.agent.enclosure import ETC, STAGE, Enclosure, Order
from ouvrage.agent.files import AttemptFiles
from tests.support.orders import UID, an_order, missing
from tests.support.runner_server import RunnerServer

ADDED_MS, JOBS_PER_S = 15.0, 20.0
SOURCES = Path(__file__).resolve().parent.parent / "src"
TRUE = "/bin/true"


def main() -> int:
    """Measure; 1 where a bar is missed, 0 also where no sandbox can be made here."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=100)
    options = parser.parse_args()
    why = missing()
    if why:
        print(f"not measured: {why}")
        return 0
    held = [_starts(options.rounds)] + ([_jobs(options.jobs)] if options.jobs else [])
    return 0 if all(held) else 1


def _starts(rounds: int) -> bool:
    os.makedirs(STAGE, exist_ok=True)
    ways: dict[str, Callable[[Path, Order], None]] = {
        "posix_spawn": _bare,
        "sandbox": lambda state, order: _enclosed(state, order, with_space=False),
        "sandbox and its space": lambda state, order: _enclosed(state, order, with_space=True),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as directory:
        make_etc(Path(directory, ETC))
        for _ in range(rounds + 2):
            for name, way in ways.items():
                taken[name].append(_apart(way, Path(directory)))
    medians = {name: statistics.median(times[2:]) * 1000 for name, times in taken.items()}
    for name, median in medians.items():
        print(f"{name:<24} {median:7.2f} ms   (fastest {min(taken[name]) * 1000:.2f})")
    added = medians["sandbox and its space"] - medians["posix_spawn"]
    print(f"added by all of it: {added:.1f} ms (bar {ADDED_MS:g})")
    return added <= ADDED_MS


def _apart(way: Callable[[Path, Order], None], state: Path) -> float:
    """The time of one start, in a process of its own: each leaves its mounts behind."""
    order = Order(start=an_order(TRUE, disk_mib=1024), uid=UID, see=(), nodes=())
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            began = time.perf_counter()
            way(state, order)
            os.write(write, repr(time.perf_counter() - began).encode())
            code = 0
        except BaseException:  # noqa: BLE001 -- a forked child must not return
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        said = told.read()
    os.waitpid(pid, 0)
    return float(said)


def _bare(_state: Path, _order: Order) -> None:
    os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)


class _Spaceless(Enclosure):
    """Everything but space on the disk."""

    def make_space(self) -> None:
        at = Path(STAGE, "plain")
        for name in ("own", "temporary"):
            (at / name).mkdir(parents=True)
        self.space = scratch.Space(image=at, at=str(at))


def _enclosed(state: Path, order: Order, *, with_space: bool) -> None:
    files = AttemptFiles(state / "attempts", order.start.attempt)
    files.at.mkdir(parents=True)
    kind = Enclosure if with_space else _Spaceless
    enclosure = kind.of(state, files, order)
    enclosure.make()
    silent = os.open(os.devnull, os.O_WRONLY)
    prepared = enclosure.prepared([], "", silent)
    pid = os.fork()
    if not pid:
        enclosure.become(prepared)
    os.waitpid(pid, 0)
    enclosure.cgroup.reading()
    assert enclosure.cgroup.remove()
    if with_space and enclosure.space is not None:
        scratch.erase(enclosure.space)


def _jobs(many: int) -> bool:
    each_s = rate(many)
    print(f"durable sandboxed jobs: {each_s:.1f} a second (bar {JOBS_PER_S:g}), {many} at once")
    return each_s >= JOBS_PER_S


def rate(many: int, isolation: str = "sandbox") -> float:
    """How many jobs a second a node with its real runner carries from order to recorded end."""
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory, "agent")
        token = Path(directory, "token")
        token.write_text("once")
        server = RunnerServer()
        words = [sys.executable, "-m", "ouvrage", "agent", "run", "--state", str(state)]
        words += ["--server", server.url, "--enrol-file", str(token)]
        runner = subprocess.Popen(
            words, env={**os.environ, "PYTHONPATH": str(SOURCES)}, stderr=subprocess.DEVNULL
        )
        try:
            first = server.order(an_order(TRUE, isolation=isolation))
            _until(lambda: server.ended(first.attempt) is not None)
            began = time.perf_counter()
            starts = [
                server.order(an_order(TRUE, cpus=[i % 2], isolation=isolation)) for i in range(many)
            ]
            _until(lambda: all(server.ended(start.attempt) for start in starts))
            return many / (time.perf_counter() - began)
        finally:
            runner.terminate()
            runner.wait()
            server.stop()


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
