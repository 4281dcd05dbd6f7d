"""RIPEstat, RDAP and a saved page: present, absent and no answer are never mixed."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest

from ouvrage.adapters import hurricane, rdap, ripestat
from ouvrage.adapters.answers import Place, observation_of
from ouvrage.adapters.web import Answer, Reach, get
from ouvrage.base.grades import Grade
from ouvrage.base.time import utc_us
from ouvrage.evidence.observations import faults, unsealed
from ouvrage.model.observations import Observation
from tests.support.web import (
    AUTNUM,
    NETWORK,
    OVERVIEW,
    PAGE,
    PREFIXES,
    STATUS,
    Records,
    Reply,
    of_json,
)

AS = "AS209045"
PLACES = [ripestat.OVERVIEW, ripestat.STATUS, ripestat.PREFIXES, rdap.AUTNUM, rdap.IP]


def came(place: Place, body: bytes, status: int | None = 200, subject: str = AS) -> Observation:
    answer = Answer(
        address="http://localhost/", asked_us=5, answered_us=6, status=status, body=body, fault=None
    )
    return observation_of(place, subject, answer, ())


def said(found: Observation) -> dict[str, tuple[str, str | None]]:
    return {f.property: (f.outcome, f.value) for f in found.findings}


def edited(document: dict[str, Any], **changes: Any) -> bytes:
    changed = copy.deepcopy(document)
    changed["data"] = {**changed["data"], **changes}
    return json.dumps({**changed}).encode()


def test_not_announced_and_no_holder_are_absent():
    found = came(ripestat.OVERVIEW, json.dumps(OVERVIEW).encode())
    assert said(found) == {"announced": ("absent", None), "holder": ("absent", None)}
    assert found.page_us == utc_us("2026-10-19T08:00:00Z")
    assert {f.grade for f in found.findings} == {"reported"}


def test_announced_with_a_holder_is_present():
    body = edited(OVERVIEW, announced=True, holder="EXAMPLE - Example Ltd")
    assert said(came(ripestat.OVERVIEW, body)) == {
        "announced": ("present", "yes"),
        "holder": ("present", "EXAMPLE - Example Ltd"),
    }


def test_a_field_that_is_missing_is_no_answer_and_not_absent():
    body = json.dumps({"status": "ok", "data": {"resource": "209045"}}).encode()
    for place in (ripestat.OVERVIEW, ripestat.STATUS, ripestat.PREFIXES):
        found = came(place, body)
        assert found.fault is None
        assert {outcome for outcome, _ in said(found).values()} == {"no answer"}


def test_the_routing_status():
    found = said(came(ripestat.STATUS, json.dumps(STATUS).encode()))
    assert found["collector peers that see it, v6"] == ("absent", None)
    assert found["prefixes announced, v4"] == ("absent", None)
    assert found["last seen by the collectors"] == ("present", "2026-04-16T08:00:00")
    seen = edited(STATUS, visibility={"v4": {"ris_peers_seeing": 3}, "v6": {}}, last_seen={})
    found = said(came(ripestat.STATUS, seen))
    assert found["collector peers that see it, v4"] == ("present", "3")
    assert found["collector peers that see it, v6"] == ("no answer", None)
    assert found["last seen by the collectors"] == ("absent", None)


def test_the_prefixes():
    assert said(came(ripestat.PREFIXES, json.dumps(PREFIXES).encode())) == {
        "prefixes announced": ("absent", None)
    }
    rows = [{"prefix": "2a09:7007::/36"}, {"prefix": "2a09:7000::/31", "timelines": []}]
    assert said(came(ripestat.PREFIXES, edited(PREFIXES, prefixes=rows))) == {
        "prefixes announced": ("present", "2a09:7000::/31, 2a09:7007::/36")
    }
    many = [{"prefix": f"10.{n}.0.0/16"} for n in range(60)]
    value = said(came(ripestat.PREFIXES, edited(PREFIXES, prefixes=many)))["prefixes announced"][1]
    assert value and value.endswith("and 10 more")


def test_the_registration():
    found = said(came(rdap.AUTNUM, json.dumps(AUTNUM).encode()))
    assert found == {
        "registration": ("present", "AS209045"),
        "registered name": ("present", "EXAMPLE-AS"),
        "registered country": ("present", "MT"),
        "registrant": ("present", "Example Ltd"),
    }
    block = came(rdap.IP, json.dumps(NETWORK).encode(), subject="2a09:7000::/31")
    assert said(block)["registered country"] == ("present", "MT")
    assert said(block)["registrant"] == ("absent", None)
    assert {f.grade for f in block.findings} == {"listed"}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"errorCode": 404}', 404),
        (b"", 500),
        (b"<html>busy</html>", 200),
        (b"", 200),
        (b"[]", 200),
        (b"null", 200),
        (b'{"status": "ok"', 200),
        (b'{"status": "error", "data": {}}', 200),
        (b'{"status": "ok", "data": [1]}', 200),
        (b'{"status": "ok", "data": {"resource": "64496", "announced": false}}', 200),
        (b'{"objectClassName": "domain"}', 200),
        (b'{"objectClassName": "autnum", "startAutnum": 1, "endAutnum": 2}', 200),
        (b'{"objectClassName": "ip network", "startAddress": "10.0.0.0"}', 200),
        (b"\xff\xfe", 200),
        (b"[" * 100_000, 200),
        (b'{"status": "ok", "data": {"resource": "209045", "announced": "no"}}', 200),
    ],
)
def test_anything_else_is_no_answer(place: Place, body: bytes, status: int):
    subject = "2a09:7000::/31" if place is rdap.IP else AS
    found = came(place, body, status, subject)
    assert [f.outcome for f in found.findings] == ["no answer"] * len(place.properties)
    assert unsealed(found) == body
    assert list(faults(found, Grade.MEASURED)) == []
    if found.fault is None:  # a whole answer that leaves this field out
        assert place in (ripestat.STATUS, ripestat.PREFIXES)


def test_a_saved_page():
    found = came(hurricane.PAGE, PAGE.encode(), status=None)
    assert said(found) == {
        "holder": ("present", "Genesis Cloud Limited"),
        "country of origin": ("present", "Malta"),
        "prefixes announced": ("absent", None),
        "prefixes announced, v4": ("absent", None),
        "prefixes announced, v6": ("absent", None),
        "peers seen": ("present", "2"),
        "not visible since": ("present", "2026-04-16"),
        "peers": ("present", "AS13237, AS16276"),
        "prefixes shown": ("present", "2a09:7000::/31, 2a09:7007::/36"),
    }
    assert found.status is None
    other = came(hurricane.PAGE, PAGE.encode(), status=None, subject="AS64496")
    assert other.fault == "not in the form expected: no heading of AS64496"


def test_a_page_that_shows_little_leaves_the_rest_unanswered():
    found = said(came(hurricane.PAGE, b"<h1>AS209045 X</h1>", status=None))
    assert found.pop("holder") == ("present", "X")
    assert {outcome for outcome, _ in found.values()} == {"no answer"}


@pytest.mark.parametrize(
    "piece", [b"<", b"<!--", b"&", b"<script>", b"<a x='", b"</", b"<!", b"<?"]
)
def test_broken_markup_is_read_in_one_pass(piece: bytes):
    before = time.process_time()
    found = came(hurricane.PAGE, PAGE.encode() + piece * (1_000_000 // len(piece)), status=None)
    assert said(found)["holder"] == ("present", "Genesis Cloud Limited")
    assert time.process_time() - before < 20  # what reads from the start again needs hours


@pytest.mark.parametrize(
    "reply",
    [
        Reply(404, b"{}"),
        Reply(500, b"oops"),
        Reply(200, json.dumps(OVERVIEW).encode(), cut=50),
        Reply(200, b"{]"),
        Reply(302, headers={"Location": "http://elsewhere.invalid/"}),
        Reply(hang_up=True),
        Reply(held=True),
    ],
    ids=["404", "500", "cut", "no JSON", "redirect", "hang up", "slow"],
)
def test_a_fault_on_the_way_is_no_answer(records: Records, reply: Reply):
    records.replies["/x"] = reply
    answer = get(f"{records.url}/x", Reach(deadline_s=0.3))
    found = observation_of(ripestat.OVERVIEW, AS, answer, ())
    assert found.fault
    assert {f.outcome for f in found.findings} == {"no answer"}
    assert list(faults(found, Grade.MEASURED)) == []


def test_addresses():
    assert ripestat.overview_address("http://h/data/", AS) == (
        "http://h/data/as-overview/data.json?resource=AS209045"
    )
    assert ripestat.status_address("http://h", "2a09:7000::/31").endswith("2a09%3A7000%3A%3A%2F31")
    assert rdap.autnum_address("http://h/", AS) == "http://h/autnum/209045"
    assert rdap.ip_address("http://h", "2a09:7000::/31") == "http://h/ip/2a09:7000::/31"


def test_the_raw_answer_is_kept_and_found_again(records: Records):
    records.replies["/x"] = of_json(OVERVIEW)
    found = observation_of(ripestat.OVERVIEW, AS, get(f"{records.url}/x", Reach()), ())
    assert unsealed(found) == json.dumps(OVERVIEW).encode()
    assert (found.status, found.size_bytes) == (200, len(json.dumps(OVERVIEW)))
