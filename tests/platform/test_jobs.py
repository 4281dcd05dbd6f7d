"""From an offer to a job's end, over HTTP, with a runner that runs nothing."""

from __future__ import annotations

from typing import Any

from tests.platform.working import Working


def test_a_job_goes_from_its_offer_to_its_end(working: Working) -> None:
    twin = working.node()
    working.offer("standard", cpus=1, rate="0.30")
    ann = working.tenant("acme")
    job = ann.post(
        "/v1/jobs", {"project": "main", "offer": "standard", "spec": {"command": ["true"]}}
    )
    assert job["state"] == "waiting"
    assert working.engine.observe().started == (job["job"],)

    orders = twin.ask()
    assert [order.order for order in orders.orders] == ["start"]
    start = twin.starts[0]
    assert (start.command, start.job, start.label) == (["true"], job["job"], "true")
    assert start.price == "0.30 EUR/h"
    began = twin.began(start.attempt)
    twin.report([began])
    assert ann.get(f"/v1/jobs/{job['job']}")["state"] == "running"
    working.clock.move(5_000_000)
    twin.report([twin.ended(start.attempt)])

    done: dict[str, Any] = ann.get(f"/v1/jobs/{job['job']}")
    assert (done["state"], done["end_code"]) == ("done", "job/done")
    assert done["last"]["wall_us"] == 5_000_000
    lease = ann.get(f"/v1/leases/{start.lease}")
    assert (lease["state"], lease["kind"], lease["billable_us"]) == ("ended", "job", 5_000_000)
    assert lease["from_us"] == began.at
    assert [order.order for order in twin.ask().orders] == ["forget"]
    assert twin.ask().orders == []
    kinds = [entry.fact.kind for entry in working.records()]
    for kind in (
        "platform.job",
        "platform.attempt",
        "lease.started",
        "attempt.ended",
        "lease.ended",
        "job.ended",
    ):
        assert kinds.count(kind) == 1
