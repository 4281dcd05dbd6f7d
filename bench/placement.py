"""How long one plan takes: 10,000 jobs that wait for 64 nodes of eight GPUs, in processor time.

Four sites: busy and empty, with a handful of shapes of job and with every job its own shape. Beside it, on the same
empty site and the same queue, a plain best-fit loop that gives no reasons, keeps no place for anybody and knows no
fair share, and one decision of AccaSim's EASY backfilling with best fit, where it can be installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from bench._peers import peer
from ouvrage.base.time import HOUR
from ouvrage.model.selling import Placed
from ouvrage.placement.decide import plan
from ouvrage.placement.snapshot import Device, Needs, Node, Running, Snapshot, Waiting

JOBS, NODES, LIMIT_S = 10_000, 64, 0.2
MODELS = ("RTX4090", "H100", "A100-80GB")
NOW = HOUR
ACCASIM = "accasim==1.1.3"


def nodes(models: int) -> tuple[Node, ...]:
    """Nodes of eight GPUs, 64 cores and 512 GiB, of so many models in turn."""
    return tuple(
        Node(
            node=f"n{n:02}",
            name=f"n{n:02}",
            devices=tuple(Device(device=f"n{n}/{g}", model=MODELS[n % models]) for g in range(8)),
            cpus=tuple(range(64)),
            memory_mib=512 * 1024,
            disk_mib=2_000_000,
        )
        for n in range(NODES)
    )


def attempts(on: tuple[Node, ...], chance: Random) -> tuple[Running, ...]:
    """Attempts on nine tenths of the GPUs."""
    found: list[Running] = []
    for node in on:
        gpu = 0
        while gpu < 8:
            count = min(chance.choice([1, 1, 2, 4]), 8 - gpu)
            devices = tuple(d.device for d in node.devices[gpu : gpu + count])
            cpus = tuple(range(gpu * 7, (gpu + count) * 7))
            where = Placed(
                node=node.node, devices=devices, cpus=cpus, memory_mib=count * 50_000, disk_mib=0
            )
            if chance.random() < 0.9:
                found.append(
                    Running(
                        attempt=f"{node.node}-{gpu}",
                        job=f"{node.node}-{gpu}",
                        project=f"p{chance.randrange(20)}",
                        lease="",
                        placed=where,
                        started_us=0,
                        ends_by_us=chance.choice([None, 2 * HOUR, 5 * HOUR, 9 * HOUR]),
                        interruptible=chance.random() < 0.2,
                    )
                )
            gpu += count
    return tuple(found)


def queue(chance: Random, *, own_shape: bool, plain: bool = False) -> tuple[Waiting, ...]:
    """Jobs of 20 projects; ``plain``: of one project, each with a limit, of no named model."""
    found: list[Waiting] = []
    for n in range(JOBS):
        gpus = chance.choice([0, 1, 1, 1, 2, 4, 8])
        needs = Needs(
            gpus=gpus,
            gpu=None if plain or not gpus else chance.choice([None, *MODELS]),
            cpus=chance.randint(1, 60) if own_shape else chance.choice([1, 2, 4, 8, 16]),
            memory_mib=chance.randint(1, 500_000) if own_shape else 1024 * chance.choice([8, 64]),
        )
        limit = chance.choice([HOUR, 4 * HOUR] if plain else [None, HOUR, 4 * HOUR, 24 * HOUR])
        found.append(
            Waiting(
                job=f"j{n:05}",
                project="p0" if plain else f"p{chance.randrange(20)}",
                org="o",
                needs=needs,
                submitted_us=n,
                time_limit_us=limit,
                standing=0 if plain else chance.randrange(2),
            )
        )
    return tuple(found)


def best_fit(snapshot: Snapshot) -> int:
    """First come, first tried, on the fullest node that it fits; how many start."""
    free = [[len(n.devices), len(n.cpus), n.memory_mib] for n in snapshot.nodes]
    started = 0
    for job in snapshot.waiting:
        gpus, cpus, memory = job.needs.gpus, job.needs.cpus, job.needs.memory_mib
        best = None
        for room in free:
            if (
                room[0] >= gpus
                and room[1] >= cpus
                and room[2] >= memory
                and (best is None or room < best)
            ):
                best = room
        if best is not None:
            best[0], best[1], best[2] = best[0] - gpus, best[1] - cpus, best[2] - memory
            started += 1
    return started


def least_s(do: Callable[[], object], times: int = 5) -> float:
    """The least processor time of several tries, in seconds."""
    found: list[float] = []
    for _ in range(times):
        began = time.process_time()
        do()
        found.append(time.process_time() - began)
    return min(found)


def main() -> int:
    """Print the table; 1 where the ordinary busy site takes longer than it may."""
    taken: dict[str, float] = {}
    for name, busy, own in (
        ("busy, shapes in common", True, False),
        ("busy, each its own shape", True, True),
        ("empty, shapes in common", False, False),
        ("empty, each its own shape", False, True),
    ):
        chance = Random(1)
        site = nodes(3)
        running = attempts(site, chance) if busy else ()
        snapshot = Snapshot(nodes=site, running=running, waiting=queue(chance, own_shape=own))
        taken[name] = least_s(lambda made=snapshot: plan(made, NOW))
        made = plan(snapshot, NOW)
        print(
            f"{name:<28} {taken[name] * 1000:6.0f} ms   {len(made.starts)} start, {len(made.waits)} reasons"
        )
    beside()
    ordinary = taken["busy, shapes in common"]
    print(
        f"{JOBS:,} jobs on {NODES} nodes: {ordinary * 1000:.0f} ms; at most {LIMIT_S * 1000:.0f} ms"
    )
    return 0 if ordinary <= LIMIT_S else 1


def beside() -> None:
    """The same empty site and queue for us, for the plain loop and for AccaSim."""
    snapshot = Snapshot(nodes=nodes(1), waiting=queue(Random(2), own_shape=False, plain=True))
    ours, starts = least_s(lambda: plan(snapshot, NOW)), len(plan(snapshot, NOW).starts)
    plain = least_s(lambda: best_fit(snapshot))
    print(f"one queue, in order          {ours * 1000:6.0f} ms   {starts} start")
    print(
        f"  plain best-fit loop        {plain * 1000:6.0f} ms   {best_fit(snapshot)} start, no reasons, no kept place: x {ours / plain:.2f} of it"
    )
    tool = peer(ACCASIM)
    if tool is None:
        print(f"  {ACCASIM} could not be installed")
        return
    asked = {
        "nodes": NODES,
        "node": {"core": 64, "gpu": 8, "mem": 512 * 1024},
        "jobs": [
            [
                {"core": j.needs.cpus, "gpu": j.needs.gpus, "mem": j.needs.memory_mib},
                (j.time_limit_us or 0) // 10**6,
            ]
            for j in snapshot.waiting
        ],
    }
    done = subprocess.run(
        [str(tool / "python"), str(Path(__file__).with_name("_dispatcher.py"))],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        print(f"  {ACCASIM} failed: {done.stderr.strip().splitlines()[-1]}")
        return
    told = json.loads(done.stdout)
    print(
        f"  {ACCASIM}             {told['s'] * 1000:6.0f} ms   {told['starts']} start: x {ours / told['s']:.2f} of it"
    )


if __name__ == "__main__":
    sys.exit(main())
