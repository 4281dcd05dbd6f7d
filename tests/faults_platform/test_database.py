"""Two servers on one PostgreSQL that is cut off again and again under load: they share the work, and each attempt is one.

A node talks to each server. The nodes are twins that run nothing, so that what is looked at is the servers alone; each notes every
attempt that it was told to start, which it may be told once.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.ledger.kinds import read
from ouvrage.model.work import AttemptEnded, AttemptOrdered, JobEnded
from tests.faults_platform.load import holds
from tests.faults_platform.processes import Asker, Process, free_port
from tests.support import postgres
from tests.support.runner_twin import Twin, inventory

pytestmark = pytest.mark.slow
JOBS = 40


@pytest.fixture
def database() -> Iterator[postgres.Cluster]:
    if not postgres.available():
        pytest.skip("PostgreSQL is not installed")
    with postgres.cluster() as made:
        yield made


class Node:
    """A twin in a thread of its own, that ends whatever it is told to start."""

    def __init__(self, url: str, owner: Asker, name: str) -> None:
        secret = owner.post("/v1/nodes/enrolments", {})["secret"]
        self.twin = Twin.enrolled(url, secret, now_us, inventory(name, cpus=4))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name=name)

    def _run(self) -> None:
        told: set[str] = set()
        events: list = []
        while not self.ended.is_set():
            try:
                self.twin.ask(wait_s=0.5)
                for start in self.twin.starts:
                    if start.attempt not in told:
                        told.add(start.attempt)
                        self._log(start.attempt)
                        events += [self.twin.began(start.attempt), self.twin.ended(start.attempt)]
                self.twin.report(events)
                events.clear()
            except (httpx2.TransportError, AssertionError):  # it is told later
                threading.Event().wait(0.05)

    def _log(self, attempt: str) -> None:
        until = time.monotonic() + 60
        text = f"{attempt}\n".encode()
        while self.twin.send("PUT", f"/v1/runner/attempts/{attempt}/log", text, offset=0).is_error:
            assert time.monotonic() < until
            threading.Event().wait(0.05)


@pytest.mark.parametrize(
    "cuts", [pytest.param(4), pytest.param(100, marks=pytest.mark.soak)], ids=["4", "100"]
)
def test_a_database_cut_off_under_two_servers(
    database: postgres.Cluster, tmp_path: Path, cuts: int
) -> None:
    store = database.database()
    servers: list[Process] = []
    urls: list[str] = []
    for name in ("one", "two"):
        port = free_port()
        words = ("up", "--state", str(tmp_path / name), "--no-runner", "--json")
        words += ("--files", str(tmp_path / "files"), "--listen", f"127.0.0.1:{port}")
        server = Process(tmp_path / f"{name}.txt", *words, OUVRAGE_SERVER_STORE=store)
        server.start()
        server.said()
        servers.append(server)
        urls.append(f"http://127.0.0.1:{port}")
    owners = [
        Asker(url, (tmp_path / name / "owner.token").read_text("ascii").strip())
        for url, name in zip(urls, ("one", "two"), strict=True)
    ]
    terms = {"name": "small", "cpus": 1, "memory_mib": 16, "disk_mib": 1, "rate": "0.10"}
    owners[0].post("/v1/offers", terms)
    nodes = [
        Node(url, owner, f"at-{n}") for n, (url, owner) in enumerate(zip(urls, owners, strict=True))
    ]
    jobs: list[str] = []

    def submit() -> None:
        for number in range(JOBS):
            asked = {"project": "main", "offer": "small", "spec": {"command": ["true"]}}
            jobs.append(owners[number % 2].post("/v1/jobs", asked)["job"])

    submitting = threading.Thread(target=submit)
    try:
        for thread in (submitting, *(node.thread for node in nodes)):
            thread.start()
        for _ in range(cuts):
            threading.Event().wait(0.4)
            database.stop()
            threading.Event().wait(0.2)
            database.start()
        submitting.join(90)
        assert not submitting.is_alive()
        reader = Asker(urls[1], owners[1].token)
        until = time.monotonic() + 90
        while any(job["state"] != "done" for job in reader.all("/v1/jobs")):
            assert time.monotonic() < until
            threading.Event().wait(0.2)
        told = Counter(start.attempt for node in nodes for start in node.twin.starts)
        for job in jobs:  # each server shows what the other was told
            attempt = reader.get(f"/v1/jobs/{job}")["last"]["attempt"]
            assert reader("GET", f"/v1/jobs/{job}/log").text == f"{attempt}\n"
        reader.close()
    finally:
        for node in nodes:
            node.ended.set()
            node.thread.join(90)
            node.twin.close()
        for each in owners:
            each.close()
        for server in servers:
            server.stop()
    values = [read(entry.fact) for entry in holds(tmp_path / "one", store)]
    ordered = [value.attempt for value in values if isinstance(value, AttemptOrdered)]
    assert len(ordered) == len(set(ordered)) == JOBS
    assert told == dict.fromkeys(ordered, 1)
    assert all(node.twin.starts for node in nodes)
    assert sorted(v.job for v in values if isinstance(v, JobEnded)) == sorted(jobs)
    assert len([v for v in values if isinstance(v, AttemptEnded)]) == JOBS
