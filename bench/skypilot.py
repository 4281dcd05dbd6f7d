"""Against SkyPilot, in the same run: how long the program takes to say its version, and to rank.

Its optimizer is asked below its API server, which would add more, over as many offers in its own
catalogue format, for the cheapest one with eight of one GPU: few of them have that (one type a cloud,
in forty regions), as in real catalogues, and it takes much longer where more do. Ours ranks all of the offers by what the finished work costs. Both have
their catalogue in memory; beside it SkyPilot with its caches cleared, as for each request to its server.

    python -m bench.skypilot [--rounds 7]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench._peers import peer, processor_s
from bench.overhead import Bench
from bench.quotes import COUNT, TOP, prepared

PACKAGE = "skypilot==0.14.1"
FASTER = ("pandas==3.1.1", "pyarrow==26.0.1")
"""Not among its requirements, and its catalogue is several times as fast with it: a fair peer has it."""
VERSION, OPTIMIZER = 5.0, 35.0
PEER = r"""
import csv, io, json, os, statistics, sys, time
from contextlib import redirect_stdout
import sky
from sky import check
from sky.catalog import common
from sky.optimizer import Optimizer
from sky.utils import annotations, registry
count, rounds, regions = int(sys.argv[1]), int(sys.argv[2]), 40
clouds = ("lambda", "runpod", "fluidstack", "cudo", "nebius")
gpus = ("RTX3080", "RTX3090", "RTX4090", "A100", "A100-80GB", "H100", "L4", "L40S", "V100", "T4", "A10G", "P100")
place, state = common._ABSOLUTE_VERSIONED_CATALOG_DIR, 12345
def table(name, head, rows):
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
def rows(index):
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    kind, region = divmod(index, regions)
    price = 0.1 + (state >> 44) % 500000 / 100000
    zone = f"region-{region}"
    gpu = (gpus[kind % 12], 1 << kind // 12) if kind < 48 else ("", "")
    return (f"type-{kind}", 4 << kind % 4, 16 << kind % 3, *gpu, "", zone, zone, f"{price:.5f}", "")
head = ("InstanceType", "vCPUs", "MemoryGiB", "AcceleratorName", "AcceleratorCount", "GpuInfo",
        "Region", "AvailabilityZone", "Price", "SpotPrice")
for cloud in clouds:
    table(f"{cloud}/vms.csv", head, map(rows, range(count // len(clouds))))
table("common/accelerators.csv", ("AcceleratorName", "Clouds"), ((gpu, str(list(clouds))) for gpu in gpus))
enabled = [registry.CLOUD_REGISTRY.from_str(name) for name in clouds]
check.get_cached_enabled_clouds_or_refresh = lambda *_, **__: list(enabled)
def optimize():
    task = sky.Task(run="true")
    task.set_resources(sky.Resources(accelerators="H100:8"))
    dag = sky.Dag()
    dag.add(task)
    Optimizer.optimize(dag, quiet=True)
    return task.best_resources
def timed(fresh):
    took = []
    for _ in range(rounds):
        if fresh:
            annotations.clear_request_level_cache()
        wall, core = time.perf_counter(), time.process_time()
        optimize()
        took.append((time.perf_counter() - wall, time.process_time() - core))
    return [statistics.median(each) * 1000 for each in zip(*took)]
with redirect_stdout(io.StringIO()):
    best = optimize()
    found = {"warm": timed(False), "fresh": timed(True), "best": str(best)}
print(json.dumps(found))
"""


def version(bench: Bench, place: Path, rounds: int) -> None:
    """Wall time and processor time from start to end, in turn."""
    words = ([sys.executable, "-m", "ouvrage", "--version"], [str(place / "sky"), "--version"])
    for each in words:
        bench.timed(each)
    wall = [[bench.timed(each) for each in words] for _ in range(rounds)]
    core = [[processor_s(each, bench.environment) for each in words] for _ in range(rounds)]
    for name, pairs in (("wall", wall), ("processor", core)):
        ours, theirs = (statistics.median(pair[i] for pair in pairs) * 1000 for i in (0, 1))
        print(f"  {name} time of --version: ouvrage {ours:.0f} ms, sky {theirs:.0f} ms")
    ratio = statistics.median(theirs / ours for ours, theirs in wall)
    bench.least("--version faster than sky's, wall", ratio, VERSION)
    ratio = statistics.median(theirs / ours for ours, theirs in core)
    bench.least("--version cheaper than sky's, processor", ratio, VERSION)


def optimizer(bench: Bench, place: Path, home: str, rounds: int) -> None:
    """The ranking of all offers, ours, against the cheapest of one kind of GPU, theirs."""
    made = prepared()
    before = both(made.core, 25)
    done = subprocess.run(
        [str(place / "python"), "-c", PEER, str(COUNT), str(rounds)],
        env=bench.environment | {"HOME": home, "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    ours = [statistics.mean(pair) for pair in zip(before, both(made.core, 25), strict=True)]
    print(f"  exact top {TOP} of {COUNT} offers by cost of the finished work: {_ms(ours)}")
    print(f"  {PACKAGE}, Optimizer.optimize over as many, H100:8: {_ms(said['warm'])}")
    print(f"    with its caches cleared, as for each request: {_ms(said['fresh'])}")
    for name, index in (("wall", 0), ("processor", 1)):
        ratio = said["warm"][index] / ours[index]
        bench.least(f"faster than the optimizer, {name}", ratio, OPTIMIZER)


def both(work: Callable[[], object], rounds: int) -> list[float]:
    """The medians of wall time and processor time, in milliseconds."""
    took: list[tuple[float, float]] = []
    for _ in range(rounds):
        wall, core = time.perf_counter(), time.process_time()
        work()
        took.append((time.perf_counter() - wall, time.process_time() - core))
    return [statistics.median(each) * 1000 for each in zip(*took, strict=True)]


def _ms(pair: list[float]) -> str:
    return f"{pair[0]:.4g} ms ({pair[1]:.4g} ms of a core)"


def main() -> int:
    """Everything; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    place = peer(PACKAGE, *FASTER)
    if place is None:
        print(f"{PACKAGE} could not be installed here: nothing to compare with")
        return 0
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(home)
        version(bench, place, given.rounds)
        optimizer(bench, place, home, given.rounds)
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
