"""What every engine keeps to, whoever gives out the places: one suite, of real jobs on a real platform.

Decides nothing about how an engine does it. Where two engines may rightly differ, ``Parts`` of the engine under test says how.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.engine.under_test import (
    GPUS,
    LONG,
    NODES,
    PROMISED_S,
    WITH_GPUS,
    Rig,
    until,
)

ONCE = ("sh", "-c", "echo ran")


class EngineContract:
    """The tests. ``rig`` is a fixture of the module that inherits them; each leaves the nodes free and whole."""

    @pytest.fixture(autouse=True)
    def left_free(self, rig: Rig) -> Iterator[None]:
        yield
        rig.clear()
        rig.parts.free()

    def test_what_is_submitted_is_executed_once_however_many_look(self, rig: Rig) -> None:
        over = threading.Event()

        def look() -> None:
            while not over.is_set():
                rig.engine.observe()
                over.wait(0.02)

        lookers = [threading.Thread(target=look) for _ in range(2)]
        for each in lookers:
            each.start()
        try:
            jobs = [rig.submit(*ONCE) for _ in range(5)]
            told = [rig.until(job, "done", "failed") for job in jobs]
        finally:
            over.set()
            for each in lookers:
                each.join()
        assert [(each["state"], each["attempts"]) for each in told] == [("done", 1)] * len(jobs)
        assert [rig.log(job) for job in jobs] == [["ran"]] * len(jobs)
        assert rig.engine.observe().started == ()

    def test_lost_answers_execute_nothing_twice(self, rig: Rig) -> None:
        before = rig.relay.lost
        rig.parts.losing()
        rig.relay.lose_answer('"order":"start"')
        rig.relay.lose("/v1/runner/events")
        job = rig.submit(*ONCE)
        told = rig.until(job, "done", "failed")
        assert (told["state"], told["attempts"], rig.log(job)) == ("done", 1, ["ran"])
        assert rig.relay.lost == before + 2

    def test_what_has_no_room_waits_and_the_higher_priority_goes_first(self, rig: Rig) -> None:
        held = rig.full()
        low, never, high = (
            rig.submit("true", offer="whole", priority=priority) for priority in (-5, 0, 5)
        )
        for job in (low, never, high):
            rig.until_told(job, *rig.parts.waits)
        rig.cancel(never)
        assert rig.attempts(never) == []
        rig.cancel(held[0])
        for job in (high, low):
            assert rig.until(job, "done", "failed")["state"] == "done"
        assert rig.attempts(high)[0].ended_us <= rig.attempts(low)[0].ordered_us
        rig.cancel(held[1])

    def test_a_running_job_that_is_cancelled_is_given_its_grace_and_no_more(self, rig: Rig) -> None:
        heeds = rig.submit(*LONG, retries=3)
        deaf = rig.submit("sh", "-c", "trap '' TERM; while :; do sleep 600; done", grace="1s")
        for job in (heeds, deaf):
            rig.until(job, "running")
        rig.cancel(heeds, deaf)
        (one,), (other,) = rig.attempts(heeds), rig.attempts(deaf)
        assert (one.outcome, one.cause, one.exit_code) == ("cancelled", "tenant", 7)
        assert (other.outcome, other.signal) == ("cancelled", 9)

    def test_what_is_withheld_takes_nothing_new_and_keeps_what_runs(self, rig: Rig) -> None:
        running = rig.submit(*LONG)
        rig.until(running, "running")
        first = rig.where(running)
        second = next(name for name in NODES if name != first)
        rig.fence(first, held=True)
        try:
            done = [rig.submit("true") for _ in range(3)]
            for job in done:
                assert rig.until(job, "done", "failed")["state"] == "done"
            assert {rig.where(job) for job in done} == {second}
            rig.fence(second, held=True)
            waits = rig.submit("true")
            rig.until_told(waits, "placement/fenced")
            assert rig.job(running)["state"] == "running"
        finally:
            for name in NODES:
                rig.fence(name, held=False)
        assert rig.until(waits, "done", "failed")["state"] == "done"
        rig.cancel(running)

    def test_gpus_and_cores_are_one_attempts_at_a_time_and_none_that_is_withheld(
        self, rig: Rig
    ) -> None:
        with rig.with_gpus() as twin:
            rig.nodes[twin.node] = WITH_GPUS
            jobs = [rig.submit("true", offer="pair") for _ in range(3)]
            until(lambda: twin.ask() and len(twin.starts) == 2, lambda: str(map(rig.code, jobs)))
            given = [device for start in twin.starts for device in start.devices]
            assert sorted(given) == [f"GPU-{WITH_GPUS}-{n}" for n in range(GPUS)]
            cores = [core for start in twin.starts for core in start.cpus]
            assert len(cores) == len(set(cores)) == 2
            (third,) = set(jobs) - {start.job for start in twin.starts}
            rig.until_told(third, *rig.parts.waits)
            bad = twin.starts[0].devices[0]
            rig.fence(WITH_GPUS, held=True, device=bad)
            for start in list(twin.starts):
                twin.report([twin.began(start.attempt), twin.ended(start.attempt)])
                rig.parts.let_go(start.attempt)
            twin.ask()
            if not rig.parts.splits_nodes:
                rig.until_told(third, "placement/fenced")
                rig.fence(WITH_GPUS, held=False, device=bad)
            until(lambda: twin.ask() and len(twin.starts) == 3, lambda: rig.code(third))
            last = twin.starts[-1]
            assert last.job == third
            assert not rig.parts.splits_nodes or bad not in last.devices
            twin.report([twin.began(last.attempt), twin.ended(last.attempt)])
            rig.parts.let_go(last.attempt)
            rig.fence(WITH_GPUS, held=False, device=bad)
            for job in jobs:
                assert rig.job(job)["state"] == "done"
            rig.parts.free()

    def test_what_follows_another_waits_for_its_success(self, rig: Rig) -> None:
        first = rig.submit("sh", "-c", "sleep 1", name="first")
        second = rig.submit("false", after=["first"], name="second")
        third = rig.submit("true", after=["second"])
        assert rig.code(third) == "placement/dependency"
        rig.until(second, "failed")
        rig.until(third, "refused")
        assert rig.attempts(first)[0].ended_us <= rig.attempts(second)[0].ordered_us
        assert rig.attempts(third) == []
        assert rig.code(third) == "job/dependency"

    def test_what_fails_is_tried_as_often_as_asked_and_not_at_once(self, rig: Rig) -> None:
        job = rig.submit("sh", "-c", "echo ran; exit 3", retries=1)
        rig.until_told(job, "placement/paused")
        rig.until(job, "failed")
        first, second = rig.attempts(job)
        assert [each.exit_code for each in (first, second)] == [3, 3]
        assert second.ordered_us - first.ended_us >= 9_900_000

    def test_what_makes_room_is_told_before_and_goes_on_later(self, rig: Rig) -> None:
        spots = rig.full(offer="spot")
        prime = rig.submit("sh", "-c", "sleep 1", offer="whole")
        told = rig.until(prime, "done", "failed")
        assert told["state"] == "done", rig.words()
        until(
            lambda: all(rig.job(job)["state"] == "running" for job in spots),
            lambda: f"all go on: {[rig.job(job) for job in spots]}",
        )
        (cleared,) = [first for first, *later in map(rig.attempts, spots) if later]
        assert (cleared.outcome, cleared.exit_code) == ("preempted", 7)
        assert cleared.ended_us <= rig.attempts(prime)[0].began_us
        assert cleared.stop_grace_us is not None
        assert cleared.stop_grace_us <= PROMISED_S * 1_000_000
        rig.cancel(*spots)

    def test_a_job_whose_node_breaks_goes_on_elsewhere(self, rig: Rig) -> None:
        job = rig.submit(*LONG)
        rig.until(job, "running")
        bad = rig.where(job)
        rig.parts.break_node(bad, rig)
        try:
            until(lambda: len(rig.attempts(job)) == 2, rig.words)
            rig.until(job, "running")
            first, second = rig.attempts(job)
            assert (first.outcome, first.cause) == ("hardware", "hardware")
            assert rig.nodes[second.node] != bad
        finally:
            rig.parts.mend_node(bad, rig)
        rig.cancel(job)

    def test_what_is_killed_is_started_again_and_loses_and_doubles_nothing(self, rig: Rig) -> None:
        goes_on = rig.submit("sh", "-c", "echo ran; sleep 3")
        rig.until(goes_on, "running")
        waits = rig.submit(*ONCE)
        rig.server.kill()
        runner = rig.runners[rig.where(goes_on)]
        runner.kill()
        runner.start()
        rig.server.start()
        rig.server.said()
        for job in (goes_on, waits):
            told = rig.until(job, "done", "failed")
            assert (told["state"], told["attempts"], rig.log(job)) == ("done", 1, ["ran"])

    def test_at_the_end_the_laws_hold_and_every_attempt_has_one_end(self, rig: Rig) -> None:
        rig.adds_up()
