"""Kill the server and the runner again and again under a mixed load: nothing is lost, run twice, or charged twice.

After every kill of the server the store that it left must hold by itself; after every kill of the runner it must hold while the
server goes on. At the end each log is whole, and every job came to the end that it had to.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ouvrage.adapters.sandbox_cgroup import standing
from ouvrage.agent.enclosure import group_prefix
from tests.faults_platform.load import Load, counted_once, holds
from tests.faults_platform.processes import Asker, Process, free_port
from tests.support.orders import missing

pytestmark = pytest.mark.slow
KILLS = 20
_LONGEST_PAUSE_S = 0.5


class Platform:
    """``ouvrage up`` and ``ouvrage agent run``, to be killed one by one."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.url = f"http://127.0.0.1:{free_port()}"
        logs = state.parent
        self.server = Process(
            logs / "server.txt", "up", "--state", str(state), "--no-runner", "--json",
            "--listen", self.url.removeprefix("http://"),
        )  # fmt: skip
        self.runner = Process(
            logs / "runner.txt", "agent", "run", "--state", str(state / "agent"),
            "--server", self.url, "--enrol-file", "-", "--no-watch",
        )  # fmt: skip

    def start(self) -> Asker:
        self.server.start()
        self.server.said()
        owner = Asker(self.url, (self.state / "owner.token").read_text("ascii").strip())
        secret = owner.post("/v1/nodes/enrolments", {})["secret"]
        self.runner.start(secret.encode())
        while not owner.get("/v1/nodes?limit=1")["items"]:  # it tries its sandbox first
            threading.Event().wait(0.1)
        return owner

    def end(self) -> None:
        for process in (self.runner, self.server):
            process.stop()


def killed(platform: Platform, chance: random.Random, kills: int) -> None:
    """Kill both in turn, each at a moment that nobody chose."""
    for _ in range(kills):
        threading.Event().wait(chance.random() * _LONGEST_PAUSE_S)
        platform.server.kill()
        holds(platform.state)
        platform.server.start()
        platform.server.said()
        threading.Event().wait(chance.random() * _LONGEST_PAUSE_S)
        platform.runner.kill()
        holds(platform.state)
        platform.runner.start()


@pytest.mark.parametrize(
    "rounds", [pytest.param(1), pytest.param(25, marks=pytest.mark.soak)], ids=["20", "500"]
)
def test_kills(tmp_path: Path, rounds: int) -> None:
    why = missing()
    if why:
        pytest.skip(why)
    for number in range(rounds):
        directory = tmp_path / str(number)
        directory.mkdir()
        _one_round(directory, number)


def _one_round(directory: Path, seed: int) -> None:
    platform = Platform(directory / "state")
    try:
        load = Load(platform.start(), seed)
        load.thread.start()
        killed(platform, random.Random(seed), KILLS)
        load.finish(120)
        load.logs_are_whole()
        load.close()
    finally:
        platform.end()
    counted_once(holds(platform.state), load.jobs)
    assert list(standing(group_prefix(platform.state / "agent"))) == []
    verify = [sys.executable, "-m", "ouvrage", "verify"]
    environment = {**os.environ, "OUVRAGE_HOME": str(platform.state)}
    said = subprocess.run(verify, env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
