"""Beside HyperQueue, in the same run: how many `/bin/true` a second are carried, and what it would take with nothing around it.

Three things that promise different amounts. ``posix_spawn``, two at a time, keeps nothing. HyperQueue's server and a worker of two cores, a process each, keep tasks in memory and
start them without limits. Our runner keeps every order, beginning and end on the disk before it goes on, and starts each attempt in a control group with space of its own under a
supervisor that outlives it; once without a sandbox, as only the owner's own jobs run, and once in one. There is no bar: the figures are reported.

    python -m bench.hyperqueue [--jobs 100] [--tasks 3000]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from bench._peers import peer
from bench.sandbox import TRUE, rate
from tests.support.orders import missing

PACKAGE = "hyperqueue==0.27.0"
AT_ONCE = 2
PEER = r"""
import contextlib, json, os, sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
count, said = int(sys.argv[1]), os.dup(1)
with open(os.devnull, "w") as nowhere:
    os.dup2(nowhere.fileno(), 1), os.dup2(nowhere.fileno(), 2)
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=2))
        client, rates = cluster.client(), []
        for tasks in (100, count):  # the first warms up
            job = Job()
            for _ in range(tasks):
                job.program(["/bin/true"])
            began = time.perf_counter()
            client.wait_for_jobs([client.submit(job)])
            rates.append(tasks / (time.perf_counter() - began))
        os.write(said, json.dumps(rates[-1]).encode())
"""


def main() -> int:
    """Measure what can be measured here, and say what cannot."""
    parser = argparse.ArgumentParser(prog="python -m bench.hyperqueue")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=3000)
    options = parser.parse_args()
    rows = [(f"posix_spawn, {AT_ONCE} at a time", _bare(options.tasks))]
    binaries = peer(PACKAGE)
    if binaries is None:
        print(f"not measured: {PACKAGE} could not be installed")
    else:
        words = [str(binaries / "python"), "-c", PEER, str(options.tasks)]
        rows.append(("HyperQueue, one worker", json.loads(_said(words))))
    why = missing()
    if why:
        print(f"not measured: {why}")
    else:
        rows.append(("ours, isolation none", rate(options.jobs, "none")))
        rows.append(("ours, sandboxed", rate(options.jobs)))
    for name, each_s in rows:
        print(f"{name:<28} {each_s:8.1f} a second   {1000 / each_s:7.2f} ms each")
    print("ours are durable: order, beginning and end of each are on the disk before the next step")
    return 0


def _said(words: list[str]) -> str:
    """What a program answers; HyperQueue leaves two files a task where it was started."""
    with tempfile.TemporaryDirectory() as nowhere:
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=nowhere).stdout


def _bare(many: int) -> float:
    began = time.perf_counter()
    going = [os.posix_spawn(TRUE, [TRUE], {}) for _ in range(AT_ONCE)]
    for n in range(many):
        os.waitpid(going.pop(0), 0)
        if n + AT_ONCE < many:
            going.append(os.posix_spawn(TRUE, [TRUE], {}))
    return many / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
