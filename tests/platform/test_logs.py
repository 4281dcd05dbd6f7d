"""A log is bytes: sent again nothing doubles, followed across a restart nothing is missed, cut it says so."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx2
import pytest

from ouvrage.wire.runner import Report
from tests.platform.working import Clock, Working, working_on
from tests.support.server import NO_CA, Client


def attempt_of(working: Working) -> tuple[Client, str, str]:
    twin = working.node()
    working.offer("standard")
    ann = working.tenant("acme")
    job = working.submit(ann)["job"]
    working.engine.observe()
    twin.ask()
    attempt = twin.starts[0].attempt
    twin.report([twin.began(attempt)])
    return ann, job, attempt


def test_bytes_sent_again_do_not_double_and_a_hole_is_refused(working: Working) -> None:
    ann, job, attempt = attempt_of(working)
    twin = working.twins[0]
    assert twin.log(attempt, 0, b"one\ntwo\n").offset == 8
    assert twin.log(attempt, 4, b"two\nthree\n").offset == 14
    assert twin.log(attempt, 0, b"one\n").offset == 14
    answer = twin.send("PUT", f"/v1/runner/attempts/{attempt}/log", b"x", offset=20)
    assert (answer.status_code, answer.json()["error"]["field"]) == (409, "14")
    said = ann("GET", f"/v1/jobs/{job}/log")
    assert said.content == b"one\ntwo\nthree\n"
    assert said.headers["ouvrage-log-state"] == "open"
    assert ann("GET", f"/v1/jobs/{job}/log", params={"offset": 4}).content == b"two\nthree\n"
    assert ann("GET", f"/v1/jobs/{job}/log", params={"offset": 99}).status_code == 422
    other = working.node("node-2")
    assert (
        other.send("PUT", f"/v1/runner/attempts/{attempt}/log", b"x", offset=14).status_code == 404
    )


def test_a_log_that_grows_too_large_is_cut_and_says_so(tmp_path: Path) -> None:
    with working_on(tmp_path / "state", log_bytes=10) as working:
        ann, job, attempt = attempt_of(working)
        twin = working.twins[0]
        place = twin.log(attempt, 0, b"0123456789abcdef")
        assert (place.offset, place.full) == (10, True)
        assert twin.log(attempt, 16, b"more").full
        said = ann("GET", f"/v1/jobs/{job}/log", params={"follow": True})
        assert said.content.startswith(b"0123456789\n[ouvrage: the log was cut here, at 10 bytes")
        assert said.headers["ouvrage-log-state"] == "cut"
        assert ann.get(f"/v1/jobs/{job}")["last"]["log_cut"]


class Follower(threading.Thread):
    """Reads a log as it grows, beginning at a byte, until the server ends the answer."""

    def __init__(self, who: Client, job: str, offset: int) -> None:
        super().__init__(daemon=True)
        self.who, self.job, self.offset = who, job, offset
        self.had = b""
        self.news = threading.Condition()
        self.open = threading.Event()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {self.who.token}"}
        params = {"follow": "true", "offset": self.offset}
        path = f"/v1/jobs/{self.job}/log"
        http = httpx2.Client(base_url=self.who.http.base_url, timeout=30, verify=NO_CA)
        with http, http.stream("GET", path, headers=headers, params=params) as answer:
            self.open.set()
            for piece in answer.iter_bytes():
                with self.news:
                    self.had += piece
                    self.news.notify_all()

    def wait_for(self, content: bytes) -> None:
        with self.news:
            assert self.news.wait_for(lambda: content in self.had, 10), self.had


def test_a_log_is_followed_across_a_restart_without_a_line_lost_or_doubled(tmp_path: Path) -> None:
    clock = Clock()
    lines = [b"line %d\n" % number for number in range(40)]
    with working_on(tmp_path / "state", clock=clock) as first:
        ann, job, attempt = attempt_of(first)
        twin = first.twins[0]
        follower = Follower(ann, job, 0)
        follower.start()
        at = 0
        for line in lines[:20]:
            at = twin.log(attempt, at, line).offset
        follower.wait_for(lines[19])
    follower.join(10)  # the server ended, and its answer with it
    assert not follower.is_alive()
    had = follower.had
    with working_on(tmp_path / "state", clock=clock) as second:
        twin.http = httpx2.Client(base_url=second.server.url, timeout=60, verify=NO_CA)
        second.twins.append(twin)
        later = Follower(second.server.client(ann.token), job, len(had))
        later.start()
        at = twin.log(
            attempt, at - 7, lines[19][-7:] + lines[20]
        ).offset  # the runner repeats itself
        for line in lines[21:]:
            at = twin.log(attempt, at, line).offset
        twin.report([twin.ended(attempt)])
        later.join(10)
        assert not later.is_alive()
    assert had + later.had == b"".join(lines)


def test_a_follower_is_told_the_end_at_once(working: Working) -> None:
    ann, job, attempt = attempt_of(working)
    twin = working.twins[0]
    follower = Follower(ann, job, 0)
    follower.start()
    assert follower.open.wait(10)
    twin.log(attempt, 0, b"last words")
    twin.report([twin.ended(attempt)])
    follower.join(5)
    assert (follower.is_alive(), follower.had) == (False, b"last words")


def test_orders_are_waited_for_without_asking_again(working: Working) -> None:
    twin = working.node()
    working.offer("standard")
    ann = working.tenant("acme")
    asking = threading.Thread(target=lambda: twin.ask(wait_s=20), daemon=True)
    asking.start()
    working.submit(ann)
    working.engine.observe()
    asking.join(10)
    assert not asking.is_alive()
    assert len(twin.starts) == 1


@pytest.mark.parametrize("body", ['{"events":[{"event":"began"}]}', "{}", "not json"])
def test_what_is_no_message_is_refused(working: Working, body: str) -> None:
    twin = working.node()
    answer = twin.send("POST", "/v1/runner/events", body)
    assert answer.status_code in (400, 422)
    assert twin.report([]).sequence == 0
    assert Report(events=[]).events == []
