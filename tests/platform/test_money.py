"""What tenants owe, over HTTP: charged once, running as the bill will show it, stopped in time, invoiced without a gap."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ouvrage.base.time import utc_us
from ouvrage.store.audit import audit
from tests.platform.test_node_health import Watch, looker
from tests.platform.working import Clock, Working, working_on
from tests.support.server import Client

S = 1_000_000
H = 3600 * S
MONTH = "2031-09"
"""The month of the clock that tests move."""


def started(working: Working, twin: Any, who: Client, offer: str = "standard", **spec: Any) -> str:
    """A job whose command has begun; its attempt."""
    before = len(twin.starts)
    twin.ask()
    working.submit(who, offer, **spec)
    working.engine.observe()
    twin.ask()
    attempt = twin.starts[before].attempt
    twin.report([twin.began(attempt)])
    return attempt


def done(working: Working, twin: Any, attempt: str, us: int, **more: Any) -> None:
    working.clock.move(us)
    twin.report([twin.ended(attempt, **more)])


def later(working: Working, twin: Any, us: int) -> Any:
    """The clock moves, the runner is heard, and the server looks; what the runner is told."""
    working.clock.move(us)
    twin.ask()
    working.reconcile()
    return twin.ask().orders


def usage(who: Client, **query: Any) -> Any:
    return who.get("/v1/usage", params=query)


def lawful(working: Working) -> None:
    """``ouvrage verify`` finds nothing broken."""
    store = working.server.platform.store
    found = audit(store, working.server.platform.state_dir)
    assert [b for each in found.checked for b in each.breaches] == []


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Working]:
    """As elsewhere, but on a day of September, so that months end where these tests say."""
    clock = Clock()
    clock.move(utc_us("2031-09-21T12:00:00Z") - clock())
    with working_on(tmp_path / "state", clock=clock) as made:
        yield made


@pytest.fixture
def acme(working: Working) -> tuple[Any, Client]:
    """A node, an offer at 0.36 an hour, a tax, and a tenant that pays in advance and has paid 10."""
    twin = working.node()
    working.offer("standard", cpus=1, rate="0.36")
    working.owner.post("/v1/taxes", {"rate": "0.20"})
    ann = working.server.tenant("acme", billing="prepaid", credit_limit="0")
    working.owner.post("/v1/payments", {"org": "acme", "amount": "10", "reference": "T-1001"})
    return twin, ann


def test_the_running_cost_is_the_charge_that_follows(working: Working, acme: Any) -> None:
    twin, ann = acme
    attempt = started(working, twin, ann, name="train")
    working.clock.move(1234 * S)
    running = usage(ann)
    assert (running["rows"][0]["running"], running["rows"][0]["charged"]) == ("0.1234", "0")
    assert running["account"]["running"] == "0.1234"
    assert running["account"]["left"] == "9.85192"  # 20 % of tax is not there to be spent
    twin.report([twin.ended(attempt)])
    over = usage(ann)
    assert (over["rows"][0]["running"], over["rows"][0]["charged"]) == ("0", "0.1234")
    assert (over["account"]["balance"], over["account"]["running"]) == ("9.8766", "0")
    for by in ("lease", "job", "project"):
        assert usage(ann, by=by)["cost"] == "0.1234"
    lawful(working)


def test_what_the_machine_broke_costs_nothing_and_the_second_try_is_charged(
    working: Working, acme: Any
) -> None:
    twin, ann = acme
    attempt = started(working, twin, ann, name="train")
    done(working, twin, attempt, H, outcome="hardware", cause="hardware")
    assert usage(ann)["cost"] == "0"
    draft = ann.get("/v1/invoices/draft", params={"period": MONTH})
    assert [each["why"] for each in draft["not_charged"]] == ["hardware"]
    other = working.node("node-2")
    twin.ask()
    working.engine.observe()
    other.ask()
    (again,) = other.starts
    other.report([other.began(again.attempt)])
    done(working, other, again.attempt, H)
    assert usage(ann)["cost"] == "0.36"
    assert [each["cost"] for each in usage(ann, by="job")["rows"]] == ["0.36"]
    lawful(working)


def test_nothing_starts_without_a_balance_and_a_payment_lets_it(working: Working) -> None:
    twin = working.node()
    working.offer("standard", cpus=1, rate="0.36")
    ann = working.server.tenant("poor", billing="prepaid", credit_limit="0")
    job = working.submit(ann, name="train")
    assert working.engine.observe().started == ()
    why = ann.get(f"/v1/jobs/{job['job']}/explain")
    assert "balance" in str(why)
    refused = ann("POST", "/v1/leases", {"project": "main", "offer": "standard"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "lease/balance")
    working.owner.post("/v1/payments", {"org": "poor", "amount": "1"})
    assert working.engine.observe().started == (job["job"],)
    assert twin.ask().orders[0].order == "start"


def test_at_the_end_of_the_balance_work_is_stopped_within_its_grace(
    working: Working, acme: Any
) -> None:
    twin, ann = acme
    attempt = started(working, twin, ann, name="long", grace="30s")
    account = usage(ann)["account"]
    assert account["burn_per_hour"] == "0.36"
    # 8.28 and 1.656 of tax: 9.936 of the 10
    assert later(working, twin, 23 * H) == []
    (stop,) = later(working, twin, H)
    assert (stop.attempt, stop.why, stop.grace_us) == (attempt, "budget", 30 * S)
    assert "prepaid balance is used up" in stop.reason
    working.reconcile()
    twin.report([twin.ended(attempt, outcome="budget")])
    job = ann.get("/v1/jobs")["items"][0]
    assert job["state"] in ("failed", "cancelled")
    assert working.engine.observe().started == ()
    lawful(working)


def test_a_budget_warns_in_the_trail_once_a_level_and_stops(working: Working, acme: Any) -> None:
    twin, ann = acme
    ann.post("/v1/budgets", {"project": "main", "amount": "1.08", "period": "day"})
    attempt = started(working, twin, ann, name="long")
    told = [each for _ in range(12) for each in later(working, twin, H // 4)]
    working.reconcile()
    trail = working.owner.get("/v1/audit", params={"org": "acme"})["items"]
    warned = [each["detail"][:5] for each in trail if each["action"] == "budget.warn"]
    assert warned == ["100 %", "80 % ", "50 % "]
    (stop,) = told
    assert (stop.attempt, stop.why) == (attempt, "budget")
    (budget,) = ann.get("/v1/budgets")["items"]
    assert (budget["spent"], budget["level"]) == ("1.08", 100)
    done(working, twin, attempt, 0, outcome="budget")
    held = working.submit(ann, name="more")
    assert working.engine.observe().started == ()
    assert "budget" in str(ann.get(f"/v1/jobs/{held['job']}/explain"))
    ann.post("/v1/budgets", {"project": "main", "amount": None})
    assert working.engine.observe().started == (held["job"],)


def test_a_jobs_own_budget_ends_it(working: Working, acme: Any) -> None:
    twin, ann = acme
    attempt = started(working, twin, ann, name="short", budget="0.18")
    assert later(working, twin, H // 2 - S) == []
    (stop,) = later(working, twin, S)
    assert (stop.attempt, stop.why) == (attempt, "budget")
    assert "own budget of 0.18" in stop.reason


def test_months_are_charged_as_they_end_and_invoiced_without_a_gap(
    working: Working, acme: Any
) -> None:
    twin, ann = acme
    working.owner.post("/v1/payments", {"org": "acme", "amount": "500"})
    attempt = started(working, twin, ann, name="train")
    assert later(working, twin, 12 * 24 * H) == []
    working.reconcile()
    draft = ann.get("/v1/invoices/draft", params={"period": MONTH, "lang": "fr"})
    assert len(draft["lines"]) == 1
    assert draft["running"] == "0"
    assert draft["shown"]["headline"].startswith("Projet de facture :")
    first = working.owner.post("/v1/invoices", {"org": "acme", "period": MONTH})
    assert first["number"] == "2031-0001"
    assert Decimal(first["net"]) + Decimal(first["tax"]) == Decimal(first["total"])
    done(working, twin, attempt, 5 * H)
    second = working.owner.post("/v1/invoices", {"org": "acme", "period": "2031-10"})
    assert second["number"] == "2031-0002"
    cost = Decimal("0.36") * (12 * 24 + 5)
    assert Decimal(first["charged"]) + Decimal(second["charged"]) == cost
    assert usage(ann, period="2031")["cost"] == str(cost.normalize())
    again = working.owner("POST", "/v1/invoices", {"org": "acme", "period": "2031-10"})
    assert again.json()["error"]["code"] == "invoice/empty"
    listed = ann.get("/v1/invoices")["items"]
    assert [each["number"] for each in listed] == ["2031-0002", "2031-0001"]
    lawful(working)
    statement = ann.get("/v1/statements", params={"period": "2031"})
    total = sum(Decimal(each["amount"]) for each in statement["lines"])
    assert Decimal(statement["opening"]) + total == Decimal(statement["closing"])
    assert statement["closing"] == usage(ann)["account"]["balance"]


def test_a_fault_of_the_machine_that_shows_after_the_bill_gives_it_back(
    working: Working, acme: Any
) -> None:
    """Once, whatever looks later; the account is as if the fault had been known, and the next invoice says why."""
    twin, ann = acme
    attempt = started(working, twin, ann, name="train")
    working.clock.move(H)
    twin.report([twin.ended(attempt, "failed", cause="program")])
    assert usage(ann)["account"]["balance"] == "9.64"
    watch, loop = Watch(working, twin), looker(working)
    watch.send(watch.verdict(device=None))
    for _ in range(3):
        loop.look()
        working.clock.move(60 * S)
    assert usage(ann)["account"]["balance"] == "10"
    told = working.owner.get("/v1/nodes/node-1/health")["told"]
    (words,) = [page["words"] for page in told["pages"] if "ended attempt" in page["words"]]
    assert words.endswith("which was billed: 0.36 EUR given back")
    lines = ann.get("/v1/invoices/draft", params={"period": MONTH})["lines"]
    assert [each["amount"] for each in lines] == ["0.36", "-0.36"]
    assert lines[1]["words"] == "given back: a fault of the machine ended it"
    assert lines[1]["credits"] == lines[0]["charge"]
    later(working, twin, 12 * 24 * H)
    assert usage(ann)["account"]["balance"] == "10", "nothing charges it again"
    lawful(working)


def test_an_invoice_is_shown_as_page_and_paper_and_given_back_by_a_credit_note(
    working: Working, acme: Any
) -> None:
    twin, ann = acme
    (working.server.platform.state_dir / "letterheads").mkdir()
    (working.server.platform.state_dir / "letterheads" / "acme.txt").write_text("4 Main Street\n")
    attempt = started(working, twin, ann, name="train")
    twin.report([twin.progress(attempt, 6)])
    done(working, twin, attempt, H)
    made = working.owner.post("/v1/invoices", {"org": "acme", "period": MONTH})
    assert made["work"][0]["cost_per_unit"] == "0.06"
    page = ann("GET", f"/v1/invoices/{made['number']}/page", params={"lang": "fr"})
    assert page.headers["content-type"].startswith("text/html")
    assert "Facture 2031-0001" in page.text
    assert "4 Main Street" in page.text
    paper = ann("GET", f"/v1/invoices/{made['number']}/paper")
    assert paper.content.startswith(b"%PDF")
    assert ann("GET", "/v1/invoices/draft/paper", params={"period": MONTH}).status_code == 200
    only = {"why": "wrong project", "charges": [made["lines"][0]["charge"]]}
    strange = {"why": "wrong project", "charges": ["0" * 32]}
    assert (
        working.owner("POST", f"/v1/invoices/{made['number']}/credit", strange).status_code == 404
    )
    note = working.owner.post(f"/v1/invoices/{made['number']}/credit", only)
    assert (note["number"], note["net"], note["total"]) == ("2031-0002", "-0.36", "-0.43")
    assert usage(ann)["account"]["balance"] == "10"
    assert "2031-0001" in str(note["shown"]["about"])
    refused = working.owner("POST", f"/v1/invoices/{made['number']}/credit", {"why": "again"})
    assert refused.json()["error"]["code"] == "invoice/nothing-left"
    shown = ann.get(f"/v1/invoices/{made['number']}")
    assert (shown["total"], shown["lines"]) == (made["total"], made["lines"])
    working.reconcile()
    lawful(working)


def test_an_estimate_comes_from_ones_own_runs_and_is_unknown_without(
    working: Working, acme: Any
) -> None:
    twin, ann = acme
    asked = {"project": "main", "offer": "standard", "name": "train"}
    unknown = ann.get("/v1/estimates", params=asked)
    assert (unknown["cost"], unknown["runs"], unknown["grade"]) == (None, 0, None)
    for seconds in (3600, 1800, 7200):
        attempt = started(working, twin, ann, name="train")
        twin.report([twin.progress(attempt, 6)])
        done(working, twin, attempt, seconds * S)
    failed = started(working, twin, ann, name="train")
    done(working, twin, failed, S, outcome="failed", exit_code=1)
    found = ann.get("/v1/estimates", params=asked)
    assert found["cost"] == {"median": "0.36", "low": "0.18", "high": "0.72"}
    assert found["cost_per_unit"]["median"] == "0.06"
    assert (found["runs"], found["unit"], found["same_configuration"]) == (3, "epoch", True)
    rival = working.tenant("rival")
    assert rival.get("/v1/estimates", params=asked)["runs"] == 0
    ann.post("/v1/projects", {"name": "other"})
    body = {"login": "only", "role": "tenant-user", "project": "other"}
    made = ann.post("/v1/members", body)
    only = working.server.signed_in(made["member"]["login"], made["password"])
    # Whoever sees one project learns nothing of another's runs.
    assert only.get("/v1/estimates", params={**asked, "project": "other"})["runs"] == 0
    assert ann.get("/v1/estimates", params={**asked, "project": "other"})["runs"] == 3


def test_a_tenant_sees_no_others_money_and_records_no_payment(working: Working, acme: Any) -> None:
    twin, ann = acme
    attempt = started(working, twin, ann, name="train")
    done(working, twin, attempt, H)
    made = working.owner.post("/v1/invoices", {"org": "acme", "period": MONTH})
    rival = working.tenant("rival")
    for path in (
        f"/v1/invoices/{made['number']}", f"/v1/invoices/{made['number']}/page", "/v1/usage?org=acme",
        "/v1/payments?org=acme", "/v1/statements?org=acme", "/v1/budgets?org=acme",
        f"/v1/invoices/draft?org=acme&period={MONTH}",
    ):  # fmt: skip
        answer = rival("GET", path)
        assert answer.status_code == 404, path
        assert "2031-0001" not in answer.text or "invoice" in answer.json()["error"]["code"]
    assert rival.get("/v1/invoices")["items"] == []
    assert ann("POST", "/v1/payments", {"org": "acme", "amount": "5"}).status_code == 403
    assert ann("POST", "/v1/invoices", {"org": "acme", "period": MONTH}).status_code == 403
    assert ann("POST", "/v1/taxes", {"rate": "0"}).status_code == 403


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/payments", {"org": "acme", "amount": "0"}, "payment/nothing"),
        ("/v1/payments", {"org": "acme", "amount": "1", "at": "2099-01-01"}, "payment/moment"),
        ("/v1/payments", {"org": "acme", "amount": "1e3"}, "request/invalid"),
        ("/v1/payments", {"org": "nobody", "amount": "1"}, "organisation/unknown"),
        ("/v1/budgets", {"project": "acme/none", "amount": "1"}, "project/unknown"),
        ("/v1/budgets", {"project": "acme/main", "amount": "-1"}, "request/invalid"),
        ("/v1/invoices", {"org": "acme", "period": "2099-01"}, "invoice/too-early"),
        ("/v1/invoices", {"org": "acme", "period": MONTH}, "invoice/empty"),
        ("/v1/invoices", {"org": "acme", "period": "soon"}, "request/invalid"),
        ("/v1/invoices/2031-0009/credit", {"why": "wrong"}, "invoice/unknown"),
        ("/v1/taxes", {"rate": "20"}, "request/invalid"),
    ],
)
def test_what_makes_no_sense_is_refused_and_writes_nothing(
    working: Working, acme: Any, path: str, body: dict[str, Any], code: str
) -> None:
    before = len(working.records())
    answer = working.owner("POST", path, body)
    assert answer.json()["error"]["code"] == code
    assert len(working.records()) == before


def test_a_payment_sent_twice_under_one_key_is_one(working: Working, acme: Any) -> None:
    _, ann = acme
    body = {"org": "acme", "amount": "7"}
    for _ in range(2):
        working.owner("POST", "/v1/payments", body, headers={"Idempotency-Key": "paid-7-once"})
    assert usage(ann)["account"]["paid"] == "17"
    assert len(ann.get("/v1/payments")["items"]) == 2


def test_the_tables_are_what_the_facts_state(working: Working, acme: Any, tmp_path: Path) -> None:
    from ouvrage.store.platform.dues_rebuild import dues_law, rebuild_odd_dues

    twin, ann = acme
    ann.post("/v1/budgets", {"project": "main", "amount": "3"})
    attempt = started(working, twin, ann, name="train")
    done(working, twin, attempt, H)
    working.owner.post("/v1/invoices", {"org": "acme", "period": MONTH})
    store = working.server.platform.store
    law = dues_law(store)
    assert list(law.check(store.records())) == []
    with working.server.platform.writing() as tx:
        tx.connection.exec_driver_sql("UPDATE charges SET nano = nano + 1")
    assert len(list(law.check(store.records()))) == 1
    assert rebuild_odd_dues(store)
    assert list(law.check(store.records())) == []
    assert not rebuild_odd_dues(store)
