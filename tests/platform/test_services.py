"""Services in real sandboxes, asked through the platform: what passes, what must not, what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.meter import until
from tests.support.orders import missing
from tests.support.own_node import OwnNode, own_node
from tests.support.served import SERVICE
from tests.support.server import Client


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnNode]:
    why = missing()
    if why:
        pytest.skip(why)
    with own_node(tmp_path_factory.mktemp("node")) as made:
        yield made


@pytest.fixture(scope="module")
def ann(node: OwnNode) -> Client:
    return node.server.tenant("acme")


@pytest.fixture(scope="module")
def service(node: OwnNode, ann: Client) -> Iterator[str]:
    with node.serving(ann, SERVICE, "svc") as job:
        yield job


def at(job: str, path: str) -> str:
    return f"/v1/services/{job}{path}"


def told(node: OwnNode, who: Client, job: str) -> Any:
    return node.state_of(who, job)["service"]


def test_a_request_goes_through_and_the_token_does_not(ann: Client, service: str) -> None:
    headers = {
        "Cookie": "ouvrage_session=secret", "X-Mine": "kept", "Connection": "x-hop", "X-Hop": "gone",
        "Host": "console.example",
    }  # fmt: skip
    path = at("svc", "/a%2Fb/c//d?x=1&y=%20")
    answer = ann.http.request(
        "PUT", path, content=b"body", headers={**headers, "Authorization": f"Bearer {ann.token}"}
    )
    assert answer.status_code == 200, answer.text
    seen = answer.json()
    assert (seen["method"], seen["bytes"], seen["text"]) == ("PUT", 4, "body")
    assert seen["target"] == "/a%2Fb/c//d?x=1&y=%20"
    kept = {name.lower(): value for name, value in seen["headers"].items()}
    assert kept.keys() & {"authorization", "cookie", "x-hop", "idempotency-key"} == set()
    assert kept["x-mine"] == "kept"
    assert kept["host"] == "localhost:8000"
    assert kept["x-forwarded-prefix"] == "/v1/services/svc"
    assert ann.token is not None
    assert ann.token not in answer.text


def test_a_large_body_is_passed_on_as_it_comes(ann: Client, service: str) -> None:
    block = b"x" * (1 << 16)
    answer = ann.http.request(
        "POST", at(service, "/"), content=(block for _ in range(80)),
        headers={"Authorization": f"Bearer {ann.token}"},
    )  # fmt: skip
    assert answer.json()["bytes"] == 80 << 16


def test_what_a_service_answers_cannot_reach_the_console(ann: Client, service: str) -> None:
    answer = ann("GET", at(service, "/cookie"))
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert answer.headers["X-Own"] == "kept"
    assert answer.headers.get_list("content-security-policy") == [
        "sandbox; default-src 'none'; frame-ancestors 'none'"
    ]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "text/html"


def test_an_answer_comes_while_it_is_made(ann: Client, service: str) -> None:
    headers = {"Authorization": f"Bearer {ann.token}"}
    with ann.http.stream("GET", at(service, "/slow"), headers=headers) as answer:
        pieces = answer.iter_raw()
        seen = b""
        while b"one" not in seen:
            seen += next(pieces)
        assert b"two" not in seen
        with httpx2.Client(base_url=str(ann.http.base_url), headers=headers, timeout=30) as other:
            assert other.get(at(service, "/go")).status_code == 200
        assert b"two" in b"".join(pieces)


def test_requests_tokens_and_times_are_counted(node: OwnNode, ann: Client) -> None:
    job = node.submit(ann, "python3", "-c", SERVICE, port=8000, health="/health")
    node.until_well(ann, job)
    chat = at(job, "/v1/chat/completions")
    assert ann("POST", chat, {"stream": True}).status_code == 200
    assert ann("POST", chat, {}).json()["usage"]["completion_tokens"] == 11
    found = until(lambda: told(node, ann, job)["requests"] == 2 and told(node, ann, job), "two")
    assert (found["tokens_in"], found["tokens_out"], found["counted"]) == (12, 14, 2)
    assert (found["unit"], found["units"], found["failed"]) == ("token", 14, 0)
    assert 0 < found["token"]["p50_us"] <= found["took"]["p95_us"]
    assert found["first"]["p50_us"] <= found["took"]["p95_us"]
    assert (float(found["cost_per_unit"]) > 0, found["currency"]) == (True, "EUR")

    assert ann("POST", chat, {"stream": True, "usage": False}).status_code == 200
    assert ann("GET", at(job, "/fails")).status_code == 500
    with pytest.raises(httpx2.RemoteProtocolError):
        ann("GET", at(job, "/breaks"))
    until(lambda: told(node, ann, job)["requests"] == 5, "five")
    found = told(node, ann, job)
    assert (found["failed"], found["pieces"], found["counted"]) == (2, 3, 2)
    assert (found["unit"], found["units"]) == ("request", 3)  # one did not tell its tokens
    node.cancel(ann, job)


def test_what_does_not_listen_or_has_ended_is_told_apart(node: OwnNode, ann: Client) -> None:
    deaf = node.submit(ann, "sleep", "60", port=9000)
    node.until(ann, deaf, "running")
    answer = ann("GET", at(deaf, "/"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "service/not-listening")
    assert answer.headers["Retry-After"]
    node.cancel(ann, deaf)
    answer = ann("GET", at(deaf, "/"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "job/ended")
    plain = node.submit(ann, "sleep", "60")
    node.until(ann, plain, "running")
    answer = ann("GET", at(plain, "/"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "service/no-port")
    node.cancel(ann, plain)


def test_only_its_own_people_reach_a_service(node: OwnNode, ann: Client, service: str) -> None:
    rival = node.server.tenant("rival")
    for who, status in (
        (rival, 404),
        (node.owner, 403),
        (node.server.client(None), 401),
        (node.server.client("nonsense"), 401),
    ):
        answer = who("GET", at(service, "/secret"))
        assert answer.status_code == status, answer.text
        assert "svc" not in answer.text
    answer = ann("GET", at(service, "/x?api_key=1"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (
        400,
        "request/secret-in-address",
    )


def test_a_service_that_ends_or_falls_ill_is_started_again(node: OwnNode, ann: Client) -> None:
    job = node.submit(
        ann, "python3", "-c", SERVICE, port=8000, health="/health", restart="on-failure"
    )
    node.until_well(ann, job)
    ann("GET", at(job, "/ends"))
    until(lambda: node.state_of(ann, job)["attempts"] == 1, "one")
    until(lambda: node.state_of(ann, job)["state"] == "waiting", "it waits to be started again")
    seen = node.state_of(ann, job)
    assert (seen["end_code"], seen["last"]["exit_code"]) == ("job/restart", 3)
    answer = ann("GET", at(job, "/"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "job/not-running")
    node.cancel(ann, job)
