"""A platform on some engine, as it is installed: ``ouvrage up``, and ``ouvrage agent run`` for each of two nodes.

What the contract asks of every engine it asks of this. An engine's own part says what its nodes have, what it calls its reasons, how one of
its nodes breaks, and what stands beside the server.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import now_us
from ouvrage.ledger.kinds import read
from ouvrage.model.work import AttemptEnded, AttemptOrdered
from ouvrage.server.app import engine_of
from ouvrage.server.configuration import configured
from ouvrage.server.context import Platform
from ouvrage.server.engine import Engine
from ouvrage.server.serving import platform_of_state
from ouvrage.store.platform.work import AttemptRow, attempts_of
from tests.faults_platform.load import holds
from tests.faults_platform.processes import Asker, Process, free_port
from tests.support.relay import Relay
from tests.support.runner_twin import Twin, inventory

NODES = ("n1", "n2")
WITH_GPUS = "n3"
GPUS = 4
PATIENCE_S = 60.0
PROMISED_S = 2
"""The notice of the offer that may be interrupted."""
LONG = ("sh", "-c", "trap 'exit 7' TERM; sleep 600 & wait")
"""Ends when it is told to, and says so by its code."""


def until(holds: Callable[[], object], words: Callable[[], str]) -> None:
    """Look again until it is so; fail with these words after ``PATIENCE_S``."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE_S} s: {words()}"
        threading.Event().wait(0.05)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What is an engine's own. ``cores``: of each node of ``NODES``; ``waits``: the codes of what waits for room.

    ``config``: what the owner writes into ``server.toml``; ``agent``: more words for each runner; ``losing``: has the next answer lost that
    the engine itself waits for; ``free``: waits until nothing of an ended job is left; ``let_go``: a place on a node whose runner is the
    tests' is given back; ``break_node`` and ``mend_node`` take a node's name. ``splits_nodes``: one GPU can be withheld from new work alone.
    """

    cores: int
    waits: frozenset[str]
    splits_nodes: bool
    config: str = ""
    agent: Sequence[str] = ()
    losing: Callable[[], None] = lambda: None
    free: Callable[[], None] = lambda: None
    let_go: Callable[[str], None] = lambda _: None
    break_node: Callable[[str, Rig], None]
    mend_node: Callable[[str, Rig], None]


@dataclass
class Rig:
    """The engine under test, with all that belongs to it."""

    at: Path
    parts: Parts
    server: Process
    relay: Relay
    runners: Mapping[str, Process]
    owner: Asker
    acme: Asker
    platform: Platform
    engine: Engine
    nodes: dict[str, str] = field(default_factory=dict[str, str])
    """By node, its name."""

    def submit(self, *command: str, offer: str = "small", **spec: Any) -> str:
        asked = {"project": "main", "offer": offer, "spec": {"command": list(command), **spec}}
        return self.acme.post("/v1/jobs", asked)["job"]

    def job(self, job: str) -> dict[str, Any]:
        return self.acme.get(f"/v1/jobs/{job}")

    def until(self, job: str, *states: str) -> dict[str, Any]:
        until(
            lambda: self.job(job)["state"] in states,
            lambda: f"{states}: {self.code(job)} {self.job(job)}\n{self.words()}",
        )
        return self.job(job)

    def code(self, job: str) -> str:
        return self.owner.get(f"/v1/jobs/{job}/explain")["code"]

    def until_told(self, job: str, *codes: str) -> None:
        """Until a job waits for one of these reasons."""
        until(lambda: self.code(job) in codes, lambda: f"{codes}: {self.code(job)}\n{self.words()}")

    def cancel(self, *jobs: str) -> None:
        for job in jobs:
            self.acme.post(f"/v1/jobs/{job}/cancel", {})
        for job in jobs:
            self.until(job, "cancelled")

    def clear(self) -> None:
        """Nothing goes on, also where a test broke off."""
        going = [job["job"] for job in self.acme.all("/v1/jobs") if not job["ended_us"]]
        for job in going:
            self.acme.post(f"/v1/jobs/{job}/cancel", {})
        for job in going:
            self.until(job, "cancelled", "done", "failed", "refused")

    def attempts(self, job: str) -> list[AttemptRow]:
        with self.platform.reading() as connection:
            return attempts_of(connection, job)

    def where(self, job: str) -> str:
        """The name of the node of a job's last attempt."""
        return self.nodes[self.attempts(job)[-1].node]

    def log(self, job: str) -> list[str]:
        return self.acme("GET", f"/v1/jobs/{job}/log").text.splitlines()

    def fence(self, node: str, held: bool, device: str | None = None) -> None:
        self.owner.post(
            f"/v1/nodes/{node}/fence", {"device": device, "held": held, "why": "looking at it"}
        )

    def full(self, *, offer: str = "whole") -> list[str]:
        """A job on each node, which has room for nothing more."""
        held = [self.submit(*LONG, offer=offer) for _ in NODES]
        for job in held:
            self.until(job, "running")
        assert {self.where(job) for job in held} == set(NODES)
        return held

    def key(self, node: str) -> str:
        """With what a node's runner proves itself."""
        import json

        return json.loads((self.at / f"agent-{node}" / "node.json").read_text())["key"]

    def adds_up(self) -> None:
        """The laws hold, and of every attempt that was ordered one end is recorded."""
        values = [read(entry.fact) for entry in holds(self.at / "state")]
        ordered = [value.attempt for value in values if isinstance(value, AttemptOrdered)]
        ended = [value.attempt for value in values if isinstance(value, AttemptEnded)]
        assert len(set(ordered)) == len(ordered)
        assert sorted(ended) == sorted(ordered)

    def words(self) -> str:
        """What the processes said last."""
        logs = (self.server.log, *(runner.log for runner in self.runners.values()))
        return "\n".join(f"== {log.name}\n{log.read_text()[-1500:]}" for log in logs)

    @contextmanager
    def with_gpus(self) -> Iterator[Twin]:
        """A third node, whose runner runs nothing and tells of ``GPUS`` GPUs; no machine of the tests has one."""
        token = self.owner.post("/v1/nodes/enrolments", {})["secret"]
        url = self.owner.url
        twin = Twin.enrolled(url, token, now_us, inventory(WITH_GPUS, gpus=GPUS, cpus=16))
        twin.ask()
        try:
            yield twin
        finally:
            self.owner.post(f"/v1/nodes/{WITH_GPUS}/listing", {"listed": False})
            twin.close()


@contextmanager
def rig(at: Path, parts: Parts) -> Iterator[Rig]:
    """A platform that is up with two nodes, an offer of each kind and a tenant."""
    state = at / "state"
    state.mkdir(mode=0o700)
    (state / "server.toml").write_text(parts.config)
    (state / "health.toml").write_text('turned_on = ["restart_job"]\n')
    url = f"http://127.0.0.1:{free_port()}"
    listen = url.removeprefix("http://")
    up = ("up", "--state", str(state), "--no-runner", "--json", "--listen", listen)
    with ExitStack() as ends:
        server = Process(at / "server.txt", *up)
        ends.callback(server.stop)
        server.start()
        server.said()
        relay = ends.enter_context(Relay(url))
        owner = Asker(url, (state / "owner.token").read_text("ascii").strip())
        ends.callback(owner.close)
        runners = {name: _runner(at, name, relay.url, parts.agent) for name in NODES}
        for runner in runners.values():
            ends.callback(runner.stop)
            runner.start(owner.post("/v1/nodes/enrolments", {})["secret"].encode())
        settings = configured(state, secure=False, behind_proxy=False)
        platform = ends.enter_context(platform_of_state(state, None, settings))
        engine = engine_of(platform, "alone")
        ends.callback(engine.close)
        acme = owner.tenant("acme")
        ends.callback(acme.close)
        _offers(owner, parts.cores)
        made = Rig(at, parts, server, relay, runners, owner, acme, platform, engine)
        until(lambda: len(_nodes(owner)) == len(NODES), made.words)
        made.nodes |= _nodes(owner)
        yield made


def _runner(at: Path, name: str, url: str, more: Sequence[str]) -> Process:
    words = ("--state", str(at / f"agent-{name}"), "--server", url, "--enrol-file", "-")
    return Process(
        at / f"agent-{name}.txt", "agent", "run", *words, "--name", name, "--no-watch", *more
    )


def _nodes(owner: Asker) -> dict[str, str]:
    return {each["node"]: each["name"] for each in owner.get("/v1/nodes")["items"]}


def _offers(owner: Asker, cores: int) -> None:
    small = {"cpus": 1, "memory_mib": 64, "disk_mib": 16, "rate": "0.36"}
    whole = {**small, "cpus": cores}
    promised = {"interruptible": True, "notice_us": PROMISED_S * 1_000_000}
    for name, terms in (
        ("small", small),
        ("whole", whole),
        ("spot", {**whole, **promised}),
        ("pair", {**small, "gpus": 2, "gpu": "NVIDIA GeForce RTX 4090"}),
    ):
        owner.post("/v1/offers", {"name": name, **terms})


def cores_here() -> int:
    """Those of this machine that a runner tells of."""
    return len(os.sched_getaffinity(0))
