"""Several server processes and killed ones: one gives out places at a time, and a kill loses nothing and doubles nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.store.audit import audit
from ouvrage.store.platform.claims import drop_claim, take_claim
from ouvrage.store.platform.rebuild_work import rebuild_odd_work, rows_held
from ouvrage.store.store import Store, open_store
from ouvrage.store.transaction import transaction
from tests.platform.test_attempts import holds, ready, started
from tests.platform.working import Working
from tests.support.runner_twin import Twin, inventory
from tests.support.server import NO_CA

JOBS = 40
KILLS = 3
CLIENTS: dict[int, httpx2.Client] = {}


def test_a_claim_is_one_process_at_a_time_until_it_runs_out(address: str) -> None:
    def take(store: Store, token: str, now: int) -> bool:
        with transaction(store, now_us=now, own_source="s") as tx:
            return take_claim(tx.connection, "placement", token, now_us=now, for_us=10)

    with open_store(address) as one, open_store(address) as other:
        assert take(one, "a", 100)
        assert not take(other, "b", 105)
        assert take(one, "a", 108)  # renewed
        assert not take(other, "b", 115)
        assert take(other, "b", 118)  # it ran out
        assert not take(one, "a", 120)
        with transaction(other, now_us=121, own_source="s") as tx:
            drop_claim(tx.connection, "placement", "a")  # not one's own: nothing happens
            drop_claim(tx.connection, "placement", "b")
        assert take(one, "a", 122)


def test_tables_are_made_anew_from_the_facts(working: Working) -> None:
    ann, twin = ready(working, gpus=1), working.twins[0]
    job, attempt = started(working, ann)
    twin.report([twin.began(attempt)])
    working.submit(ann)
    working.owner.post("/v1/nodes/node-1/fence", {"held": True, "why": "x"})
    store = working.server.platform.store
    assert not rebuild_odd_work(store)
    before = rows_held(store)
    with transaction(store, now_us=now_us(), own_source="s") as tx:
        for table in ("nodes", "fences", "offers", "leases", "jobs", "attempts"):
            tx.connection.exec_driver_sql(f"DELETE FROM {table}")
    assert rebuild_odd_work(store)
    after = rows_held(store)
    assert after.keys() == before.keys()
    holds(working)
    told = ann.get(f"/v1/jobs/{job}")
    assert told["last"]["state"] == "running"
    twin.ask()
    twin.report([twin.ended(attempt)])
    assert ann.get(f"/v1/jobs/{job}")["state"] == "done"
    holds(working)


class Server:
    """A server process that is killed and started again on the same port."""

    def __init__(self, state: Path, port: int) -> None:
        self.state, self.url = state, f"http://127.0.0.1:{port}"
        self.command = [sys.executable, "-m", "ouvrage", "up", "--state", str(state), "--no-runner"]
        self.command += ["--json", "--listen", f"127.0.0.1:{port}"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stdout.read(1) == b"{"

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._gone(10)

    def end(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self._gone(20)

    def _gone(self, seconds: float) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.wait(seconds)
        self.process.stdout.close()


def free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def asking(url: str, token: str, path: str, body: object) -> httpx2.Response:
    """Ask until it is answered, under one key, as the command line does."""
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": new_id()}
    me = threading.get_ident()
    if me not in CLIENTS:
        CLIENTS[me] = httpx2.Client(timeout=30, verify=NO_CA)
    http = CLIENTS[me]
    until = time.monotonic() + 60
    while True:
        try:
            answer = http.post(f"{url}{path}", json=body, headers=headers)
            if answer.status_code not in (429, 503):
                return answer
        except httpx2.TransportError:
            pass
        assert time.monotonic() < until
        threading.Event().wait(0.02)


def test_a_server_killed_again_and_again_loses_no_job_and_runs_none_twice(tmp_path: Path) -> None:
    server = Server(tmp_path / "state", free_port())
    server.start()
    token = (server.state / "owner.token").read_text("ascii").strip()
    secret = asking(server.url, token, "/v1/nodes/enrolments", {}).json()["secret"]
    twin = Twin.enrolled(server.url, secret, now_us, inventory(cpus=8))
    terms = {"name": "small", "cpus": 1, "memory_mib": 16, "disk_mib": 1, "rate": "0.10"}
    assert asking(server.url, token, "/v1/offers", terms).status_code == 201
    job = {"project": "main", "offer": "small", "spec": {"command": ["true"]}}
    submitted: set[str] = set()

    def submit() -> None:
        for _ in range(JOBS):
            answer = asking(server.url, token, "/v1/jobs", job)
            assert answer.status_code == 201, answer.text
            submitted.add(answer.json()["job"])

    ended: dict[str, str] = {}
    waiting: list = []

    def end_all() -> None:
        while len(ended) < JOBS:
            try:
                twin.ask(wait_s=1)
                for start in [s for s in twin.starts if s.attempt not in ended]:
                    ended[start.attempt] = start.job
                    waiting.extend([twin.began(start.attempt), twin.ended(start.attempt)])
                twin.report(waiting)
                waiting.clear()
            except (httpx2.TransportError, AssertionError):
                threading.Event().wait(0.05)

    threads = [threading.Thread(target=submit), threading.Thread(target=end_all)]
    for thread in threads:
        thread.start()
    for number in range(KILLS):
        target = (number + 1) * JOBS // (KILLS + 1)
        until = time.monotonic() + 30
        while len(ended) < target and time.monotonic() < until:
            threading.Event().wait(0.005)
        server.kill()
        server.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    twin.report(waiting)
    twin.close()
    for client in CLIENTS.values():
        client.close()
    server.end()
    assert set(ended.values()) == submitted
    assert len(submitted) == JOBS
    with open_store(server.state / "ouvrage.db") as store:
        assert audit(store, server.state).first is None
        kinds = [entry.fact.kind for entry in store.records()]
    for kind in ("platform.job", "platform.attempt", "attempt.ended", "lease.ended", "job.ended"):
        assert kinds.count(kind) == JOBS
