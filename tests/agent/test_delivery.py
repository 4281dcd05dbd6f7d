"""What takes facts away, before a server that refuses, is busy, or answers byte by byte: nothing is lost, nothing held up."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.clock import monotonic_us
from ouvrage.agent.probing import watch
from ouvrage.agent.probing.deliver import REFUSED, deliver, to_server
from ouvrage.agent.probing.spool import Spool
from ouvrage.agent.probing.watch import _Delivery
from ouvrage.ledger.kinds import read
from ouvrage.metering.exchange import read_export
from ouvrage.model.health import HealthEvent
from tests.agent.test_watch_spool import said
from tests.support.meter import until


class Server:
    """A server that answers as ``answer(facts)`` says: a status, and what it takes."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.posts = 0
        self.statuses: list[int] = []
        self.instead: list[Any] = []
        self.most = 1 << 30
        self.spoilt: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.posts += 1
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, told = outer.answer(body)
                text = told if isinstance(told, bytes) else json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, body: bytes) -> tuple[int, Any]:
        if self.instead:
            return 200, self.instead.pop(0)
        if self.statuses:
            status = self.statuses.pop(0)
            return status, b"<html>garbage" if status != 200 else {}
        events = [read(fact) for fact in read_export(body).facts]
        keys = [event.code for event in events if isinstance(event, HealthEvent)]
        error = {"error": {"code": "facts/no", "message": "no"}}
        if len(keys) > self.most:
            return 413, error
        if self.spoilt & set(keys):
            return 422, error
        self.taken += keys
        return 200, {"results": ["accepted"] * len(keys), "conflicts": [], "epoch": 1}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    state = tmp_path / "state"
    made = Spool(state)
    (state / "node.json").write_text(json.dumps({"key": "k"}))
    made.add([said(number) for number in range(500)])
    return made


def test_more_than_a_server_takes_at_once_goes_in_parts(
    server: Server, spool: Spool, tmp_path: Path
) -> None:
    server.most = 60
    deliver(spool, to_server(tmp_path / "state", server.url, None))
    assert server.taken == [str(number) for number in range(500)]
    assert spool.empty


def test_a_fact_that_no_server_takes_is_put_aside_without_asking_for_each_other(
    server: Server, spool: Spool, tmp_path: Path
) -> None:
    server.spoilt = {"7", "499"}
    deliver(spool, to_server(tmp_path / "state", server.url, None))
    assert len(server.taken) == 498
    assert len((tmp_path / "state" / REFUSED).read_text().splitlines()) == 2
    assert server.posts < 60, "halves, not one by one"


def test_a_week_of_errors_and_garbage_loses_nothing(
    server: Server, spool: Spool, tmp_path: Path
) -> None:
    server.statuses = [500, 502, 503, 429, 404, 401, 403, 301, 400, 500]
    send = to_server(tmp_path / "state", server.url, None)
    for _ in range(20):
        with suppress(Exception):
            deliver(spool, send)
    assert server.taken == [str(number) for number in range(500)]
    assert not (tmp_path / "state" / REFUSED).exists()


def test_an_answer_that_is_none_is_asked_again_and_is_no_end_of_it(
    server: Server, spool: Spool, tmp_path: Path
) -> None:
    """As a captive portal gives, or a proxy whose server is away: 200 alone has taken nothing."""
    answers: list[Any] = [
        b"<html>",
        b"[]",
        b"",
        {},
        {"conflicts": "x"},
        {"results": [], "conflicts": []},
    ]
    server.instead = answers
    send = to_server(tmp_path / "state", server.url, None)
    for _ in range(9):
        with suppress(OSError):
            deliver(spool, send)
    assert server.taken == [str(number) for number in range(500)]


def test_whoever_delivers_for_too_long_is_ended_and_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_DELIVERS_WITHIN_US", 0)
    monkeypatch.setattr(watch, "_DELIVER_FIRST_US", 0)
    spool = Spool(tmp_path / "s")
    spool.add([said(1)])
    words = [
        sys.executable,
        "-c",
        f"open({str(tmp_path / 'mark')!r}, 'a').write('x'); import signal; signal.pause()",
    ]
    delivery = _Delivery(spool, words)
    mark = tmp_path / "mark"

    def again() -> bool:
        delivery.look(monotonic_us() if mark.exists() else 0, free=True)
        return mark.exists() and len(mark.read_text()) > 1

    until(again, "another one")
    assert delivery._child is not None
    delivery._child.kill()
    delivery._child.wait()
