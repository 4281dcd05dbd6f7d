"""Services that answer what no server should, or nothing, and rights that end while an answer is read."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from ouvrage.adapters.server_client import Server
from ouvrage.adapters.stream_client import Line, dial
from ouvrage.base.errors import OuvrageError
from ouvrage.wire import inside
from ouvrage.wire.inside import Frames, Size, Terminal, Wanted, frame
from tests.support.meter import until
from tests.support.odd_service import ODD
from tests.support.orders import missing
from tests.support.own_node import OwnNode, own_node
from tests.support.server import Client


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnNode]:
    why = missing()
    if why:
        pytest.skip(why)
    with own_node(tmp_path_factory.mktemp("odd")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(node: OwnNode) -> Client:
    return node.server.tenant("acme")


@pytest.fixture(scope="module")
def service(node: OwnNode, ann: Client) -> Iterator[str]:
    with node.serving(ann, ODD, "odd") as job:
        yield job


def said(who: Client, job: str) -> str:
    return who("GET", f"/v1/jobs/{job}/log").text


@contextlib.contextmanager
def raw(node: OwnNode) -> Iterator[socket.socket]:
    host, _, port = node.server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 20) as line:
        yield line


def asked(who: Client, path: str, more: str = "") -> bytes:
    head = (
        f"GET /v1/services/odd{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {who.token}\r\n"
    )
    return f"{head}{more}\r\n".encode()


@pytest.mark.parametrize(
    ("path", "status", "ends"),
    [
        ("/999", b"502", b""),
        ("/101", b"502", b""),
        ("/204", b"204", b""),
        ("/both", b"200", b"5\r\nhello\r\n0\r\n\r\n"),
    ],
)
def test_an_odd_answer_leaves_the_line_as_it_should_be(
    node: OwnNode, ann: Client, service: str, path: str, status: bytes, ends: bytes
) -> None:
    with raw(node) as line:
        line.sendall(
            asked(ann, path) + b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        whole = b""
        while data := line.recv(65536):
            whole += data
    second_at = whole.rindex(b"HTTP/1.1 ")
    first, second = whole[:second_at], whole[second_at:]
    assert first.startswith(b"HTTP/1.1 " + status), whole
    assert first.endswith(ends), whole
    assert b'"status":"ok"' in second, whole
    assert whole.count(b"HTTP/1.1 ") == 2
    if status != b"502":
        assert b"content-length" not in first.lower()


@pytest.mark.parametrize("path", ["/elsewhere", "/nowhere"])
def test_a_service_that_sends_a_socket_elsewhere_takes_none(
    node: OwnNode, ann: Client, service: str, path: str
) -> None:
    address = f"ws{node.server.url.removeprefix('http')}/v1/services/odd{path}"
    headers = {"Authorization": f"Bearer {ann.token}"}
    with pytest.raises(InvalidStatus) as refused:
        connect(address, additional_headers=headers, proxy=None)
    assert refused.value.response.status_code == 502
    assert b"service/no-socket" in (refused.value.response.body or b"")


def test_a_revoked_token_ends_the_answers_that_are_still_read(
    node: OwnNode, ann: Client, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ouvrage.server.routes import job_output, services

    for module in (job_output, services):
        monkeypatch.setattr(module, "AGAIN_S", 0.2)
    token = ann.post("/v1/tokens", {"name": "t", "scopes": ["work"]})
    headers = {"Authorization": f"Bearer {token['secret']}"}
    read: dict[str, threading.Event] = {}
    readers: list[threading.Thread] = []

    def reads(path: str) -> None:
        with (
            contextlib.suppress(httpx2.RemoteProtocolError),
            httpx2.Client(base_url=node.server.url, timeout=30, headers=headers) as http,
            http.stream("GET", path) as answer,
        ):
            read[path].set()
            for _ in answer.iter_raw():
                pass

    for path in ("/v1/services/odd/drip", f"/v1/jobs/{service}/log?follow=true"):
        read[path] = threading.Event()
        readers.append(threading.Thread(target=reads, args=(path,), daemon=True))
        readers[-1].start()
        assert read[path].wait(20)
    ann("DELETE", f"/v1/tokens/{token['token']}").raise_for_status()
    for reader in readers:
        reader.join(10)
    assert [each.is_alive() for each in readers] == [False, False]


def test_an_asker_that_goes_away_is_waited_for_no_more(
    node: OwnNode, ann: Client, service: str
) -> None:
    before = said(ann, service).count("left")
    with raw(node) as line:
        line.sendall(asked(ann, "/never"))
        until(lambda: said(ann, service).count("asked") > before, "the question")
    until(lambda: said(ann, service).count("left") > before, "that nobody waits any more")


def test_a_service_that_takes_nothing_holds_no_line_of_who_has_gone(
    node: OwnNode, ann: Client, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ouvrage.server import through

    monkeypatch.setitem(through._TIMES, "write", 0.5)  # pyright: ignore[reportPrivateUsage] -- nobody waits a minute in a test
    head = "Content-Length: 100000000\r\n"
    with raw(node) as line:
        line.sendall(asked(ann, "/deaf", head))
        answer = b""
        with contextlib.suppress(OSError):
            for _ in range(1000):
                line.sendall(b"x" * 100_000)
        with contextlib.suppress(OSError):
            answer = line.recv(65536)
    assert answer.startswith(b"HTTP/1.1 502"), answer


def test_a_line_that_is_cut_ends_also_where_nothing_is_taken(
    node: OwnNode, ann: Client, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner lets go of a sandbox whose port takes nothing once nobody has a right to it any more."""
    from ouvrage.server.routes import inside as entrance

    monkeypatch.setattr(entrance, "AGAIN_S", 0.2)
    token = ann.post("/v1/tokens", {"name": "t", "scopes": ["work"]})
    before = _sockets(node.runner.pid)
    at = Server(url=node.server.url, token=token["secret"])
    line = dial(at, f"/v1/jobs/{service}/ports/8000")
    line.send(b"GET /deaf HTTP/1.0\r\n\r\n")
    flood = threading.Thread(target=_floods, args=(line,), daemon=True)
    flood.start()  # with more than all that lies between holds
    until(lambda: _sockets(node.runner.pid) > before, "the runner's ends of it")
    ann("DELETE", f"/v1/tokens/{token['token']}").raise_for_status()
    until(lambda: _sockets(node.runner.pid) <= before, "their end")
    flood.join(10)
    line.close()


def _floods(line: Line) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            line.send(b"x" * 50_000)


def _sockets(pid: int) -> int:
    found = 0
    for each in os.scandir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(each.path).startswith("socket:")
    return found


def test_an_organisation_has_so_many_connections_open_and_no_more(
    node: OwnNode, ann: Client, service: str
) -> None:
    settings = node.server.platform.settings
    usual = settings.streams_of_one
    object.__setattr__(settings, "streams_of_one", 2)
    try:
        _three(node, ann, service)
    finally:
        object.__setattr__(settings, "streams_of_one", usual)


def _three(node: OwnNode, ann: Client, service: str) -> None:
    at, path = Server(url=node.server.url, token=ann.token), f"/v1/jobs/{service}/ports/8000"
    lines = [until(lambda: _dialled(at, path), "a place") for _ in range(2)]
    with pytest.raises(OuvrageError) as refused:
        dial(at, path)
    assert refused.value.code == "stream/too-many"
    lines[0].close()
    lines.append(until(lambda: _dialled(at, path), "a place that was given back"))
    for line in lines[1:]:
        line.close()


@pytest.mark.soak
def test_whoever_pauses_for_longer_than_a_ping_loses_nothing(node: OwnNode, ann: Client) -> None:
    much = 20_000_000
    code = (
        "import socket, sys, time; taken, _ = socket.create_server(('127.0.0.1', 9)).accept(); time.sleep(50)\n"
        "count = 0\nwhile piece := taken.recv(65536): count += len(piece)\n"
        "taken.sendall(b'%d' % count)"
    )
    job = node.submit(ann, "python3", "-c", code.replace("9)", "9000)"), name="slow")
    node.until(ann, job, "running")
    at = Server(url=node.server.url, token=ann.token)
    line = until(lambda: _dialled(at, f"/v1/jobs/{job}/ports/9000"), "its port")
    shell = dial(at, f"/v1/jobs/{job}/inside")
    said = Terminal(
        command=["head", "-c", str(much), "/dev/zero"], term="dumb", size=Size(rows=9, columns=9)
    )
    shell.send(frame(inside.WANTED, Wanted(what=said).model_dump_json().encode()))
    for _ in range(much // 50_000):
        line.send(b"x" * 50_000)
    line.end()
    assert (
        b"".join(line.pieces()) == b"%d" % much
    )  # after fifty seconds, in which nobody read the shell
    frames, count = Frames(), 0
    for piece in shell.pieces():
        count += sum(len(body) for sort, body in frames.take(piece) if sort == inside.DATA)
    assert count == much


def _dialled(at: Server, path: str) -> Line | None:
    with contextlib.suppress(OuvrageError):
        return dial(at, path)
    return None
