"""One GET: whatever is not a whole answer in time from the host that was asked is a fault."""

from __future__ import annotations

import time

import pytest

from ouvrage.adapters.web import Answer, Reach, get
from ouvrage.base.errors import OuvrageError
from tests.support.web import Records, Reply, serving


def asked(records: Records, reply: Reply, **reach: object) -> Answer:
    records.replies["/x"] = reply
    return get(f"{records.url}/x", Reach(**{"deadline_s": 5.0, **reach}))  # pyright: ignore[reportArgumentType] - a test's own options


def test_a_whole_answer(records: Records):
    answer = asked(records, Reply(200, b"abc"))
    assert (answer.status, answer.body, answer.fault) == (200, b"abc", None)
    assert answer.answered_us is not None and answer.answered_us >= answer.asked_us


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_a_status_is_an_answer_with_its_body(records: Records, status: int):
    answer = asked(records, Reply(status, b"why"))
    assert (answer.status, answer.body, answer.fault) == (status, b"why", None)


def test_a_short_body_is_cut_short(records: Records):
    answer = asked(records, Reply(200, b"abc", cut=7))
    assert answer.fault == "cut short: 7 of 10 bytes did not come"
    assert answer.body == b"abc"


def test_a_long_one_stops_at_the_limit(records: Records):
    answer = asked(records, Reply(200, b"a" * 300_000), limit_bytes=100_000)
    assert answer.fault == "longer than 100000 bytes"
    assert len(answer.body) == 100_000


@pytest.mark.parametrize("drip", [False, True])
def test_the_deadline_is_for_all_of_it(records: Records, drip: bool):
    began = time.monotonic()
    answer = asked(records, Reply(200, b"", held=True, drip=drip, cut=10_000), deadline_s=0.2)
    assert time.monotonic() - began < 3
    assert answer.fault == "no whole answer within 0.2 s"
    assert answer.answered_us is None


def test_a_host_that_hangs_up(records: Records):
    answer = asked(records, Reply(hang_up=True))
    assert answer.status is None
    assert answer.fault


def test_nobody_there():
    with serving() as gone:
        url = gone.url
    answer = get(f"{url}/x", Reach(deadline_s=5))
    assert answer.status is None
    assert (answer.fault or "").startswith("not reached")


def test_a_redirect_on_the_same_host_is_followed(records: Records):
    records.replies["/y"] = Reply(200, b"there")
    assert asked(records, Reply(302, headers={"Location": "/y"})).body == b"there"


def test_a_redirect_elsewhere_is_not_followed_unless_it_was_named(records: Records):
    records.replies["/y"] = Reply(200, b"there")
    elsewhere = records.url.replace("127.0.0.1", "localhost")
    reply = Reply(301, headers={"Location": f"{elsewhere}/y"})
    answer = asked(records, reply)
    assert "another host, localhost:" in (answer.fault or "")
    assert records.asked == ["/x"]
    assert asked(records, reply, follow=frozenset({"localhost"})).body == b"there"


def test_a_redirect_in_a_circle_ends(records: Records):
    answer = asked(records, Reply(302, headers={"Location": "/x"}))
    assert answer.status == 302 or answer.fault
    assert len(records.asked) < 10


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/x", "x", "http://"])
def test_only_the_web_is_asked(address: str):
    with pytest.raises(OuvrageError) as refused:
        get(address, Reach())
    assert refused.value.code == "web/address"


def test_a_redirect_to_a_file_is_not_followed(records: Records):
    answer = asked(records, Reply(302, headers={"Location": "file:///etc/passwd"}))
    assert b"root" not in answer.body
    assert answer.fault or answer.status == 302
