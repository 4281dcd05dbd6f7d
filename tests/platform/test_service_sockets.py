"""WebSockets to services in real sandboxes: what passes, what must not, how either side's end is told, and what is counted."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.support.echo import ECHO
from tests.support.meter import until
from tests.support.orders import missing
from tests.support.own_node import OwnNode, own_node
from tests.support.server import Client


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnNode]:
    why = missing()
    if why:
        pytest.skip(why)
    with own_node(tmp_path_factory.mktemp("sockets")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(node: OwnNode) -> Client:
    return node.server.tenant("acme")


@pytest.fixture(scope="module")
def service(node: OwnNode, ann: Client) -> Iterator[str]:
    with node.serving(ann, ECHO, "echo") as job:
        yield job


def dialled(node: OwnNode, who: Client, path: str, **more: Any) -> ClientConnection:
    """A connection, and the first message, which tells what the service was asked."""
    headers = {"Authorization": f"Bearer {who.token}", **more.pop("headers", {})}
    address = f"ws{node.server.url.removeprefix('http')}/v1/services/{path}"
    return connect(address, additional_headers=headers, proxy=None, max_size=1 << 23, **more)


def log_of(ann: Client, job: str) -> str:
    return ann("GET", f"/v1/jobs/{job}/log").text


def test_messages_pass_whole_both_ways(node: OwnNode, ann: Client, service: str) -> None:
    with dialled(node, ann, "echo/a%2Fb?x=1") as line:
        assert json.loads(line.recv())["target"] == "/a%2Fb?x=1"
        big = os.urandom(3_000_000)
        for message in ("word", "", "ünï", b"\x00\xff", b"", big, "x" * 70_000):
            line.send(message)
            assert line.recv(timeout=20) == message
        line.send(["in ", "pieces"])
        assert line.recv(timeout=20) == "in pieces"
        line.send("ping")
        assert line.recv(timeout=20) == "pong"


def test_neither_side_learns_what_is_not_its_business(
    node: OwnNode, ann: Client, service: str
) -> None:
    headers = {"Cookie": "ouvrage_session=secret", "X-Mine": "kept", "X-Forwarded-For": "1.2.3.4"}
    offered = [Subprotocol("v2.kernel"), Subprotocol("v1.kernel")]
    with dialled(
        node, ann, "echo/", headers=headers, subprotocols=offered, origin="http://evil.example"
    ) as line:
        told = json.loads(line.recv())["headers"]
        assert line.subprotocol == "v2.kernel"
        assert line.response is not None
        assert "Set-Cookie" not in line.response.headers
    assert told["x-mine"] == "kept"
    assert told["host"] == "localhost:8000"
    assert told["x-forwarded-prefix"] == "/v1/services/echo"
    gone = {"authorization", "cookie", "origin", "x-forwarded-for", "sec-websocket-extensions"}
    assert told.keys() & gone == set()
    assert ann.token is not None
    assert ann.token not in json.dumps(told)


def test_each_side_s_end_is_the_other_s(node: OwnNode, ann: Client, service: str) -> None:
    for word, code, reason in (("end", 4002, "as asked"), ("drop", 1011, "")):
        with dialled(node, ann, "echo/") as line:
            line.recv()
            line.send(word)
            with pytest.raises(ConnectionClosed) as ended:
                line.recv(timeout=20)
        assert ended.value.rcvd is not None
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (code, reason)
    with dialled(node, ann, "echo/") as line:
        line.recv()
        line.close(4321, "enough")
    until(lambda: "closed 4321 enough" in log_of(ann, service), "the end, in the service's words")
    ended_so_far = log_of(ann, service).count("\n")
    with dialled(node, ann, "echo/") as line:
        line.recv()
        line.socket.shutdown(socket.SHUT_RDWR)  # without a word
    until(lambda: log_of(ann, service).count("\n") > ended_so_far, "the service hears of it")


def test_what_is_refused(node: OwnNode, ann: Client, service: str) -> None:
    rival = node.server.tenant("rival")
    nobody = node.server.client("nonsense")
    for who, path, status, code in (
        (rival, "echo/", 404, "job/unknown"), (nobody, "echo/", 401, "token/unknown"),
        (node.owner, service, 403, "right/missing"), (ann, "none/", 404, "job/unknown"),
        (ann, "echo/refuses", 502, "service/no-socket"), (ann, "echo/health?token=x", 400, "request/secret-in-address"),
    ):  # fmt: skip
        path = path if "/" in path else f"{path}/"
        with pytest.raises(InvalidStatus) as refused:
            dialled(node, who, path)
        assert refused.value.response.status_code == status, path
        assert refused.value.response.body is not None
        assert json.loads(refused.value.response.body)["error"]["code"] == code
    address = f"ws{node.server.url.removeprefix('http')}/v1/services/echo/"
    with pytest.raises(InvalidStatus):  # a cookie opens nothing here
        connect(address, additional_headers={"Cookie": "ouvrage_session=x"}, proxy=None)


def test_a_revoked_token_ends_what_it_opened(
    node: OwnNode, ann: Client, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ouvrage.server.routes import services

    monkeypatch.setattr(services, "AGAIN_S", 0.2)
    token = ann.post("/v1/tokens", {"name": "t", "scopes": ["work"]})
    with dialled(node, node.server.client(token["secret"]), "echo/") as line:
        line.recv()
        line.send("still")
        assert line.recv(timeout=20) == "still"
        ann("DELETE", f"/v1/tokens/{token['token']}").raise_for_status()
        with pytest.raises(ConnectionClosed) as ended:
            line.recv(timeout=20)
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == 1008


def test_a_connection_counts_as_one_request_whose_length_is_nobody_s_wait(
    node: OwnNode, ann: Client
) -> None:
    job = node.submit(ann, "python3", "-c", ECHO, port=8000, health="/health", name="counted")
    node.until_well(ann, job)
    with dialled(node, ann, "counted/") as line:
        first = line.recv()
        line.send("0123456789")
        line.recv()

    def told() -> Any:
        return node.state_of(ann, job)["service"]

    until(lambda: told()["requests"] == 1, "the count")
    assert told()["failed"] == 0
    assert told()["bytes_in"] == 10
    assert told()["bytes_out"] == 10 + len(first)
    assert set(told()["took"].values()) == {None}
    node.cancel(ann, job)
