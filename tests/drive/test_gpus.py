"""GPUs that Slurm gave, as devices of ours. No machine here has one: the node's runner is a twin, and says that it has four."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.agent.places import Places
from tests.drive.conftest import Driven
from tests.support.driven import until
from tests.support.runner_twin import Twin, inventory


class Node:
    """A node that runs nothing, and lets go of a place when a test says so."""

    def __init__(self, driven: Driven, name: str, gpus: int) -> None:
        token = driven.owner.post("/v1/nodes/enrolments", {})["secret"]
        self.twin = Twin.enrolled(
            driven.server.url, token, now_us, inventory(name, gpus=gpus, cpus=16)
        )
        self.places = Places(driven.runners.places, name)
        self.twin.ask()

    def starts(self) -> list[str]:
        return [start.attempt for start in self.twin.ask().orders if start.order == "start"]

    def until_started(self, driven: Driven, job: str) -> Any:
        until(
            lambda: self.twin.ask() and any(s.job == job for s in self.twin.starts),
            lambda: f"it is ordered: {driven.explained(job)}",
        )
        return next(start for start in self.twin.starts if start.job == job)

    def finish(self, attempt: str) -> None:
        self.twin.report([self.twin.began(attempt), self.twin.ended(attempt)])
        self.twin.ask()
        until(
            lambda: self.places.release(attempt, 0) or not self.places.is_held(attempt),
            lambda: "the place is free",
        )


@pytest.fixture(scope="module")
def node(driven: Driven) -> Iterator[Node]:
    made = Node(driven, "n3", 4)
    driven.offer("gpus", gpus=2, gpu="NVIDIA GeForce RTX 4090")
    yield made
    made.twin.close()


def _fence(driven: Driven, name: str, device: str | None, held: bool) -> None:
    driven.owner.post(
        f"/v1/nodes/{name}/fence", {"device": device, "held": held, "why": "remapped rows"}
    )


def test_slurms_numbers_become_the_nodes_gpus(driven: Driven, node: Node) -> None:
    jobs = [driven.submit("true", offer="gpus") for _ in range(2)]
    starts = [node.until_started(driven, job) for job in jobs]
    assert [len(start.devices) for start in starts] == [2, 2]
    assert sorted(device for start in starts for device in start.devices) == [
        f"GPU-n3-{n}" for n in range(4)
    ]
    cores = [core for start in starts for core in start.cpus]
    assert len(set(cores)) == len(cores) == 2
    for start in starts:
        node.finish(start.attempt)
    for job in jobs:
        driven.until(job, "done")
    driven.settle()


def test_no_job_gets_a_gpu_that_is_withheld(driven: Driven, node: Node) -> None:
    _fence(driven, "n3", "GPU-n3-1", held=True)
    job = driven.submit("true", offer="gpus")
    until(
        lambda: driven.explained(job)["code"] == "placement/fenced",
        lambda: str(driven.explained(job)),
    )
    assert driven.queue() == []
    _fence(driven, "n3", "GPU-n3-1", held=False)
    node.finish(node.until_started(driven, job).attempt)
    driven.until(job, "done")
    driven.settle()


def test_a_gpu_withheld_while_the_job_waited_at_slurm_is_not_used(
    driven: Driven, node: Node
) -> None:
    driven.lab.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=looking at it")
    job = driven.submit("true", offer="gpus")
    until(lambda: bool(driven.queue()), lambda: "it waits at Slurm")
    _fence(driven, "n3", "GPU-n3-0", held=True)
    driven.lab.run("scontrol", "update", "NodeName=n3", "State=RESUME")
    until(lambda: bool(driven.attempts(job)), lambda: "Slurm gave it a place")
    first = driven.attempts(job)[0]
    assert (first.outcome, first.cause, first.sent_us) == ("never started", "platform", None)
    driven.settle()
    _fence(driven, "n3", "GPU-n3-0", held=False)
    driven.cancel(job)


def test_a_node_that_lies_about_its_gpus_is_named_and_withheld(
    driven: Driven, tmp_path: Path
) -> None:
    node = Node(driven, "n4", 2)  # and Slurm was told of four
    driven.owner.post("/v1/nodes/n3/listing", {"listed": False})
    filling = driven.lab.submit(
        "sleep 600", "--partition=gpu", "--gres=gpu:2", "--nodelist=n4", "--account=vision"
    )
    driven.lab.wait(["squeue", "-h", "-j", filling, "-o", "%T"], "RUNNING")
    try:
        job = driven.submit("true", offer="gpus")
        until(
            lambda: bool(driven.attempts(job)),
            lambda: f"Slurm gave it a place: {driven.explained(job)}",
        )
        first = driven.attempts(job)[0]
        assert (first.outcome, first.reason) == (
            "never started",
            "Slurm gave GPU 2 of n4, which has 2",
        )
        until(
            lambda: (
                "ouvrage: Slurm gave GPU 2" in driven.lab.run("sinfo", "-h", "-n", "n4", "-o", "%E")
            ),
            lambda: "it is drained",
        )
        driven.cancel(job)
    finally:
        driven.lab.run("scancel", filling)
        driven.owner.post("/v1/nodes/n3/listing", {"listed": True})
        driven.owner.post(
            "/v1/nodes/n4/fence", {"held": False, "holder": "scheduler", "why": "the test is over"}
        )
        node.twin.close()
    until(lambda: not _reasons(driven), lambda: f"all are as they were: {_reasons(driven)}")


def _reasons(driven: Driven) -> list[str]:
    """The drains of ours that there are."""
    said = driven.lab.run("sinfo", "-h", "-a", "-N", "-t", "drain", "-O", "NodeList:|,Reason:|")
    return [line for line in said.splitlines() if "ouvrage:" in line]
