"""Whoever is told of an alarm: answers that drip, commands that hang or speak, words of any kind."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from ouvrage.adapters.messenger import call, post
from ouvrage.adapters.web_address import address_fault
from tests.support.meter import until


def test_an_answer_that_drips_is_left_behind():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            line, _ = listener.accept()
            with line:
                line.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not over.wait(0.05):
                    line.sendall(b"a")

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        began = time.monotonic()
        said = post(f"http://127.0.0.1:{listener.getsockname()[1]}/", {"words": "x"}, 0.3)
        took = time.monotonic() - began
        over.set()
        server.join(10)
    assert (said, took < 5) == ("no whole answer within 0.3 s", True)


def test_a_command_that_hangs_ends_with_what_it_started(tmp_path: Path):
    pid = tmp_path / "pid"
    said = call(f"sleep 600 & echo $! > {pid}; wait", {"words": "x"}, 0.5)
    assert said == "it did not end within 0.5 s"
    until(lambda: _gone(int(pid.read_text())), "what the command started has ended")


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_what_a_command_says_does_not_stand_in_the_answer(capfd: pytest.CaptureFixture[str]):
    assert call("echo hello", {"words": "x"}) is None
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "hello\n")


def test_any_words_can_be_told():
    told = {"words": "a\ud800\0;$(exit 3)"}
    assert call(r"""test "$OUVRAGE_WORDS" = 'a\ud800;$(exit 3)'""", told) is None
    assert os.environ.get("OUVRAGE_WORDS") is None


def test_a_password_in_an_address_would_not_be_sent():
    assert "password" in (address_fault("https://me:word@example.org/") or "")
