"""A tenant is closed in one stroke: what waits, what runs and what is leased ends, nothing of it starts again, the evidence stays."""

from __future__ import annotations

from ouvrage.base.time import HOUR, MINUTE
from ouvrage.store.platform.work import change_job
from tests.platform.browsing import Browser
from tests.platform.working import Working


def test_one_button_ends_everything_of_a_tenant_and_keeps_the_evidence(working: Working) -> None:
    twin = working.node("box-1", cpus=3)
    working.offer("standard")
    ann, rival = working.tenant("acme"), working.tenant("rival")
    lease = ann.post("/v1/leases", {"project": "main", "offer": "standard", "for_us": HOUR})
    inside = ann.post(
        "/v1/jobs", {"project": "main", "lease": lease["lease"], "spec": {"command": ["true"]}}
    )
    running = working.submit(ann, name="mines")
    theirs = working.submit(rival, name="honest")
    waiting = working.submit(ann, name="next")
    working.engine.observe()
    twin.ask()
    by_job = {start.job: start.attempt for start in twin.starts}
    assert set(by_job) == {inside["job"], running["job"], theirs["job"]}
    twin.report([twin.began(each) for each in by_job.values()])
    twin.log(by_job[running["job"]], 0, b"evidence\n")

    visiting = Browser.at(working.server.url)
    with visiting.http:
        browser = visiting.signed_in("admin", working.server.password)
        assert "End everything of this tenant" in browser.get("/tenants/acme").text
        assert browser.send("/tenants/acme/close", {"why": "abuse"}).status_code == 303
    job = working.owner.get(f"/v1/jobs/{waiting['job']}")
    assert (job["state"], job["reason"]) == ("cancelled", "acme was closed by admin: abuse")
    twin.ask()
    assert {each.attempt for each in twin.stops} == {by_job[inside["job"]], by_job[running["job"]]}
    working.clock.move(MINUTE)
    twin.report([twin.ended(each.attempt, "cancelled") for each in twin.stops])
    working.reconcile()
    for each in (inside, running):
        assert working.owner.get(f"/v1/jobs/{each['job']}")["state"] == "cancelled"
    assert working.owner.get(f"/v1/leases/{lease['lease']}")["ended_us"] is not None
    assert working.owner.get(f"/v1/jobs/{theirs['job']}")["state"] == "running"
    assert ann("GET", "/v1/me").status_code == 401
    log = working.owner("GET", f"/v1/jobs/{running['job']}/log?offset=0")
    assert b"evidence" in log.content
    (entry,) = [
        e for e in working.owner.get("/v1/audit")["items"] if e["action"] == "organisation.close"
    ]
    assert entry["detail"] == "abuse; ends 3 jobs and 1 leases"
    assert working.owner.get("/v1/usage?org=acme")["account"]["running"] == "0"


def test_what_was_put_back_into_the_queue_meanwhile_does_not_start(working: Working) -> None:
    ann = working.tenant("acme")
    working.offer("standard")
    job = working.submit(ann)
    working.owner.post("/v1/organisations/acme/close", {})
    with working.server.platform.writing() as tx:
        change_job(
            tx.connection, job["job"], state="waiting", ended_us=None, code=None, reason=None
        )
    working.node("box-1", cpus=3)
    working.engine.observe()
    why = working.owner.get(f"/v1/jobs/{job['job']}/explain")
    assert "its organisation is closed" in why["words"]
