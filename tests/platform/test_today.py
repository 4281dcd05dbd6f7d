"""How it stands now: what needs a person, for whom, and what anybody may know where the owner wants it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx2

from ouvrage.base.time import DAY, HOUR, SECOND
from ouvrage.store.platform.machines import all_nodes, put_node
from ouvrage.store.platform.work import job_of, put_job
from tests.platform.browsing import Browser
from tests.platform.working import Working, working_on
from tests.support.server import QUICK


def test_what_needs_a_person_is_told_to_those_whom_it_concerns(working: Working) -> None:
    ann, rival = working.tenant("acme"), working.tenant("rival")
    none = {"currency": "EUR", "charged": "0", "running": "0", "burn_per_hour": "0"}
    empty = {"needs": [], "running": 0, "waiting": 0, "money": [none]}
    now = working.clock()
    nothing = {
        "nodes": 0,
        "nodes_here": 0,
        "cores": 0,
        "cores_free": 0,
        "gpus": 0,
        "gpus_leased": 0,
    }
    assert working.owner.get("/v1/today") == {**empty, "as_of_us": now, "capacity": nothing}
    assert ann.get("/v1/today") == {**empty, "as_of_us": now, "capacity": None}

    twin = working.node("box-1", cpus=4)
    working.offer("standard")
    failing, running = working.submit(ann, name="bad", retries=0), working.submit(ann, name="good")
    working.engine.observe()
    twin.ask()
    by_job = {start.job: start.attempt for start in twin.starts}
    first = by_job[failing["job"]]
    twin.report(
        [twin.began(first), twin.ended(first, "failed"), twin.began(by_job[running["job"]])]
    )
    working.submit(rival, cpus=1, memory="200MiB", name="theirs")
    told = ann.get("/v1/today")
    assert (told["running"], told["waiting"], told["capacity"]) == (1, 0, None)
    (need,) = told["needs"]
    assert (need["what"], need["state"], need["page"]) == (
        "job",
        "failed",
        f"/jobs/{failing['job']}",
    )
    assert need["name"].endswith(" bad")
    assert [each["name"] for each in rival.get("/v1/today")["needs"]] == []

    working.owner.post("/v1/nodes/box-1/fence", {"held": True, "why": "a fan"})
    working.clock.move(HOUR)
    told = working.owner.get("/v1/today")
    assert [(each["what"], each["name"], each["why"]) for each in told["needs"]] == [
        ("node-away", "box-1", ""), ("fence", "box-1", "a fan"),
    ]  # fmt: skip
    assert told["capacity"]["nodes"] == 1
    assert (told["capacity"]["nodes_here"], told["capacity"]["cores_free"]) == (0, 0)
    working.clock.move(DAY)
    assert ann.get("/v1/today")["needs"] == []


def test_the_money_of_today_is_what_the_bill_will_say(working: Working) -> None:
    rival = working.tenant("rival")
    ann = working.server.tenant("acme", billing="prepaid", credit_limit="0")
    working.owner.post("/v1/payments", {"org": "acme", "amount": "20"})
    twin = working.node("box-1", cpus=4)
    working.offer("dear", rate="72")
    first, second = working.submit(ann, "dear"), working.submit(rival, "dear")
    working.engine.observe()
    twin.ask()
    by_job = {start.job: start.attempt for start in twin.starts}
    twin.report([twin.began(by_job[first["job"]]), twin.began(by_job[second["job"]])])
    working.clock.move(50 * SECOND)
    twin.report([twin.ended(by_job[second["job"]])])
    (own,) = ann.get("/v1/today")["money"]
    assert own == {"currency": "EUR", "charged": "0", "running": "1", "burn_per_hour": "72"}
    (theirs,) = rival.get("/v1/today")["money"]
    assert (theirs["charged"], theirs["running"]) == ("1", "0")
    told = working.owner.get("/v1/today")
    assert told["money"] == [{**own, "charged": "1"}]
    account = ann.get("/v1/usage")["account"]
    assert (account["running"], account["burn_per_hour"]) == ("1", "72")
    (need,) = told["needs"]
    assert (need["what"], need["name"], need["page"]) == ("balance", "acme", "/money?org=acme")
    assert need["why"] == f"lasts until {account['used_up_at']}"
    working.clock.move(DAY)
    assert rival.get("/v1/today")["money"][0]["charged"] == "0"


def test_every_machine_and_every_job_counts_however_many_there_are(working: Working) -> None:
    working.node("box-1", cpus=4, gpus=2)
    ann = working.tenant("acme")
    working.offer("standard")
    submitted = working.submit(ann)
    platform = working.server.platform
    with platform.writing() as tx:
        row, job = all_nodes(tx.connection)[0], job_of(tx.connection, submitted["job"])
        assert job is not None
        for n in range(300):
            seen = replace(row.seen, node=f"{n:032x}", name=f"other-{n}")
            put_node(tx.connection, replace(row, seen=seen))
            put_job(tx.connection, replace(job, job=f"{n:032x}"))
    told = working.owner.get("/v1/today")
    assert told["waiting"] == 301
    held = told["capacity"]
    assert (held["nodes"], held["nodes_here"], held["cores_free"]) == (301, 1, 4)
    assert (held["cores"], held["gpus"], held["gpus_leased"]) == (301 * 4, 301 * 2, 0)
    assert len(told["needs"]) == 300
    rows = working.owner.get("/v1/nodes?limit=200")
    assert (len(rows["items"]), rows["items"][0]["name"]) == (200, "box-1")
    more = working.owner.get(f"/v1/nodes?limit=200&cursor={rows['next']}")["items"]
    assert {each["name"] for each in (*rows["items"], *more)} == {
        "box-1",
        *(f"other-{n}" for n in range(300)),
    }


def test_the_page_says_the_same(working: Working) -> None:
    working.node("box-1", cpus=4)
    working.owner.post("/v1/nodes/box-1/fence", {"held": True, "why": "a fan"})
    visiting = Browser.at(working.server.url)
    with visiting.http:
        browser = visiting.signed_in("admin", working.server.password)
        page = browser.get("/today.json").json()
    assert page["headline"].startswith("Needs you: 1;")
    notice = next(each for each in page["blocks"] if each["kind"] == "notice")
    assert notice["text"].endswith("a fan")


def test_anybody_is_told_what_is_for_sale_where_the_owner_wants_it(tmp_path: Path) -> None:
    with working_on(tmp_path / "state", settings=replace(QUICK, public_page=True)) as work:
        work.offer("open", audience="public", cpus=3, rate="0.30", anyway=True, why="tried here")
        work.offer("kept", audience="tenants", cpus=1, rate="0.10")
        told = httpx2.get(f"{work.server.url}/v1/status").json()
        assert (told["free"], [each["name"] for each in told["offers"]]) == (0, ["open"])
        work.node("box-1", cpus=4)
        told = httpx2.get(f"{work.server.url}/v1/status").json()
        assert told["offers"] == [
            {"name": "open", "gpu": None, "gpus": 0, "cpus": 3, "memory_mib": 256, "disk_mib": 1024,
             "plan": "per-second", "rate": "0.30", "currency": "EUR", "interruptible": False, "room": True},
        ]  # fmt: skip
        assert told["free"] == 1
        assert "box-1" not in httpx2.get(f"{work.server.url}/v1/status").text
