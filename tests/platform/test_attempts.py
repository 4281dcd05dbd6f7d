"""What runners report, in every order and as often as they like: each attempt begins once, ends once, and is billed once."""

from __future__ import annotations

from pathlib import Path

from ouvrage.store.audit import audit
from tests.platform.working import Clock, Working, working_on
from tests.support.server import Client

MINUTE = 60_000_000


def holds(working: Working) -> None:
    """Every law over all that was recorded, the tables against the facts among them."""
    platform = working.server.platform
    found = audit(platform.store, platform.state_dir)
    assert found.first is None, found.first


def started(working: Working, who: Client, **spec: object) -> tuple[str, str]:
    """A job whose attempt its runner knows: the ids of both."""
    job = working.submit(who, **spec)["job"]
    working.engine.observe()
    working.twins[0].ask()
    return job, working.twins[0].starts[-1].attempt


def ready(working: Working, **more: object) -> Client:
    working.node(**more)
    working.offer("standard")
    return working.tenant("acme")


def test_events_sent_again_count_once(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann)
    began = twin.began(attempt)
    for _ in range(3):
        assert twin.report([began]).sequence == 1
    working.clock.move(MINUTE)
    progress, ended = twin.progress(attempt, 7), twin.ended(attempt)
    assert twin.report([began, progress]).sequence == 2
    assert ann.get(f"/v1/jobs/{job}")["last"]["units"] == 7
    for _ in range(2):
        assert twin.report([progress, ended]).sequence == 3
    kinds = [entry.fact.kind for entry in working.records()]
    assert (
        kinds.count("attempt.ended") == kinds.count("lease.ended") == kinds.count("job.ended") == 1
    )
    holds(working)


def test_a_gap_is_refused_and_says_what_is_due(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    _, attempt = started(working, ann)
    began, ended = twin.began(attempt), twin.ended(attempt)
    from ouvrage.wire.runner import Report

    answer = twin.send("POST", "/v1/runner/events", Report(events=[ended]).model_dump_json())
    assert answer.status_code == 409
    assert answer.json()["error"]["message"] == "event 1 is due, and 2 came"
    assert twin.report([began, ended]).sequence == 2


def test_a_start_is_given_until_it_is_known_and_never_after(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    working.submit(ann)
    working.engine.observe()
    assert len(twin.ask().orders) == 1
    forgot = dict(twin.states)
    twin.states.clear()  # the answer never arrived
    again = twin.ask().orders
    assert [order.attempt for order in again] == list(forgot)
    assert twin.ask().orders == []
    working.engine.observe()
    assert twin.ask().orders == []
    holds(working)


def test_an_attempt_that_its_runner_lost_is_lost_and_tried_again(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann)
    twin.report([twin.began(attempt)])
    twin.ask()
    twin.states.clear()  # the node's disk was replaced
    twin.ask()
    assert ann.get(f"/v1/jobs/{job}")["state"] == "running"  # once is no proof
    working.clock.move(31_000_000)
    twin.ask()
    told = ann.get(f"/v1/jobs/{job}")
    assert (told["state"], told["all_attempts"][0]["outcome"]) == ("waiting", "lost")
    lease = ann.get(f"/v1/leases/{told['all_attempts'][0]['lease']}")
    assert (lease["end"], lease["billable_us"]) == ("fault", 0)
    working.clock.move(MINUTE)
    assert twin.ask().orders == []  # heard again, or nothing would be placed here
    assert working.engine.observe().started == (job,)
    second = twin.ask().orders[0].attempt
    assert second != attempt
    twin.report([twin.began(second), twin.ended(second)])
    assert ann.get(f"/v1/jobs/{job}")["state"] == "done"
    holds(working)


def test_a_server_that_was_away_itself_gives_nothing_up_before_it_has_listened(
    tmp_path: Path,
) -> None:
    """Stopped for a night, suspended, or its clock put right: what is silent may only not have been asked yet."""
    steady = Clock()
    with working_on(tmp_path / "state", monotonic=steady, listened_us=5 * MINUTE) as working:
        ann, twin = ready(working), working.twins[0]
        job, attempt = started(working, ann)
        twin.report([twin.began(attempt)])
        working.clock.move(12 * 60 * MINUTE)
        for _ in range(2):
            working.reconcile()
            assert ann.get(f"/v1/jobs/{job}")["state"] == "running"
            steady.move(4 * MINUTE)
            twin.ask()  # it dials again
            working.reconcile()
            assert ann.get(f"/v1/jobs/{job}")["state"] == "running"
            working.clock.move(3 * 60 * MINUTE)
        working.reconcile()
        steady.move(6 * MINUTE)
        working.reconcile()
        assert ann.get(f"/v1/jobs/{job}")["end_code"] == "job/lost"
        holds(working)


def test_a_runner_away_for_long_is_given_up_and_nothing_is_started_twice(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann)
    twin.report([twin.began(attempt)])
    working.clock.move(60 * MINUTE)
    working.reconcile()
    assert ann.get(f"/v1/jobs/{job}")["state"] == "running"  # an hour away is only away
    assert working.owner.get("/v1/nodes/node-1")["state"] == "away"
    working.clock.move(61 * MINUTE)
    working.reconcile()
    working.reconcile()
    told = ann.get(f"/v1/jobs/{job}")
    assert (told["state"], told["end_code"]) == ("failed", "job/lost")
    assert working.engine.observe().started == ()
    # It comes back, and what it still runs is stopped there; its late word changes nothing.
    orders = twin.ask().orders
    assert [(order.order, order.attempt) for order in orders] == [("stop", attempt)]
    assert twin.report([twin.ended(attempt, "cancelled")]).sequence == 2
    assert [order.order for order in twin.ask().orders] == ["forget"]
    assert ann.get(f"/v1/jobs/{job}")["end_code"] == "job/lost"
    late = [e for e in working.records() if '"action":"attempt.late"' in e.fact.payload]
    assert len(late) == 1
    holds(working)


def test_what_the_server_does_not_expect_is_stopped_and_forgotten(working: Working) -> None:
    twin = working.node()
    twin.states["f" * 32] = "running"
    assert [order.order for order in twin.ask().orders] == ["stop"]
    twin.states["f" * 32] = "ended"
    assert [order.order for order in twin.ask().orders] == ["forget"]
    assert twin.ask().orders == []


def test_a_job_is_cancelled_wherever_it_is(working: Working) -> None:
    ann, twin = ready(working, cpus=1), working.twins[0]
    running, attempt = started(working, ann, grace="5 s")
    twin.report([twin.began(attempt)])
    waiting = working.submit(ann)["job"]
    working.engine.observe()
    assert ann.get(f"/v1/jobs/{waiting}/explain")["code"] == "placement/waits-cpu"
    assert ann.post(f"/v1/jobs/{waiting}/cancel", {})["state"] == "cancelled"
    assert ann.post(f"/v1/jobs/{running}/cancel", {"why": "enough"})["state"] == "stopping"
    stop = twin.ask().orders[0]
    assert (stop.order, stop.why, stop.grace_us) == ("stop", "cancelled", 5_000_000)
    assert twin.ask().orders == []  # it is stopping, as it said
    twin.report([twin.ended(attempt, "cancelled", cause="tenant")])
    told = ann.get(f"/v1/jobs/{running}")
    assert (told["state"], told["last"]["outcome"]) == ("cancelled", "cancelled")
    again = ann.post(f"/v1/jobs/{running}/retry")
    assert again["job"] != running
    # Ordered, and not yet sent to anybody: it ends here and now.
    assert working.engine.observe().started == (again["job"],)
    assert ann.post(f"/v1/jobs/{again['job']}/cancel", {})["state"] == "cancelled"
    # Sent, and the answer lost: it ends when the runner shows that it does not know it.
    third = ann.post(f"/v1/jobs/{running}/retry")["job"]
    working.engine.observe()
    twin.ask()
    twin.states.clear()
    assert ann.post(f"/v1/jobs/{third}/cancel", {})["state"] == "stopping"
    twin.ask()
    assert ann.get(f"/v1/jobs/{third}")["state"] == "cancelled"
    holds(working)


def test_a_machines_failure_is_tried_elsewhere_and_costs_nothing(working: Working) -> None:
    ann = ready(working)
    other = working.node("node-2")
    job, attempt = started(working, ann)
    first = working.twins[0]
    first.report([first.began(attempt)])
    working.clock.move(MINUTE)
    first.report(
        [
            first.ended(
                attempt, "hardware", cause="hardware", scrub="failed", scrub_detail="GPU hangs"
            )
        ]
    )
    told = ann.get(f"/v1/jobs/{job}")
    assert told["state"] == "waiting"
    lease = ann.get(f"/v1/leases/{told['last']['lease']}")
    assert (lease["end"], lease["billable_us"]) == ("fault", 0)
    assert working.owner.get("/v1/nodes/node-1")["fences"][0]["why"] == "GPU hangs"
    assert working.engine.observe().started == (job,)
    first.ask()
    assert [order.order for order in other.ask().orders] == ["start"]
    holds(working)


def test_a_programs_failure_is_tried_again_as_often_as_asked(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann, retries=1)
    twin.report([twin.began(attempt), twin.ended(attempt, "failed")])
    twin.ask()
    assert ann.get(f"/v1/jobs/{job}")["state"] == "waiting"
    assert ann.get(f"/v1/jobs/{job}/explain")["code"] == "placement/paused"
    working.clock.move(MINUTE)
    twin.ask()
    working.engine.observe()
    twin.ask()
    second = twin.starts[-1].attempt
    twin.report([twin.began(second), twin.ended(second, "failed")])
    told = ann.get(f"/v1/jobs/{job}")
    assert (told["state"], told["attempts"]) == ("failed", 2)
    bills = [ann.get(f"/v1/leases/{each['lease']}")["end"] for each in told["all_attempts"]]
    assert bills == ["attempt ended", "attempt ended"]
    holds(working)
