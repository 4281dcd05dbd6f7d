"""Leases for a term, the jobs inside them, offers, and what is withheld of nodes."""

from __future__ import annotations

from tests.platform.test_attempts import MINUTE, holds
from tests.platform.working import Working

HOUR = 60 * MINUTE


def test_a_lease_keeps_its_place_and_its_jobs_run_in_it(working: Working) -> None:
    twin = working.node(cpus=4, gpus=2)
    working.offer("pair", cpus=2, gpus=1, gpu="RTX 4090", most_us=3 * HOUR, least_us=HOUR)
    ann = working.tenant("acme")
    for wrong in (None, MINUTE, 4 * HOUR):
        asked = {"project": "main", "offer": "pair", "for_us": wrong}
        assert ann("POST", "/v1/leases", asked).json()["error"]["code"] == "lease/duration"
    take = {"project": "main", "offer": "pair", "for_us": HOUR}
    first, second = ann.post("/v1/leases", take), ann.post("/v1/leases", take)
    assert {len(each["devices"]) for each in (first, second)} == {1}
    assert first["devices"] != second["devices"]
    assert first["node"] is None  # a tenant is not told where
    full = ann("POST", "/v1/leases", take)
    assert (full.status_code, full.json()["error"]["code"]) == (409, "lease/no-room")

    inside = {
        "project": "main",
        "lease": first["code"],
        "spec": {"command": ["a"], "cpus": 1, "gpus": 0, "memory": "64 MiB", "disk": "64 MiB"},
    }
    jobs = [ann.post("/v1/jobs", inside)["job"] for _ in range(3)]
    working.engine.observe()
    assert [ann.get(f"/v1/jobs/{job}")["state"] for job in jobs] == [
        "starting",
        "starting",
        "waiting",
    ]
    assert ann.get(f"/v1/jobs/{jobs[2]}/explain")["code"] == "placement/lease-busy"
    twin.ask()
    assert {start.lease for start in twin.starts} == {first["lease"]}
    assert sorted(cpu for start in twin.starts for cpu in start.cpus) == [0, 1]
    a, b = (start.attempt for start in twin.starts)
    twin.report([twin.began(a), twin.began(b)])
    working.clock.move(10 * MINUTE)
    twin.ask()
    told = ann.get(f"/v1/leases/{first['lease']}")
    assert (told["state"], told["working_us"]) == ("open", 10 * MINUTE)
    busy = ann("POST", f"/v1/leases/{first['lease']}/release", {})
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "lease/busy")
    assert ann.post(f"/v1/leases/{first['lease']}/release", {"stop": True})["state"] == "ending"
    assert [order.order for order in twin.ask().orders] == ["stop", "stop"]
    twin.report([twin.ended(a, "cancelled"), twin.ended(b, "cancelled")])
    assert ann.get(f"/v1/leases/{first['lease']}")["end"] == "released"
    working.engine.observe()
    third = ann.get(f"/v1/jobs/{jobs[2]}")
    assert (third["state"], third["end_code"]) == ("refused", "job/lease-ended")
    kinds = [entry.fact.kind for entry in working.records()]
    assert kinds.count("lease.started") == 2  # attempts in a lease open none
    holds(working)


def test_a_lease_runs_out_and_what_runs_in_it_is_warned_before(working: Working) -> None:
    twin = working.node()
    working.offer("hourly", cpus=2, most_us=HOUR)
    ann = working.tenant("acme")
    lease = ann.post("/v1/leases", {"project": "main", "offer": "hourly", "for_us": HOUR})
    spec = {"command": ["a"], "grace": "60 s"}
    job = ann.post("/v1/jobs", {"project": "main", "lease": lease["lease"], "spec": spec})["job"]
    working.engine.observe()
    twin.ask()
    attempt = twin.starts[0].attempt
    assert twin.starts[0].time_limit_us == HOUR - MINUTE
    twin.report([twin.began(attempt)])
    working.clock.move(59 * MINUTE)
    working.reconcile()
    assert [(o.order, o.why) for o in twin.ask().orders] == [("stop", "time limit")]
    working.clock.move(MINUTE)
    working.reconcile()
    told = ann.get(f"/v1/leases/{lease['lease']}")
    assert (told["end"], told["billable_us"], told["ended_us"]) == (
        "expired",
        HOUR,
        lease["until_us"],
    )
    # Its work still ends: nobody gets its cores before.
    other = ann.post("/v1/leases", {"project": "main", "offer": "hourly", "for_us": HOUR})
    assert (
        ann(
            "POST", "/v1/leases", {"project": "main", "offer": "hourly", "for_us": HOUR}
        ).status_code
        == 409
    )
    twin.report([twin.ended(attempt, "time limit")])
    assert ann.get(f"/v1/jobs/{job}")["state"] == "failed"
    assert other["state"] == "open"
    holds(working)


def test_fenced_and_unlisted_nodes_take_nothing_new(working: Working) -> None:
    twin = working.node(gpus=1)
    working.offer("gpu", cpus=1, gpus=1)
    working.offer("cpu", cpus=1)
    ann, owner = working.tenant("acme"), working.owner
    device = owner.get("/v1/nodes/node-1")["devices"][0]["device"]
    fence = {"held": True, "device": device, "holder": "operator", "why": "looks ill"}
    told = owner.post("/v1/nodes/node-1/fence", fence)
    assert told["devices"][0]["fenced"]
    held = working.submit(ann, "gpu")["job"]
    free = working.submit(ann, "cpu")["job"]
    assert working.engine.observe().started == (free,)
    assert ann.get(f"/v1/jobs/{held}/explain")["code"] == "placement/fenced"
    owner.post("/v1/nodes/node-1/fence", {**fence, "holder": "automation"})
    owner.post("/v1/nodes/node-1/fence", {**fence, "held": False})
    assert working.engine.observe().started == ()  # another still holds it
    owner.post("/v1/nodes/node-1/fence", {**fence, "held": False, "holder": "automation"})
    owner.post("/v1/nodes/node-1/listing", {"listed": False, "why": "to be repaired"})
    assert working.engine.observe().started == ()
    node = owner.get("/v1/nodes/node-1")
    assert (node["listed"], node["empty"], node["attempts"]) == (False, False, 1)
    owner.post("/v1/nodes/node-1/listing", {"listed": True})
    assert working.engine.observe().started == (held,)
    unknown = owner("POST", "/v1/nodes/node-1/fence", {"held": True, "device": "GPU-x"})
    assert unknown.json()["error"]["code"] == "node/device"
    twin.ask()
    holds(working)


def test_offers_are_frozen_named_once_and_seen_by_whom_they_are_for(working: Working) -> None:
    working.node()
    made = working.offer("standard", plan="per-minute-up")
    working.offer("own", audience="own")
    ann = working.tenant("acme")
    assert [offer["name"] for offer in ann.get("/v1/offers")["items"]] == ["standard"]
    assert ann("GET", "/v1/offers/own").status_code == 404
    again = working.owner(
        "POST", "/v1/offers", {"name": "standard", "cpus": 1, "memory_mib": 64, "rate": "9"}
    )
    assert again.json()["error"]["code"] == "offer/name-taken"
    lease = ann.post("/v1/leases", {"project": "main", "offer": "standard"})
    working.owner.post("/v1/offers/standard/withdraw", {"why": "dearer now"})
    dearer = working.offer("standard", rate="0.90")
    assert ann.get(f"/v1/leases/{lease['lease']}")["offer"] == made["offer"] != dearer["offer"]
    gone = ann("POST", "/v1/leases", {"project": "main", "offer": made["offer"]})
    assert gone.json()["error"]["code"] == "offer/withdrawn"
    for wrong, code in (
        ({"plan": "no-such"}, "rate-plan/unknown"),
        ({"plan": "/etc/passwd"}, "offer/plan"),
        ({"rate": None}, "offer/plan"),
        ({"plan_text": "{}"}, "rate-plan/frozen"),
    ):
        terms = {"name": "odd", "cpus": 1, "memory_mib": 64, "rate": "1", **wrong}
        assert working.owner("POST", "/v1/offers", terms).json()["error"]["code"] == code
    holds(working)


def test_files_go_in_before_a_job_starts_and_come_out_after(working: Working) -> None:
    twin = working.node()
    working.offer("standard")
    ann = working.tenant("acme")
    job = working.submit(ann, inputs={"data.csv": "data.csv"}, outputs={"out/model": "model"})[
        "job"
    ]
    assert working.engine.observe().started == ()
    assert "data.csv" in ann.get(f"/v1/jobs/{job}/explain")["words"]
    path = f"/v1/jobs/{job}/files/"
    assert ann("PUT", path + "other", content=b"x").status_code == 404
    assert ann("PUT", path + "data.csv", content=b"1,2\n").status_code == 200
    assert working.engine.observe().started == (job,)
    twin.ask()
    attempt = twin.starts[0].attempt
    own = f"/v1/runner/attempts/{attempt}"
    assert twin.send("GET", f"{own}/inputs/data.csv", b"").content == b"1,2\n"
    assert ann("PUT", path + "data.csv", content=b"3").json()["error"]["code"] == "job/started"
    twin.report([twin.began(attempt)])
    bad = twin.send("PUT", f"{own}/outputs/model", b"weights", sha256="0" * 64)
    assert bad.json()["error"]["code"] == "file/damaged"
    assert ann("GET", path + "model").status_code == 404
    assert twin.send("PUT", f"{own}/outputs/model", b"weights").status_code == 200
    assert twin.send("PUT", f"{own}/outputs/..%2Fevil", b"x").status_code == 404
    twin.report([twin.ended(attempt)])
    assert ann("GET", path + "model").content == b"weights"
    listed = ann.get(f"/v1/jobs/{job}/files")
    assert [(each["direction"], each["name"], each["bytes"]) for each in listed] == [
        ("in", "data.csv", 4),
        ("out", "model", 7),
    ]
    rival = working.tenant("rival")
    assert rival("GET", path + "model").status_code == 404
    state = working.server.platform.state_dir
    assert not list(state.rglob("*evil*"))


def test_a_job_comes_after_others_or_not_at_all(working: Working) -> None:
    twin = working.node()
    working.offer("standard")
    ann = working.tenant("acme")
    first = working.submit(ann, name="prepare")["job"]
    after = working.submit(ann, after=["prepare"])["job"]
    doomed = working.submit(ann, after=[after])["job"]
    assert working.engine.observe().started == (first,)
    assert ann.get(f"/v1/jobs/{after}/explain")["code"] == "placement/dependency"
    twin.ask()
    attempt = twin.starts[0].attempt
    twin.report([twin.began(attempt), twin.ended(attempt)])
    assert working.engine.observe().started == (after,)
    ann.post(f"/v1/jobs/{after}/cancel", {})
    working.engine.observe()
    told = ann.get(f"/v1/jobs/{doomed}")
    assert (told["state"], told["end_code"]) == ("refused", "job/dependency")
    holds(working)


def test_a_nodes_presence_is_told_hour_by_hour_so_that_free_time_is_known(working: Working) -> None:
    twin = working.node()
    for _ in range(80):
        working.clock.move(MINUTE)
        twin.ask()
        working.reconcile()
    working.clock.move(30 * MINUTE)
    working.reconcile()
    told = [entry.fact for entry in working.records() if entry.fact.kind == "owner.state"]
    spans = [(fact.valid_from, fact.valid_to) for fact in told]
    assert [round((to - begins) / MINUTE) for begins, to in spans if to] == [60, 20]
    assert spans[0][1] == spans[1][0]  # without a hole while it was here, and nothing said after
    assert all('"state":"free"' in fact.payload for fact in told)
