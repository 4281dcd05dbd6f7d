"""The embedded engine, look by look under a clock that stands: what each look does and no more.

What all engines keep to is ``contract``; here is what can be asked only of one that looks when it is told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ouvrage.model.machines import FenceSet
from ouvrage.server.engine import Engine, stop
from ouvrage.store.platform.machines import set_fence
from ouvrage.store.platform.work import attempts_of, job_of
from tests.platform.working import Working, working_on


@dataclass
class Embedding:
    """The embedded engine with a runner that runs nothing, a node of four cores, and an offer ``small`` of one."""

    working: Working
    engine: Engine

    def submit(self, **spec: Any) -> str:
        return self.working.submit(self.working.owner, "small", **spec)["job"]

    def state(self, job: str) -> str:
        return self.working.owner.get(f"/v1/jobs/{job}")["state"]

    def attempts(self, job: str) -> list[Any]:
        with self.working.server.platform.reading() as connection:
            return list(attempts_of(connection, job))

    @property
    def twin(self) -> Any:
        return self.working.twins[0]

    def begin(self, job: str) -> None:
        self.twin.ask()
        self.twin.report([self.twin.began(self.attempts(job)[-1].attempt)])

    def end(self, job: str, outcome: str = "done") -> None:
        self.twin.report([self.twin.ended(self.attempts(job)[-1].attempt, outcome)])
        self.twin.ask()

    def told_to_stop(self, job: str) -> str | None:
        attempt = self.attempts(job)[-1].attempt
        for order in self.twin.ask().orders:
            if order.order == "stop" and order.attempt == attempt:
                return order.why
        return None

    def cancel(self, job: str, why: str = "cancelled") -> None:
        platform = self.working.server.platform
        with platform.writing() as tx:
            row = job_of(tx.connection, job)
            assert row is not None
            if why == "cancelled":
                self.engine.cancel(tx, row, why=why, reason="by the test")
                return
            for each in attempts_of(tx.connection, job):
                stop(platform, tx, each, why=why, reason="by the test")

    def withhold(self, device: str | None = None) -> None:
        with self.working.server.platform.writing() as tx:
            fence = FenceSet(
                node=self.twin.node,
                device=device,
                holder="automation",
                held=True,
                why="",
                by="test",
            )
            set_fence(tx.connection, fence, tx.now_us)
            self.engine.withhold(tx, self.twin.node, device)

    def explain(self, job: str) -> str | None:
        with self.working.server.platform.reading() as connection:
            row = job_of(connection, job)
            assert row is not None
            why = self.engine.explain(connection, row)
        return why and why.code

    def move(self, us: int) -> None:
        self.working.clock.move(us)
        self.twin.ask()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Embedding]:
    with working_on(tmp_path / "state") as working:
        working.node(cpus=4)
        working.offer("small", cpus=1)
        yield Embedding(working, working.engine)


def test_what_is_submitted_is_started_once(world: Embedding) -> None:
    job = world.submit()
    assert world.state(job) == "waiting"
    assert world.engine.observe().started == (job,)
    for _ in range(3):
        assert world.engine.observe().started == ()
    assert [each.number for each in world.attempts(job)] == [1]
    world.begin(job)
    assert world.state(job) == "running"
    world.end(job)
    assert world.state(job) == "done"
    assert world.engine.observe().started == ()


def test_no_more_runs_than_there_is_room_for(world: Embedding) -> None:
    jobs = [world.submit() for _ in range(6)]
    assert len(world.engine.observe().started) == 4
    waiting = [job for job in jobs if world.state(job) == "waiting"]
    assert [world.explain(job) for job in waiting] == ["placement/waits-cpu"] * 2
    cores = [core for job in jobs for each in world.attempts(job) for core in each.placed.cpus]
    assert sorted(cores) == sorted(set(cores))
    started = next(job for job in jobs if world.state(job) == "starting")
    world.begin(started)
    world.end(started)
    assert len(world.engine.observe().started) == 1


def test_a_waiting_job_is_cancelled_at_once(world: Embedding) -> None:
    job = world.submit()
    world.cancel(job)
    world.cancel(job)
    assert world.state(job) == "cancelled"
    assert world.engine.observe().started == ()


def test_a_running_job_is_told_to_stop_and_ends_as_that(world: Embedding) -> None:
    job = world.submit(retries=3)
    world.engine.observe()
    world.begin(job)
    world.cancel(job)
    assert (world.state(job), world.told_to_stop(job)) == ("stopping", "cancelled")
    world.end(job, "failed")  # it caught the signal and left with an error
    assert world.state(job) == "cancelled"
    assert world.engine.observe().started == ()


def test_what_stopped_for_room_is_started_again(world: Embedding) -> None:
    job = world.submit()
    world.engine.observe()
    world.begin(job)
    world.cancel(job, "preempted")
    assert world.told_to_stop(job) == "preempted"
    world.end(job, "preempted")
    assert world.state(job) == "waiting"
    assert world.engine.observe().started == (job,)
    assert [each.outcome for each in world.attempts(job)] == ["preempted", None]


def test_what_is_withheld_takes_nothing_new_and_keeps_what_runs(world: Embedding) -> None:
    running = world.submit()
    world.engine.observe()
    world.begin(running)
    world.withhold()
    held = world.submit()
    assert world.engine.observe().started == ()
    assert world.explain(held) == "placement/fenced"
    assert world.state(running) == "running"


def test_what_failed_is_tried_as_often_as_asked_and_no_more(world: Embedding) -> None:
    job = world.submit(retries=1)
    for _ in range(2):
        world.move(600_000_000)
        assert world.engine.observe().started == (job,)
        world.begin(job)
        world.end(job, "failed")
    world.move(600_000_000)
    assert world.engine.observe().started == ()
    assert world.state(job) == "failed"


def test_what_never_can_start_is_refused_in_words(world: Embedding) -> None:
    first = world.submit(name="first")
    after = world.submit(after=["first"])
    assert world.engine.observe().started == (first,)
    assert world.explain(after) == "placement/dependency"
    world.begin(first)
    world.end(first, "failed")
    assert world.engine.observe().refused == (after,)
    assert world.state(after) == "refused"


def test_nothing_is_explained_that_does_not_wait(world: Embedding) -> None:
    job = world.submit()
    world.engine.observe()
    assert world.explain(job) is None
