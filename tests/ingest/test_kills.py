"""The server killed in the middle of batches and runs: what it acknowledged is there, nothing is twice.

A child serves from a directory; nodes and a tenant send to it as fast as it answers. It is killed at a moment that differs each
time, and started again on the same directory; whoever had no answer sends the same again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ouvrage.store.audit import audit
from ouvrage.store.sample_frames import frames_in
from ouvrage.store.store import Store, open_store
from ouvrage.store.telemetry import last_kept, logs_of, path_of
from ouvrage.store.telemetry_files import sealed_path, sealed_stated
from ouvrage.wire.samples import decode
from tests.blackbox.spools import run_id, spool
from tests.ingest.sending import SECOND, SOURCE, START, batch, node_key, post
from tests.support.exported import exported_run
from tests.support.server import NO_CA, running

parquet: Any = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.slow
NODES = 3


def serve(state: str, address: str | None, keys: bool, said: Connection) -> None:
    with running(Path(state), store=address) as server:
        made = [node_key(server) for _ in range(NODES)] if keys else []
        said.send((server.url, server.platform.source, server.owner.token, made))
        threading.Event().wait()


class World:
    """A server that is killed and started again, and those who send to it meanwhile."""

    def __init__(self, state: Path, address: str | None) -> None:
        self.state, self.address = state, address
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["tests.ingest.test_kills"])
        self.url, self.keys = "", list[tuple[str, str]]()
        self.over, self.up = threading.Event(), threading.Event()
        self.acked = [0] * NODES
        self.runs: dict[str, Any] = {}
        self.answers = threading.Semaphore(0)

    def start(self) -> Any:
        hear, say = self.context.Pipe(duplex=False)
        child = self.context.Process(
            target=serve, args=(str(self.state), self.address, not self.keys, say)
        )
        child.start()
        assert hear.poll(60), "the server does not start"
        self.url, self.source, self.token, made = hear.recv()
        self.keys = self.keys or made
        self.up.set()
        return child

    def _send(self, http: httpx2.Client, key: str, path: str, content: bytes) -> Any:
        """Until it is answered, however often the server dies meanwhile; None at the end of the test."""
        while not self.over.is_set():
            try:
                answer = post(http, key, content, self.url + path)
            except httpx2.TransportError:
                self.up.wait(60)
                continue
            if answer.status_code < 500:
                self.answers.release()
                return answer
        return None

    def node(self, number: int) -> None:
        with httpx2.Client(timeout=10, verify=NO_CA) as http:
            key, sequence = self.keys[number][1], 1
            while answer := self._send(http, key, "/v1/samples", batch(sequence)):
                assert answer.status_code == 200, answer.text
                self.acked[number] = sequence
                sequence += 1

    def tenant(self) -> None:
        with httpx2.Client(timeout=10, verify=NO_CA) as http:
            number = 1
            while True:
                run = run_id(number)
                content = exported_run(spool(run, [1.0] * 120, label="r"))
                answer = self._send(http, self.token, "/v1/facts", content)
                if answer is None:
                    return
                assert answer.status_code == 200, answer.text
                assert answer.json()["conflict"] == 0
                self.runs[run] = len(answer.json()["results"])
                number += 1

    def sealed(self, store: Store) -> dict[str, list[int]]:
        """The batches by node that a server which lived long enough has sealed already."""
        found: dict[str, list[int]] = {}
        for name in sealed_stated(store):
            for row in parquet.read_table(sealed_path(self.state, name)).to_pylist():
                since, moment = divmod(int(row["t"].timestamp()) * SECOND - START, 5 * SECOND)
                if row["device"] is None and moment == 0:
                    found.setdefault(row["node"], []).append(since)
        return found

    def check(self) -> None:
        with open_store(self.address or self.state / "ouvrage.db") as store:
            found = self.sealed(store)
            for row in logs_of(store, self.source):
                for frame in (
                    frames_in(path_of(self.state, row.log), row.bytes) if row.bytes else ()
                ):
                    found.setdefault(frame.node, []).append(decode(frame.content).sequence)
            last = last_kept(store)
            for (node, _), acked in zip(self.keys, self.acked, strict=True):
                assert sorted(found[node]) == list(range(1, last[node, SOURCE] + 1))
                assert acked <= last[node, SOURCE] <= acked + 1
            for run, facts in self.runs.items():
                assert len(store.records(subject=run)) == facts
            first = audit(store, self.state).first
            assert first is None, first


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.soak)])
def test_killed_in_the_middle(tmp_path: Path, kills: int) -> None:
    world = World(tmp_path / "state", None)
    child = world.start()
    threads = [threading.Thread(target=world.node, args=(n,)) for n in range(NODES)]
    threads.append(threading.Thread(target=world.tenant))
    for thread in threads:
        thread.start()
    try:
        for kill in range(kills):
            for _ in range(3 + kill % 7):  # so many answers, then the blow
                assert world.answers.acquire(timeout=60), "nothing is answered"
            world.up.clear()
            os.kill(child.pid, signal.SIGKILL)
            child.join(60)
            child = world.start()
        assert world.answers.acquire(timeout=60)
    finally:
        world.over.set()
        world.up.set()
        for thread in threads:
            thread.join(60)
        child.kill()
        child.join(60)
    world.check()
    assert min(world.acked) > kills // 3
