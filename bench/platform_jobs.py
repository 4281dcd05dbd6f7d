"""How many durable jobs a second the platform carries from submission to their recorded end.

A server in a process of its own, over HTTP on loopback; jobs are submitted one request each by two clients; the runner is the tests'
twin, which runs nothing, so that what is measured is the server: every submission, order, beginning and end is a transaction that is on
the disk before it is answered. The clients and the twin share the machine with the server, and their time is not taken out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.store.store import open_store
from tests.support.runner_twin import Twin, inventory

JOBS = 400
CLIENTS = 2
CORES = 8
TARGET = 20.0
TOO_MANY = 429


def main() -> int:
    """Measure, print, and fail below the target."""
    with (
        tempfile.TemporaryDirectory(prefix="ouvrage-bench-") as directory,
        _server(directory) as at,
    ):
        url, token = at
        owner = _asking(url, token)
        enrolment = owner("POST", "/v1/nodes/enrolments", {})["secret"]
        twin = Twin.enrolled(url, enrolment, now_us, inventory(cpus=CORES))
        terms = {"name": "small", "cpus": 1, "memory_mib": 16, "disk_mib": 1, "rate": "0.10"}
        owner("POST", "/v1/offers", terms)
        before = _cpu_s(Path(directory))
        seconds = _through(url, token, twin)
        busy = _cpu_s(Path(directory)) - before
        ended, facts = _recorded(Path(directory))
    rate = JOBS / seconds
    print(f"{JOBS} jobs on {CORES} cores of a runner that runs nothing, {CLIENTS} clients:")
    print(f"  {rate:.0f} jobs/s from submission to the recorded end ({seconds:.1f} s)")
    print(f"  {busy / JOBS * 1e3:.1f} ms of processor a job in the server, all it does counted")
    print(f"  {ended} ended, each once; {facts / JOBS:.1f} facts a job, all of them on the disk")
    print(
        f"  target {TARGET:.0f} jobs/s: {'met' if rate >= TARGET and ended == JOBS else 'missed'}"
    )
    return 0 if rate >= TARGET and ended == JOBS else 1


@contextmanager
def _server(directory: str) -> Iterator[tuple[str, str]]:
    """A server on a state directory: its address and the owner's token."""
    command = [sys.executable, "-m", "ouvrage"]
    state = ["--state", directory]
    up = [*command, "up", *state, "--listen", "127.0.0.1:0", "--no-runner", "--detach", "--json"]
    told = json.loads(subprocess.run(up, check=True, stdout=subprocess.PIPE).stdout)
    try:
        yield told["url"], Path(told["token_file"]).read_text("ascii").strip()
    finally:
        subprocess.run([*command, "down", *state], check=True, stdout=subprocess.DEVNULL)


def _asking(url: str, token: str) -> Callable[[str, str, Any], Any]:
    http = httpx2.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {token}"})

    def ask(method: str, path: str, body: Any) -> Any:
        while True:
            answer = http.request(method, path, json=body, headers={"Idempotency-Key": new_id()})
            if answer.status_code != TOO_MANY:
                return answer.raise_for_status().json()
            time.sleep(0.05)

    return ask


def _through(url: str, token: str, twin: Twin) -> float:
    """Seconds until every job has ended."""
    running = threading.Thread(target=_end_all, args=(twin,))
    clients = [
        threading.Thread(target=_submit, args=(_asking(url, token), JOBS // CLIENTS))
        for _ in range(CLIENTS)
    ]
    began = time.monotonic()
    for thread in (running, *clients):
        thread.start()
    for thread in (*clients, running):
        thread.join()
    return time.monotonic() - began


def _submit(ask: Callable[[str, str, Any], Any], count: int) -> None:
    body = {"project": "main", "offer": "small", "spec": {"command": ["/bin/true"]}}
    for _ in range(count):
        ask("POST", "/v1/jobs", body)


def _end_all(twin: Twin) -> None:
    """Take what is ordered, begin it, end it, until all jobs are through."""
    ended: set[str] = set()
    while len(ended) < JOBS:
        twin.ask(wait_s=5)
        new = [start.attempt for start in twin.starts if start.attempt not in ended]
        if new:
            twin.report([twin.began(attempt) for attempt in new])
            twin.report([twin.ended(attempt) for attempt in new])
            ended.update(new)
            twin.starts.clear()


def _cpu_s(directory: Path) -> float:
    """Processor time that the server has used."""
    pid = (directory / "server.pid").read_text("ascii").strip()
    values = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def _recorded(directory: Path) -> tuple[int, int]:
    """How many jobs the ledger says are done, and how many facts there are."""
    with open_store(directory / "ouvrage.db") as store:
        records = store.records()
    jobs = {e.fact.subject for e in records if e.fact.kind == "job.ended"}
    return len(jobs), len(records)


if __name__ == "__main__":
    os.environ.setdefault("OUVRAGE_HOME", tempfile.gettempdir())
    sys.exit(main())
