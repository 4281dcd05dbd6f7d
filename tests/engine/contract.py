"""What every engine keeps to, as tests that ask it through its port alone. A second engine passes them by another ``World``.

A world has one node of four cores, an offer ``small`` of one core, and a way to let what the engine started begin and end.
"""

from __future__ import annotations

from typing import Any, Protocol

from ouvrage.server.engine import Engine


class World(Protocol):
    """An engine and the platform that it works for."""

    engine: Engine

    def submit(self, **spec: Any) -> str:
        """A job to the offer ``small``; its id."""
        ...

    def state(self, job: str) -> str:
        """How a job stands."""
        ...

    def attempts(self, job: str) -> list[Any]:
        """The attempts of a job, in their order."""
        ...

    def begin(self, job: str) -> None:
        """What the engine started for a job begins to run."""
        ...

    def end(self, job: str, outcome: str = "done") -> None:
        """What runs for a job ends."""
        ...

    def told_to_stop(self, job: str) -> str | None:
        """For what the attempt of a job was told to stop, where it runs."""
        ...

    def cancel(self, job: str, why: str = "cancelled") -> None:
        """Ask the engine to end a job."""
        ...

    def withhold(self, device: str | None = None) -> None:
        """Fence the node, and tell the engine."""
        ...

    def explain(self, job: str) -> str | None:
        """The code of why a job waits."""
        ...

    def move(self, us: int) -> None:
        """Time passes."""
        ...


class EngineContract:
    """The tests. ``world`` is a fixture of the module that inherits them."""

    def test_what_is_submitted_is_started_once(self, world: World) -> None:
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

    def test_no_more_runs_than_there_is_room_for(self, world: World) -> None:
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

    def test_a_waiting_job_is_cancelled_at_once(self, world: World) -> None:
        job = world.submit()
        world.cancel(job)
        world.cancel(job)
        assert world.state(job) == "cancelled"
        assert world.engine.observe().started == ()

    def test_a_running_job_is_told_to_stop_and_ends_as_that(self, world: World) -> None:
        job = world.submit(retries=3)
        world.engine.observe()
        world.begin(job)
        world.cancel(job)
        assert (world.state(job), world.told_to_stop(job)) == ("stopping", "cancelled")
        world.end(job, "failed")  # it caught the signal and left with an error
        assert world.state(job) == "cancelled"
        assert world.engine.observe().started == ()

    def test_what_stopped_for_room_is_started_again(self, world: World) -> None:
        job = world.submit()
        world.engine.observe()
        world.begin(job)
        world.cancel(job, "preempted")
        assert world.told_to_stop(job) == "preempted"
        world.end(job, "preempted")
        assert world.state(job) == "waiting"
        assert world.engine.observe().started == (job,)
        assert [each.outcome for each in world.attempts(job)] == ["preempted", None]

    def test_what_is_withheld_takes_nothing_new_and_keeps_what_runs(self, world: World) -> None:
        running = world.submit()
        world.engine.observe()
        world.begin(running)
        world.withhold()
        held = world.submit()
        assert world.engine.observe().started == ()
        assert world.explain(held) == "placement/fenced"
        assert world.state(running) == "running"

    def test_what_failed_is_tried_as_often_as_asked_and_no_more(self, world: World) -> None:
        job = world.submit(retries=1)
        for _ in range(2):
            world.move(600_000_000)
            assert world.engine.observe().started == (job,)
            world.begin(job)
            world.end(job, "failed")
        world.move(600_000_000)
        assert world.engine.observe().started == ()
        assert world.state(job) == "failed"

    def test_what_never_can_start_is_refused_in_words(self, world: World) -> None:
        first = world.submit(name="first")
        after = world.submit(after=["first"])
        assert world.engine.observe().started == (first,)
        assert world.explain(after) == "placement/dependency"
        world.begin(first)
        world.end(first, "failed")
        assert world.engine.observe().refused == (after,)
        assert world.state(after) == "refused"

    def test_nothing_is_explained_that_does_not_wait(self, world: World) -> None:
        job = world.submit()
        world.engine.observe()
        assert world.explain(job) is None
