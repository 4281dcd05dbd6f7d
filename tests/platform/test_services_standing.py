"""What is decided and kept about services without any sandbox: health, restarts, sums, and whose streams they are."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from ouvrage.metering.answers import Answered
from ouvrage.metering.service_use import Exchange
from ouvrage.model.work import ServiceUsed
from ouvrage.server.context import Actor
from ouvrage.server.identify import SESSION_COOKIE
from ouvrage.server.services import signing_in
from ouvrage.server.services.uses import Uses
from ouvrage.wire.tunnel import CONTROL, STREAMS
from tests.platform.test_attempts import holds, ready, started
from tests.platform.working import Working

SECOND = 1_000_000


def ill(working: Working, attempt: str, seconds: int) -> None:
    twin = working.twins[0]
    twin.report([twin.progress(attempt, 0, well=False, ill_us=seconds * SECOND)])
    working.reconcile()


def test_a_service_that_is_ill_for_long_is_ended_and_started_again(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann, port=8000, health="/health", restart="on-failure")
    twin.report([twin.began(attempt)])
    ill(working, attempt, 59)
    twin.ask()
    assert (twin.stops, ann.get(f"/v1/jobs/{job}")["service"]["well"]) == ([], False)
    ill(working, attempt, 60)
    twin.ask()
    assert [(each.why, each.reason) for each in twin.stops] == [
        ("unhealthy", "/health has not answered well for 60 s")
    ]
    working.clock.move(SECOND)
    twin.report([twin.ended(attempt, "unhealthy")])
    seen = ann.get(f"/v1/jobs/{job}")
    assert (seen["state"], seen["end_code"]) == ("waiting", "job/restart")
    working.engine.observe()
    assert ann.get(f"/v1/jobs/{job}")["attempts"] == 1
    working.clock.move(11 * SECOND)
    working.engine.observe()
    seen = ann.get(f"/v1/jobs/{job}")
    assert (seen["attempts"], seen["service"]["restarts"]) == (2, 1)
    holds(working)


def test_a_port_that_does_not_answer_ends_nothing_by_itself(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    _, attempt = started(working, ann, port=8000)
    twin.report([twin.began(attempt)])
    ill(working, attempt, 3600)
    twin.ask()
    assert twin.stops == []


def exchange(tokens: int) -> Exchange:
    answered = Answered(tokens_in=1, tokens_out=tokens, pieces=0)
    return Exchange(
        status=200, answered=answered, bytes_in=1, bytes_out=1, first_us=5, token_us=6, took_us=7
    )


def test_sums_are_stated_now_and_then_and_each_once(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann, port=8000)
    twin.report([twin.began(attempt)])
    platform = working.server.platform
    uses = Uses(platform)

    def facts() -> list[Any]:
        return platform.store.records(kind=ServiceUsed.KIND)

    uses.note(attempt, job, exchange(3))
    uses.state()
    assert (facts(), uses.total(attempt).tokens_out) == ([], 3)
    working.clock.move(11 * SECOND)
    uses.note(attempt, job, exchange(4))
    uses.state()
    uses.state()
    assert (len(facts()), uses.total(attempt).tokens_out) == (1, 7)
    uses.note(attempt, job, exchange(5))
    assert uses.total(attempt).tokens_out == 12
    uses.state(all_=True)
    assert (len(facts()), uses.total(attempt).tokens_out) == (2, 12)
    assert Uses(platform).total(attempt).tokens_out == 12
    holds(working)


def test_what_could_not_be_stated_is_kept(working: Working, monkeypatch: Any) -> None:
    platform = working.server.platform
    uses = Uses(platform)
    uses.note("a" * 32, "b" * 32, exchange(3))
    with monkeypatch.context() as broken:
        broken.setattr(type(platform), "writing", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            uses.state(all_=True)
    uses.note("a" * 32, "b" * 32, exchange(4))
    assert uses.total("a" * 32).tokens_out == 7


@pytest.mark.parametrize("path", [CONTROL, f"{STREAMS}/{'0' * 32}"])
def test_streams_are_a_node_s_own(working: Working, path: str) -> None:
    ann, url = ready(working), working.server.url.replace("http", "ws", 1)
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer nonsense"}, 401),
        ({"Authorization": f"Bearer {ann.token}"}, 403),
        ({"Cookie": f"ouvrage_session={ann.token}"}, 401),
        ({"Authorization": f"Bearer {working.twins[0].key}"}, 404),
    ):
        if path == CONTROL and status == 404:
            continue
        with pytest.raises(InvalidStatus) as refused:
            connect(url + path, additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == status


def test_the_job_s_page_says_what_its_service_did(working: Working) -> None:
    ann, twin = ready(working), working.twins[0]
    job, attempt = started(working, ann, port=8000, health="/health")
    twin.report([twin.began(attempt), twin.progress(attempt, 0, well=True)])
    platform = working.server.platform
    uses = Uses(platform)
    uses.note(attempt, job, exchange(3))
    uses.state(all_=True)
    who = Actor(kind="user", id=ann.get("/v1/me")["user"], login="ann@acme")
    cookie = {"Cookie": f"{SESSION_COOKIE}={signing_in.new_session(platform, who)}"}
    for path, words in ((f"/jobs/{job}", "Tokens out"), (f"/jobs/{job}.json", "/v1/services/")):
        answer = ann.http.get(path, headers=cookie)
        assert answer.status_code == 200, answer.text
        assert words in answer.text
    assert ann.http.get("/", headers=cookie).status_code == 200
