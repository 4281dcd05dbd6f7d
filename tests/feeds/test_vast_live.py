"""The service asked over HTTP on this machine: patience, faults, and a key that is never told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ouvrage.adapters.feeds.vast_live import service
from ouvrage.base.errors import OuvrageError
from tests.blackbox.home import Home, home_in
from tests.feeds.vast import DAY, answer

KEY = "k3y-of-a-host"


class Vast(ThreadingHTTPServer):
    """Answers days; ``faults`` are given first, one a question."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[int] = []
        self.faults: list[tuple[int, bytes]] = []
        self.keys: set[str | None] = set()
        self.gone_from = DAY + 1000

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Vast

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        day = int(asked["sday"][0])
        assert asked["sday"] == asked["eday"]
        self.server.asked.append(day)
        self.server.keys.add(self.headers["Authorization"])
        status, body = 200, answer(day, day, {7: (1.5,)}, {day: (1.5,)}).encode()
        if day >= self.server.gone_from:
            status, body = 503, b"later"
        elif self.server.faults:
            status, body = self.server.faults.pop(0)
        if status == 0:
            self.connection.close()
            return
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def vast() -> Iterator[Vast]:
    server = Vast()
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    worker.start()
    yield server
    server.shutdown()
    worker.join()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "key").write_text(KEY + "\n")
    (tmp_path / "key").chmod(0o600)
    return home_in(tmp_path, "home")


def ask(home: Home, vast: Vast, *more: str):
    words = ["import", "vast-earnings", "--live", "--api-key-file", "key", "--pause", "0"]
    return home.inside(
        *words, "--url", vast.url, "--from", "2025-11-07", "--to", "2025-11-19", *more
    )


def test_one_question_a_day_and_none_twice(home: Home, vast: Vast):
    said = ask(home, vast)
    assert said.code == 0, said
    assert said.first.startswith("Vast.ai: ")
    assert vast.asked == [DAY + i for i in range(12)]
    assert vast.keys == {f"Bearer {KEY}"}
    assert "statements: 48 new" in said.out
    again = ask(home, vast)
    assert again.first == "Nothing new to ask for"
    assert len(vast.asked) == 12
    assert "48 there already" in ask(home, vast, "--again").out
    assert all(KEY not in str(fact) for fact in home.facts())


def test_a_busy_broken_and_cut_service_is_asked_again(home: Home, vast: Vast):
    vast.faults = [(429, b""), (502, b"<html>"), (0, b""), (200, b"{}"[:1])]
    said = ask(home, vast)
    assert said.code == 2
    assert "no JSON" in said.err
    vast.faults = [(429, b""), (500, b""), (0, b""), (503, b"")]
    assert ask(home, vast).code == 0


def test_what_came_before_a_cut_is_kept_and_the_next_call_goes_on(home: Home, vast: Vast):
    vast.gone_from = DAY + 11
    said = ask(home, vast)
    assert said.code == 1
    assert "gave no answer for 2025-11-18 in 5 tries: HTTP 503" in said.err
    assert KEY not in said.out + said.err
    vast.gone_from, vast.asked = DAY + 1000, []
    assert ask(home, vast).code == 0
    assert vast.asked == [DAY + 11]


def test_a_wrong_key_ends_it_at_once(home: Home, vast: Vast):
    vast.faults = [(401, b"")]
    said = ask(home, vast)
    assert (said.code, len(vast.asked)) == (2, 1)
    assert "error[vast/refused]" in said.err
    assert KEY not in said.err


def test_a_key_that_others_can_read_is_told_and_a_bad_one_refused(home: Home, vast: Vast):
    key = home.path.parent / "key"
    key.chmod(0o644)
    assert "can be read by others" in ask(home, vast).out
    key.write_text("two words")
    assert "error[vast/key-file]" in ask(home, vast).err
    key.unlink()
    assert "error[vast/key-file]" in ask(home, vast).err


def test_a_key_does_not_travel_in_the_clear():
    with pytest.raises(OuvrageError) as refused:
        service("http://example.invalid", KEY, 0)
    assert KEY not in str(refused.value)
    assert KEY not in repr(service("https://example.invalid", KEY, 0))
