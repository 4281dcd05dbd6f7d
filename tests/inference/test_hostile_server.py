"""A server that lies, drips or answers nonsense: every request ends, has a name, and costs its time."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.openai_server import checked_url
from ouvrage.base.errors import OuvrageError
from ouvrage.metering.arrivals import read_arrivals
from tests.support.inside import Inside

Answer = Callable[[socket.socket, bytes], None]
MODELS = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"data":[{"id":"m"}]}'


def _request(line: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data and (piece := line.recv(65_536)):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [row for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:")]
    while lengths and len(body) < int(lengths[0].split(b":")[1]):
        body += line.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def answering(hostile: Answer, models: bytes = MODELS) -> Iterator[str]:
    """A server whose first two prompts are answered well and whose others are ``hostile``."""
    asked = iter(range(10**9))
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:

        def one(line: socket.socket) -> None:
            with line:
                request = _request(line)
                if request.startswith(b"GET"):
                    line.sendall(models)
                elif next(asked) < 2:
                    words = len(json.loads(request.split(b"\r\n\r\n", 1)[1])["prompt"].split())
                    stream(*told(words, 2))(line, request)
                else:
                    hostile(line, request)

        def accept() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(line,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def told(into: int, out: int, **usage: Any) -> tuple[Any, ...]:
    """The events of an answer of two pieces."""
    counts = {"prompt_tokens": into, "completion_tokens": out, **usage}
    pieces = ({"choices": [{"text": word}]} for word in ("a", "b"))
    return (*pieces, {"choices": [], "usage": counts}, "[DONE]")


def stream(*events: Any) -> Answer:
    def send(line: socket.socket, _request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            line.sendall(b"data: " + text.encode() + b"\n\n")

    return send


def drips(line: socket.socket, _request: bytes) -> None:
    """A header that never ends, each piece soon enough for a timeout of silence."""
    line.settimeout(0.05)
    try:
        line.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            line.sendall(b"a")
            try:
                if not line.recv(1):
                    return
            except TimeoutError:
                continue
    except OSError:
        return


@pytest.fixture
def ouvrage(tmp_path: Path) -> Inside:
    return Inside(tmp_path / "home")


def replayed(
    ouvrage: Inside, tmp_path: Path, url: str, *words: str, rows: str = "0,10,5\n0,10,5\n"
) -> dict[str, Any]:
    (tmp_path / "trace.csv").write_text("at_s,tokens_in,tokens_out\n" + rows)
    said = ouvrage(
        "inference", "replay", str(tmp_path / "trace.csv"), "--server", url, "--price", "2/h",
        *words, "--json",
    )  # fmt: skip
    assert ouvrage("verify").code == 0
    return json.loads(said.out)


@pytest.mark.parametrize("event", [{"choices": 5}, {"choices": True}, {"choices": [5]}])
def test_nonsense_is_garbled_and_costs_its_time(
    ouvrage: Inside, tmp_path: Path, event: Any
) -> None:
    with answering(stream(event, "[DONE]")) as url:
        report = replayed(ouvrage, tmp_path, url)
    assert report["inference"]["failures"] == {"garbled": 2}
    assert report["wall_s"] > 0.0001
    assert [note for note in report["notes"] if "busy-client" in str(note)] == []


@pytest.mark.parametrize("lie", [7, 10**6, 10**12])
def test_more_tokens_than_were_asked_for_are_not_believed(
    ouvrage: Inside, tmp_path: Path, lie: int
) -> None:
    cached = {"prompt_tokens_details": {"cached_tokens": 10**9}}
    with answering(stream(*told(10, lie, **cached))) as url:
        report = replayed(ouvrage, tmp_path, url)
    found = report["inference"]
    assert (found["tokens_in"]["total"], found["tokens_out"]["total"]) == (20, 4)
    assert not found["tokens_in"].get("cached")
    assert "usage-not-believed" in str(report["notes"])
    assert ouvrage("explain", "last:inference.tokens_out.total", "--json").json["grade"] == (
        "assumed"
    )


def test_the_tokens_of_a_prompt_cannot_be_far_more_than_its_bytes(
    ouvrage: Inside, tmp_path: Path
) -> None:
    with answering(stream(*told(10**9, 5))) as url:
        found = replayed(ouvrage, tmp_path, url)["inference"]
    assert found["tokens_in"]["total"] is None
    assert found["tokens_out"]["total"] == 10


def test_a_first_answer_that_drips_is_given_up(ouvrage: Inside, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at_s,tokens_in,tokens_out\n0,10,5\n")
    where = str(tmp_path / "trace.csv")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            line, _ = listener.accept()
            with line:
                drips(line, b"")

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        said = ouvrage(
            "inference", "replay", where, "--server", url, "--model", "m", "--timeout", "1s"
        )
    assert (said.code, "did not complete a first prompt: timeout" in said.err) == (2, True)


@pytest.mark.parametrize("page", [b'{"data":5}', b"[]", b'{"data":[{"id":"\\u001b[31m"}]}'])
def test_a_list_of_models_that_is_none_is_refused(
    ouvrage: Inside, tmp_path: Path, page: bytes
) -> None:
    (tmp_path / "trace.csv").write_text("at_s,tokens_in,tokens_out\n0,10,5\n")
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    with answering(stream(*told(1, 1)), models=head + page) as url:
        said = ouvrage("inference", "replay", str(tmp_path / "trace.csv"), "--server", url)
    assert (said.code, said.err.partition("]")[0]) == (2, "error[inference/no-model")


def test_a_server_that_repeats_the_key_does_not_make_it_seen(
    ouvrage: Inside, tmp_path: Path
) -> None:
    def refuses(line: socket.socket, request: bytes) -> None:
        key = next(row for row in request.split(b"\r\n") if b"Bearer" in row)
        line.sendall(b"HTTP/1.1 401 No\r\nConnection: close\r\n\r\nwrong: \x1b[31m" + key)

    (tmp_path / "trace.csv").write_text("at_s,tokens_in,tokens_out\n0,10,5\n")
    (tmp_path / "key").write_text("sk-very-secret\n")
    words = ("inference", "replay", str(tmp_path / "trace.csv"), "--model", "m")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            line, _ = listener.accept()
            with line:
                refuses(line, _request(line))

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        said = ouvrage(*words, "--server", url, "--api-key-file", str(tmp_path / "key"))
    assert "(HTTP 401)" in said.err
    assert "sk-very-secret" not in said.err
    assert "\x1b" not in said.err


def test_nothing_is_waited_for_after_the_time_that_was_given(
    ouvrage: Inside, tmp_path: Path
) -> None:
    with answering(stream(*told(10, 5))) as url:
        rows = "0,10,5\n9000000,10,5\n"
        report = replayed(ouvrage, tmp_path, url, "--for", "0.2s", rows=rows)
    assert report["inference"]["requests"]["sent"] == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--server", "http://[::1"), "inference/server"),
        (("--server", "http://h", "--rate", "1e999999999"), "inference/pace"),
        (("--server", "http://h", "--rate", "1e-9999999"), "inference/pace"),
        (("--server", "http://h", "--speed-up", "1e-300"), "inference/pace"),
        (("--server", "http://h", "--timeout", "99999999d"), "inference/duration"),
        (("--server", "http://h", "--for", "99999999d"), "inference/duration"),
    ],
)
def test_absurd_options_are_refused(
    ouvrage: Inside, tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    (tmp_path / "trace.csv").write_text("at_s,tokens_in,tokens_out\n0,10,5\n")
    said = ouvrage("inference", "replay", str(tmp_path / "trace.csv"), *words)
    assert (said.code, said.err.partition("]")[0]) == (2, f"error[{code}")
    assert not ouvrage.path.exists()


def test_an_address_with_a_password_is_not_repeated() -> None:
    with pytest.raises(OuvrageError) as caught:
        checked_url("http://me:secret@h/?x=1")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("row", ["abc,1,1", f"{'9' * 200_000},1,1", "0,1\x00,1"])
def test_a_row_that_cannot_be_read_is_named_in_words(row: str) -> None:
    with pytest.raises(OuvrageError) as caught:
        read_arrivals(["at_s,tokens_in,tokens_out", row], "trace.csv")
    assert caught.value.code == "trace/row"
    assert "class" not in caught.value.message
