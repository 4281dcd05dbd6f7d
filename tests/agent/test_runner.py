"""The runner against a server that is real, slow, gone, restarted; and killed itself at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.sandbox_cgroup import group, standing
from ouvrage.agent.enclosure import group_prefix
from tests.support.meter import SOURCES, until
from tests.support.orders import an_order, missing
from tests.support.runner_server import RunnerServer


class Agent:
    """``ouvrage agent run`` as it is installed."""

    def __init__(self, state: Path, server: RunnerServer) -> None:
        self.state = state
        self.server = server
        self.token = state.parent / "token"
        self.token.write_text("once\n")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        words = [sys.executable, "-m", "ouvrage", "agent", "run", "--state", str(self.state)]
        words += [
            "--server",
            self.server.url,
            "--enrol-file",
            str(self.token),
            "--name",
            "here",
            "--no-watch",
        ]
        log = os.open(self.state.parent / "agent.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        self.process = subprocess.Popen([*words, *more], env=environment, stdout=log, stderr=log)
        os.close(log)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(20)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """One node for all tests here: a start of Python costs more than most of them."""
    why = missing()
    if why:
        pytest.skip(why)
    made = Agent(tmp_path_factory.mktemp("node") / "agent", RunnerServer())
    yield made
    if made.running:
        made.kill()
    if made.server.up:
        made.server.stop()
    for name in standing(group_prefix(made.state)):
        group(name).kill()
    if os.environ.get("SHOW_AGENT"):
        print((made.state.parent / "agent.txt").read_text())


@pytest.fixture
def agent(node: Agent) -> Agent:
    if not node.server.up:
        node.server.start()
    if not node.running:
        node.start()
        until(lambda: node.server.kept.keys, "enrolled")
    return node


@pytest.fixture
def server(agent: Agent) -> RunnerServer:
    return agent.server


def test_a_job_from_its_order_to_its_end(agent: Agent, server: RunnerServer) -> None:
    server.kept.inputs["données 1.txt"] = b"from the tenant\n"
    script = "cat in.txt; echo Epoch 1/1; echo result > out.txt; echo $WORD-$KEY | tr a-z A-Z"
    start = server.order(
        an_order(
            "sh", "-c", script,
            inputs=[{"path": "in.txt", "name": "données 1.txt"}],
            outputs=[{"path": "out.txt", "name": "model"}, {"path": "none", "name": "no"}],
            environment=[{"name": "WORD", "value": "ab"}], secrets=[{"name": "KEY", "value": "cd"}],
        )
    )  # fmt: skip
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert (ended["outcome"], ended["exit_code"]) == ("done", 0)
    assert ended["began"] == server.event(start.attempt, "began")["at"]
    log = server.log(start.attempt)
    assert log.startswith("from the tenant\nEpoch 1/1\nAB-CD\n")
    assert "output 'none' is not there" in log
    assert server.kept.files[f"{start.attempt}/outputs/model"] == b"result\n"
    (run,) = [each for each in server.kept.runs if each.run == start.attempt]
    assert json.loads((run.samples or b"").splitlines()[0])["run"] == start.attempt
    assert run.facts[0].kind == "run.started"
    inventory = server.kept.inventory
    assert inventory["name"] == "here" and "sandbox" in inventory["isolations"]
    server.forget(start.attempt)
    until(lambda: not (agent.state / "attempts" / start.attempt).exists(), "forgotten")
    assert agent.stop() == 0


def test_no_secret_stays_on_the_disk(agent: Agent, server: RunnerServer) -> None:
    secret = [{"name": "KEY", "value": "the-secret-itself"}]
    start = server.order(an_order("sh", "-c", "sleep 0.2", secrets=secret))
    until(lambda: server.ended(start.attempt), "its end")
    kept = [f for f in agent.state.rglob("*") if f.is_file()]
    assert kept and not [f for f in kept if b"the-secret-itself" in f.read_bytes()]


def test_killed_while_a_job_runs_it_finds_it_again(agent: Agent, server: RunnerServer) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.1; done; exit 5"
    start = server.order(an_order("sh", "-c", script))
    until(lambda: "line 2" in server.log(start.attempt), "its log")
    agent.kill()
    agent.start()
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert (ended["outcome"], ended["exit_code"]) == ("failed", 5)
    assert server.log(start.attempt) == "".join(f"line {i}\n" for i in range(1, 9))
    assert server.event(start.attempt, "began") is not None


def test_away_from_the_server_it_goes_on(agent: Agent, server: RunnerServer) -> None:
    start = server.order(an_order("sh", "-c", "echo before; sleep 0.4; echo after"))
    until(lambda: "before" in server.log(start.attempt), "its log")
    server.stop()
    result = agent.state / "attempts" / start.attempt / "result.json"
    until(result.exists, "its end, without a server")
    agent.kill()
    agent.start()
    server.start()
    ended = until(lambda: server.ended(start.attempt), "its end, told")
    assert ended["outcome"] == "done"
    assert server.log(start.attempt) == "before\nafter\n"


def test_answers_that_are_lost_count_nothing_twice(agent: Agent, server: RunnerServer) -> None:
    server.kept.failing = 6
    start = server.order(an_order("sh", "-c", "echo one; sleep 0.3; echo two"))
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert ended["outcome"] == "done"
    assert server.kept.failing == 0
    assert server.log(start.attempt) == "one\ntwo\n"


def test_a_stop_reaches_the_command(agent: Agent, server: RunnerServer) -> None:
    start = server.order(
        an_order("sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    )
    until(lambda: "up" in server.log(start.attempt), "its log")
    server.ask_to_stop(start.attempt, "budget", grace_us=10_000_000)
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert (ended["outcome"], ended["reason"], ended["exit_code"]) == ("budget", "by the test", 0)
    assert "bye" in server.log(start.attempt)


def test_a_stop_before_it_began_is_an_end_as_well(agent: Agent, server: RunnerServer) -> None:
    start = server.order(an_order("true", not_before=1 << 60))
    until(lambda: start.attempt in server.kept.known, "known")
    server.ask_to_stop(start.attempt)
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert (ended["outcome"], ended["began"], ended["scrub"]) == ("cancelled", None, "clean")


def test_a_supervisor_that_was_killed_is_a_lost_attempt(agent: Agent, server: RunnerServer) -> None:
    start = server.order(an_order("sh", "-c", "echo $$; sleep 600"))
    files = agent.state / "attempts" / start.attempt
    until(lambda: server.event(start.attempt, "began"), "its beginning")
    os.kill(_holder(files / "lock"), signal.SIGKILL)
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert (ended["outcome"], ended["cause"], ended["scrub"]) == ("lost", "platform", "clean")
    assert ended["used"]["memory_bytes"] is None
    assert not (files / "scratch.img").exists()


def _holder(lock: Path) -> int:
    number = lock.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[5].endswith(f":{number}"):
            return int(words[4])
    raise AssertionError("nobody holds the lock")


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"devices": ["GPU-none"]}, "GPU-none"),
        ({"isolation": "podman", "image": "localhost/x:1"}, "isolation podman"),
        ({"image": "localhost/x:1"}, "do not go together"),
        ({"inputs": [{"path": "a", "name": "../../etc/passwd"}]}, "no name of a file"),
        ({"inputs": [{"path": "../a", "name": "a"}]}, ".."),
        ({"workdir": "/usr/x"}, "/usr/x"),
    ],
)
def test_what_it_cannot_do_is_told_as_never_started(
    agent: Agent, server: RunnerServer, changed: dict[str, object], word: str
) -> None:
    server.kept.inputs["a"] = b""
    start = server.order(an_order("true", **changed))
    ended = until(lambda: server.ended(start.attempt), "its end")
    assert (ended["outcome"], ended["began"]) == ("never started", None)
    assert word in ended["reason"]


def test_many_short_ones_each_run_once(agent: Agent, server: RunnerServer) -> None:
    starts = [server.order(an_order("sh", "-c", f"echo {i}", disk_mib=4)) for i in range(12)]
    for i, start in enumerate(starts):
        ended = until(lambda s=start: server.ended(s.attempt), f"the end of {i}")
        assert ended["outcome"] == "done"
        assert server.log(start.attempt) == f"{i}\n"
    events = server.kept.events
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
