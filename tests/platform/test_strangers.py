"""Offers to strangers stand on proofs: what refuses them, what allows them, and what an owner may take on themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ouvrage.base.canonical import canonical
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.ledger.lines import fact_line
from ouvrage.model.health import NodeInventory, Part
from ouvrage.model.selling import OfferOverridden
from ouvrage.model.work import Named
from tests.platform.working import MIDMONTH_US, Working
from tests.support.proofs import AT_US, DAY_US, audited, certificate, proof_fact, proof_line

LATER = MIDMONTH_US + 30 * DAY_US
GOOD = audited(expires_us=LATER)


def _prove(work: Working, *lines: str, node: str = "node-1") -> Any:
    return work.owner.post(f"/v1/nodes/{node}/proofs", {"facts": list(lines)})


def _refused(work: Working, **more: Any) -> str:
    """Why an offer to strangers is refused."""
    terms = {"name": "open", "cpus": 1, "memory_mib": 256, "rate": "0.30", "audience": "public"}
    said = work.owner("POST", "/v1/offers", {**terms, **more})
    assert said.status_code == 409, said.text
    error = said.json()["error"]
    assert (error["code"], error["field"]) == ("offer/unproven", "audience")
    assert "--anyway --why" in error["hint"]
    return error["message"]


def _open(work: Working, name: str = "open", **more: Any) -> dict[str, Any]:
    return work.offer(name, audience="public", **more)


def test_nothing_is_offered_to_strangers_before_isolation_and_audit(working: Working):
    assert "no node has joined" in _refused(working)
    working.node(isolations=["none"])
    said = _refused(working)
    assert "node-1: sandbox is not proven there (ouvrage doctor --isolation)" in said
    assert "node-1: no audit is on record" in said
    taken = _prove(working, proof_line(GOOD))
    assert taken["results"] == ["accepted"]
    assert taken["against"] == ["node-1: sandbox is not proven there (ouvrage doctor --isolation)"]
    assert "sandbox is not proven" in _refused(working)
    working.offer("kept", audience="tenants")  # whom one knows is another matter


def test_an_audit_that_passed_allows_it_and_names_the_nodes(working: Working):
    working.node()
    assert _prove(working, proof_line(GOOD)) == {"results": ["accepted"], "against": []}
    assert _prove(working, proof_line(GOOD))["results"] == ["exists"]
    node = working.owner.get("/v1/nodes/node-1")["node"]
    assert _open(working)["nodes"] == [node]
    # One that joins later is not proven, and the offer is not met from it.
    working.node("node-2")
    assert working.owner.get("/v1/offers/open")["nodes"] == [node]
    assert "node-2: no audit" in _refused(working, name="other", nodes=["node-1", "node-2"])
    assert _open(working, name="all")["nodes"] == [node]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([audited(verdict="CRITICAL", expires_us=LATER)], "its audit is CRITICAL: runc 1.0 has a way out"),
        ([audited(verdict="UNKNOWN", expires_us=LATER)], "its audit is UNKNOWN"),
        ([audited(expires_us=MIDMONTH_US)], "its audit is too old"),
        ([GOOD, certificate(passed=False)], "its certificate for batch is failed: cpu_wrong_results: 1 results, <= 0 needed"),
        ([GOOD, certificate(expires_us=MIDMONTH_US)], "its certificate for batch is expired"),
    ],
)  # fmt: skip
def test_what_speaks_against_it_is_said(working: Working, lines: list[Any], words: str):
    working.node()
    _prove(working, *map(proof_line, lines))
    assert words in _refused(working)


def test_a_warning_or_one_good_certificate_does_not_refuse(working: Working):
    working.node()
    failed = certificate(passed=False, work_class="inference", certificate="3" * 32)
    good = certificate(expires_us=LATER)
    lines = [audited(verdict="WARN", expires_us=LATER), failed, good]
    assert _prove(working, *map(proof_line, lines))["against"] == []
    _open(working)


def test_a_part_that_was_changed_since_voids_it(working: Working):
    twin = working.node()
    good = certificate(expires_us=LATER)
    _prove(working, proof_line(GOOD), proof_line(good))

    def told(serial: str, at_us: int) -> None:
        part = Part(kind="disk", slot="sda", maker=None, model=None, serial=serial, version=None, size=None)  # fmt: skip
        value = NodeInventory(node="node-1", boot="b", parts=(part,), untold=(Named(name="gpu", value="asleep"),))  # fmt: skip
        fact = proof_fact(good, at_us=at_us)
        fact = fact_of(
            value, source=fact.source, id=f"inventory/{serial}", subject="node:node-1", valid_from=at_us, valid_to=None,
            grade=fact.grade,
        )  # fmt: skip
        working.server.platform.store.append([fact], now_us=MIDMONTH_US, own_source="d" * 32)

    told("S0", AT_US - DAY_US)  # what it had before is not what was proved
    told("S1", AT_US + DAY_US)
    _open(working)
    told("S2", AT_US + 2 * DAY_US)
    said = _refused(working, name="other")
    assert "its certificate for batch is void: disk sda was S1 and is S2" in said
    assert twin.node


def test_the_last_audit_counts(working: Working):
    working.node()
    bad = audited(verdict="CRITICAL", audit="4" * 32, expires_us=LATER)
    _prove(working, proof_line(GOOD), proof_line(bad, at_us=MIDMONTH_US - DAY_US))
    _refused(working)
    mended = audited(audit="5" * 32, expires_us=LATER)
    _prove(working, proof_line(mended, at_us=MIDMONTH_US))
    _open(working)


def test_an_owner_overrides_it_with_a_reason_on_record(working: Working):
    working.node()
    _refused(working, anyway=True, why="  ")
    made = _open(working, anyway=True, why="a machine for a fair")
    assert made["nodes"] == []
    (fact,) = [r.fact for r in working.records() if r.fact.kind == OfferOverridden.KIND]
    value = read(fact)
    assert (value.offer, value.why) == (made["offer"], "a machine for a fair")
    assert value.refused == ("node-1: no audit is on record (ouvrage node audit --push)",)
    (line,) = [e for e in working.owner.get("/v1/audit")["items"] if e["action"] == "offer.create"]
    assert "anyway: a machine for a fair" in line["detail"]
    acme = working.tenant("acme")
    acme.post("/v1/leases", {"offer": "open", "project": "main"})


def test_jobs_that_waited_already_are_held_once_the_audit_is_no_longer_good(working: Working):
    working.node()
    _prove(working, proof_line(GOOD))
    _open(working)
    acme = working.tenant("acme")
    job = {"project": "main", "offer": "open", "spec": {"command": ["true"]}}
    waits = acme.post("/v1/jobs", job)["job"]
    bad = audited(verdict="CRITICAL", audit="4" * 32, expires_us=LATER)
    _prove(working, proof_line(bad, at_us=MIDMONTH_US))
    assert working.engine.observe().started == ()
    told = acme.get(f"/v1/jobs/{waits}/explain")
    assert told["code"] == "placement/held"
    assert "its machines wait for an audit" in str(told)
    assert "node-1" not in str(told), "a tenant is not told from which machine an offer is met"
    own = working.owner.post("/v1/jobs", job)["job"]
    assert working.engine.observe().started == (own,)
    working.clock.move(DAY_US)
    good = audited(audit="5" * 32, expires_us=LATER)
    _prove(working, proof_line(good, at_us=MIDMONTH_US + DAY_US))
    working.node("node-2")
    assert acme.get(f"/v1/jobs/{waits}/explain")["code"] != "placement/held"


def test_new_work_waits_once_the_audit_is_no_longer_good(working: Working):
    working.node()
    _prove(working, proof_line(GOOD))
    _open(working)
    acme = working.tenant("acme")
    kept = acme.post("/v1/leases", {"offer": "open", "project": "main"})
    bad = audited(verdict="CRITICAL", audit="4" * 32, expires_us=LATER)
    _prove(working, proof_line(bad, at_us=MIDMONTH_US))
    for path, body in (
        ("/v1/leases", {"offer": "open", "project": "main"}),
        ("/v1/jobs", {"project": "main", "offer": "open", "spec": {"command": ["true"]}}),
    ):
        said = acme("POST", path, body)
        assert (said.status_code, said.json()["error"]["code"]) == (409, "offer/unproven")
        assert "node-1" not in said.text, "a tenant is not told from which machine an offer is met"
    assert acme.get(f"/v1/leases/{kept['lease']}")["ended_us"] is None, "what runs goes on"
    working.owner.post("/v1/jobs", {"project": "main", "offer": "open", "spec": {"command": ["true"]}})  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{}", "a line is no fact"),
        (proof_line(audited("node-9", expires_us=LATER)), "is about node-9, not about node-1"),
        (proof_line(GOOD, subject="node:other"), "is not named as a proof is"),
        (proof_line(GOOD, id="platform.offer/1"), "is not named as a proof is"),
        (proof_line(GOOD, corrects="x/y"), "is not named as a proof is"),
    ],
)
def test_what_is_no_proof_of_this_node_is_not_taken(working: Working, line: str, words: str):
    working.node()
    before = len(working.records())
    said = working.owner("POST", "/v1/nodes/node-1/proofs", {"facts": [line]})
    assert (said.status_code, said.json()["error"]["code"]) == (422, "proof/not-taken")
    assert words in said.json()["error"]["message"]
    kinds = {r.fact.kind for r in working.records()[before:]}
    assert not kinds & {"node.audit", "node.certificate"}


def test_other_facts_and_the_platform_s_own_are_not_taken(working: Working):
    working.node()
    own = proof_line(GOOD, source=working.server.platform.source)
    made_up = replace(proof_fact(GOOD), kind="platform.fence", payload=canonical({}))
    for line in (own, fact_line(made_up)):
        assert (
            working.owner("POST", "/v1/nodes/node-1/proofs", {"facts": [line]}).status_code == 422
        )


def test_a_proof_from_the_future_is_refused_and_hides_no_later_one(working: Working):
    """A machine whose clock is a year ahead: its audit would be the last word on it for a year."""
    working.node()
    ahead = audited(audit="6" * 32, expires_us=LATER + 400 * DAY_US)
    said = working.owner(
        "POST", "/v1/nodes/node-1/proofs", {"facts": [proof_line(ahead, at_us=MIDMONTH_US + 365 * DAY_US)]}
    )  # fmt: skip
    assert said.status_code == 422
    assert "the machine's clock is ahead" in said.text
    # However it came to stand there, it does not count before its moment.
    fact = proof_fact(ahead, at_us=MIDMONTH_US + 365 * DAY_US)
    working.server.platform.store.append([fact], now_us=MIDMONTH_US, own_source="d" * 32)
    assert "no audit is on record" in _refused(working)
    bad = audited(verdict="CRITICAL", audit="7" * 32, expires_us=LATER)
    _prove(working, proof_line(bad, at_us=MIDMONTH_US))
    assert "its audit is CRITICAL" in _refused(working)


def test_no_proof_counts_longer_than_the_tables_let_it(working: Working):
    working.node()
    old = audited(expires_us=LATER + 1000 * DAY_US)
    _prove(working, proof_line(old, at_us=MIDMONTH_US - 31 * DAY_US))
    assert "its audit is too old" in _refused(working)
    _prove(working, proof_line(audited(audit="8" * 32, expires_us=LATER)))
    forever = certificate(expires_us=LATER + 10_000 * DAY_US)
    _prove(working, proof_line(forever, at_us=MIDMONTH_US - 1000 * DAY_US))
    assert "its certificate for batch is expired" in _refused(working)
