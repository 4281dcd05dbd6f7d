"""A disk with no room left: what cannot be kept is refused plainly, nothing is damaged, and all goes on once there is room."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.clock import new_id, now_us
from tests.agent.test_runner import Agent
from tests.faults_platform.load import holds
from tests.faults_platform.processes import Asker, Process, free_port
from tests.support.meter import until
from tests.support.orders import an_order, missing
from tests.support.runner_server import RunnerServer
from tests.support.runner_twin import Twin, inventory
from tests.support.server import running

pytestmark = pytest.mark.slow
_SIZE = "48m"


class SmallDisk:
    """A file system of its own, with a file that takes all that is left of it."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self._ballast = at / "ballast"

    def fill(self) -> None:
        with open(self._ballast, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue

    def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    if os.geteuid():
        pytest.skip("only root makes a small disk")
    at = tmp_path / "disk"
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=0755", "tmpfs", str(at)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield SmallDisk(at)
    subprocess.run(["umount", "--lazy", str(at)], check=True)


def test_a_server_without_room_refuses_plainly_and_goes_on(disk: SmallDisk) -> None:
    job = {"project": "main", "offer": "small", "spec": {"command": ["true"], "inputs": {"a": "a"}}}
    with running(disk.at / "state") as server:
        owner = server.owner
        secret = owner.post("/v1/nodes/enrolments", {})["secret"]
        twin = Twin.enrolled(server.url, secret, now_us, inventory())
        terms = {"name": "small", "cpus": 1, "memory_mib": 16, "disk_mib": 1, "rate": "0.10"}
        owner.post("/v1/offers", terms)
        first = owner.post("/v1/jobs", {**job, "spec": {"command": ["true"]}})["job"]
        second = owner.post("/v1/jobs", job)["job"]
        until(lambda: twin.ask(wait_s=1) and twin.starts, "an order")
        attempt = twin.starts[0].attempt
        disk.fill()
        key = {"Idempotency-Key": new_id()}
        full = [
            owner("POST", "/v1/jobs", job, headers=key),
            owner("PUT", f"/v1/jobs/{second}/files/a", content=b"x" * 100_000),
            twin.send("PUT", f"/v1/runner/attempts/{attempt}/log", b"line\n" * 20_000, offset=0),
        ]
        for answer in full:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store/disk-full")
            assert str(disk.at) not in answer.text
            assert answer.headers["Retry-After"]
        assert owner.get(f"/v1/jobs/{first}")["state"] == "starting"  # it can be read all the while
        disk.make_room()
        again = owner.post("/v1/jobs", job, headers=key)
        assert owner.post("/v1/jobs", job, headers=key)["job"] == again["job"]
        assert owner("PUT", f"/v1/jobs/{second}/files/a", content=b"x" * 100_000).status_code == 200
        assert twin.log(attempt, 0, b"line\n" * 20_000).offset == 100_000
        assert owner("GET", f"/v1/jobs/{first}/log").content == b"line\n" * 20_000
        twin.report([twin.began(attempt), twin.ended(attempt)])
        assert owner.get(f"/v1/jobs/{first}")["state"] == "done"
        twin.close()
    holds(disk.at / "state")


def test_a_server_killed_on_a_full_disk_comes_back_with_all_that_it_had(disk: SmallDisk) -> None:
    state = disk.at / "state"
    port = free_port()
    server = Process(
        disk.at.parent / "server.txt", "up", "--state", str(state), "--no-runner", "--json",
        "--listen", f"127.0.0.1:{port}",
    )  # fmt: skip
    server.start()
    server.said()
    owner = Asker(f"http://127.0.0.1:{port}", (state / "owner.token").read_text("ascii").strip())
    made = owner.post("/v1/projects", {"name": "before"})["project"]
    disk.fill()
    server.kill()
    disk.make_room()
    holds(state)
    server.start()
    server.said()
    assert made in {each["project"] for each in owner.all("/v1/projects")}
    owner.close()
    server.stop()
    holds(state)


def test_a_node_without_room_starts_later_what_it_was_told_and_once(disk: SmallDisk) -> None:
    why = missing()
    if why:
        pytest.skip(why)
    agent = Agent(disk.at / "agent", RunnerServer())
    agent.start()
    try:
        until(lambda: agent.server.kept.keys, "enrolled")
        disk.fill()
        order = agent.server.order(an_order("sh", "-c", "echo ran"))
        threading.Event().wait(1.0)  # it is given again and again, and fails each time
        assert agent.running
        assert agent.server.ended(order.attempt) is None
        disk.make_room()
        until(lambda: agent.server.ended(order.attempt), "its end")
        assert agent.server.log(order.attempt) == "ran\n"
    finally:
        if agent.running:
            agent.stop()
        agent.server.stop()
