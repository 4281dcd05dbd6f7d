"""A write happens once, however often it is sent; a list comes in parts without a gap; every refusal has one shape."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import pytest

from tests.support.server import QUICK, Running

KEY = {"Idempotency-Key": "the-same-key-again"}


def _facts(server: Running) -> int:
    return server.platform.store.head().seq


def test_the_same_request_again_is_answered_and_not_done_again(either_server: Running) -> None:
    owner, body = either_server.owner, {"name": "vision"}
    first = owner.post("/v1/projects", body, headers=KEY)
    facts = _facts(either_server)
    assert owner.post("/v1/projects", body, headers=KEY) == first
    assert _facts(either_server) == facts
    assert len(owner.get("/v1/projects")["items"]) == 2


def test_another_request_under_the_same_key_is_refused(platform_server: Running) -> None:
    owner = platform_server.owner
    owner.post("/v1/projects", {"name": "vision"}, headers=KEY)
    for path, body in (
        ("/v1/projects", {"name": "other"}),
        ("/v1/organisations", {"name": "vision"}),
    ):
        refused = owner("POST", path, body, headers=KEY)
        assert (refused.status_code, _code(refused)) == (409, "idempotency/other-request")


def test_another_query_is_another_request(platform_server: Running) -> None:
    owner = platform_server.owner
    owner.post("/v1/organisations", {"name": "queried", "admin": "queen"})
    for project in ("first", "second"):
        owner.post("/v1/projects", {"name": project, "org": "queried"})
    body = {"login": "both", "role": "tenant-user", "org": "queried"}
    made = owner.post("/v1/members", {**body, "project": "queried/first"})["member"]["user"]
    headers = {"Idempotency-Key": "one-and-the-same"}
    ends = f"/v1/members/{made}?project=queried"
    assert owner("DELETE", f"{ends}/first", headers=headers).status_code == 200
    again = owner("DELETE", f"{ends}/second", headers=headers)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "idempotency/other-request")


def test_keys_of_two_people_are_two_keys(platform_server: Running) -> None:
    ann, bob = platform_server.tenant("acme"), platform_server.tenant("rival")
    made = [
        each.post("/v1/projects", {"name": "vision"}, headers=KEY)["project"] for each in (ann, bob)
    ]
    assert made[0] != made[1]


def test_a_refused_request_keeps_no_answer(platform_server: Running) -> None:
    owner = platform_server.owner
    asked = {"name": "vision", "org": "acme"}
    assert owner("POST", "/v1/projects", asked, headers=KEY).status_code == 404
    owner.post("/v1/organisations", {"name": "acme"})
    assert owner.post("/v1/projects", asked, headers=KEY)["org_name"] == "acme"


def test_a_repetition_shows_no_secret(either_server: Running) -> None:
    body = {"name": "t", "scopes": ["all"]}
    first = either_server.owner.post("/v1/tokens", body, headers=KEY)
    again = either_server.owner.post("/v1/tokens", body, headers=KEY)
    assert first["secret"]
    assert again == first | {"secret": None}
    with either_server.platform.reading() as connection:
        rows = connection.exec_driver_sql("SELECT answer FROM idempotent_answers").all()
    assert rows
    assert not [row for row in rows if first["secret"] in row[0]]


def test_the_same_write_at_once_from_many_sides_happens_once(either_server: Running) -> None:
    owner, answers = either_server.owner, list[Any]()

    def ask() -> None:
        answers.append(owner.post("/v1/projects", {"name": "vision"}, headers=KEY))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == 8
    assert len({answer["project"] for answer in answers}) == 1


@pytest.mark.parametrize("key", ["", "short", "x" * 129, "a key with blanks", "é" * 10])
def test_a_write_without_a_good_key_is_refused(shared_server: Running, key: str) -> None:
    headers = {b"Authorization": f"Bearer {shared_server.owner.token}".encode()}
    if key:
        headers[b"Idempotency-Key"] = key.encode("latin-1")
    facts = _facts(shared_server)
    answer = shared_server.owner.http.post("/v1/projects", json={"name": "x"}, headers=headers)
    assert (answer.status_code, _code(answer)) == (400, "idempotency/key")
    assert answer.json()["error"]["hint"]
    assert _facts(shared_server) == facts


def test_a_list_in_parts_has_every_item_once(either_server: Running) -> None:
    owner = either_server.owner
    names = [f"p{number}" for number in range(7)]
    for name in names:
        owner.post("/v1/projects", {"name": name})
    found, cursor, parts = list[str](), None, 0
    while cursor is not None or not parts:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        part = owner.get("/v1/projects", params=query)
        found += [item["name"] for item in part["items"]]
        cursor, parts = part["next"], parts + 1
    assert (sorted(found), parts) == (sorted([*names, "main"]), 3)


def test_lists_newest_first_go_on_where_they_stopped(either_server: Running) -> None:
    ann = either_server.tenant("acme")
    for number in range(5):
        ann.post("/v1/tokens", {"name": f"t{number}", "scopes": ["read"]})
    for path in ("/v1/audit", "/v1/tokens"):
        whole = ann.get(path)["items"]
        first = ann.get(path, params={"limit": 2})
        rest = ann.get(path, params={"cursor": first["next"]})
        assert first["items"] + rest["items"] == whole


@pytest.mark.parametrize(
    "query", ["cursor=%25%25", "cursor=é", "cursor=YQBi", "limit=0", "limit=201", "limit=x"]
)
def test_an_odd_place_in_a_list_is_refused(shared_server: Running, query: str) -> None:
    for path in ("/v1/projects", "/v1/audit"):
        answer = shared_server.owner("GET", f"{path}?{query}")
        assert answer.status_code in (400, 422)
        assert answer.json()["error"]["field"]


ODD: list[tuple[str, str, Any, int]] = [
    ("POST", "/v1/projects", {}, 422),
    ("POST", "/v1/projects", {"name": "x", "more": 1}, 422),
    ("POST", "/v1/projects", {"name": "../x"}, 422),
    ("POST", "/v1/projects", {"name": "a" * 64}, 422),
    ("POST", "/v1/projects", {"name": "0" * 32}, 422),
    ("POST", "/v1/projects", {"name": 7}, 422),
    ("POST", "/v1/projects", [1], 422),
    ("POST", "/v1/projects", {"name": "x", "weight": "-1"}, 422),
    ("POST", "/v1/organisations", {"name": "x", "currency": "euro"}, 422),
    ("POST", "/v1/organisations", {"name": "x", "credit_limit": "1e9"}, 422),
    ("POST", "/v1/organisations", {"name": "owner"}, 409),
    ("POST", "/v1/members", {"login": "x", "role": "tenant-user", "org": "owner"}, 422),
    ("POST", "/v1/members", {"login": "x", "role": "king"}, 422),
    ("POST", "/v1/tokens", {"name": "x\u0000", "scopes": ["all"]}, 422),
    ("POST", "/v1/tokens", {"name": "x", "scopes": ["everything"]}, 422),
    ("POST", "/v1/tokens", {"name": "x", "scopes": ["all"], "days": 10**30}, 422),
    ("GET", "/v1/projects/%00", None, 400),
    ("GET", "/v1/projects?org=%0a", None, 400),
    ("GET", "/v1/organisations/' OR 1=1 --", None, 404),
    ("GET", "/v1/organisations?limit=1;DROP TABLE facts", None, 422),
    ("DELETE", "/v1/tokens/{{7*7}}", None, 422),
    ("PUT", "/v1/projects", {}, 405),
    ("GET", "/v1/nothing", None, 404),
    ("GET", "/v1/../../etc/passwd", None, 404),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), ODD)
def test_every_refusal_has_one_shape(
    shared_server: Running, method: str, path: str, body: Any, status: int
) -> None:
    facts = _facts(shared_server)
    answer = shared_server.owner(method, path, body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) == {"code", "message", "hint", "field"}
    assert "/" in _code(answer)
    assert answer.json()["error"]["message"]
    assert answer.json()["error"]["hint"]
    assert _facts(shared_server) == facts


def test_what_is_no_json_is_refused(shared_server: Running) -> None:
    owner = shared_server.owner
    headers = {"Authorization": f"Bearer {owner.token}", **KEY, "Content-Type": "application/json"}
    for content in (b"{", b"\xff\xfe", b'{"name": "\\ud800"}', b"[" * 100_000):
        answer = owner.http.post("/v1/projects", content=content, headers=headers)
        assert answer.status_code in (400, 422), answer.text
        assert _code(answer).startswith("request/")


def test_every_answer_carries_the_headers_that_keep_browsers_honest(
    shared_server: Running,
) -> None:
    owner = shared_server.owner
    for path in ("/v1/me", "/v1/nothing", "/v1/health", "/v1/me?token=x"):
        headers = owner("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_a_secret_in_the_address_is_refused_even_if_it_is_good(shared_server: Running) -> None:
    token = shared_server.owner.token
    for path in (
        f"/v1/me?token={token}",
        f"/v1/me?q={token}",
        f"/v1/projects/{token}",
        "/v1/me?api_key=1",
    ):
        answer = shared_server.owner("GET", path)
        assert (answer.status_code, _code(answer)) == (400, "request/secret-in-address")
        assert token not in answer.text


def test_a_body_that_is_too_large_is_refused_said_beforehand_or_not(
    shared_server: Running,
) -> None:
    owner = shared_server.owner
    headers = {"Authorization": f"Bearer {owner.token}", **KEY, "Content-Type": "application/json"}
    announced = owner.http.post("/v1/projects", content=b"x" * (1 << 20) + b"x", headers=headers)

    def pieces():
        for _ in range(40):
            yield b" " * (1 << 15)

    streamed = owner.http.post("/v1/projects", content=pieces(), headers=headers)
    for answer in (announced, streamed):
        assert (answer.status_code, _code(answer)) == (413, "request/too-large")


def test_who_asks_too_often_is_told_when_to_come_back(platform_servers: Any) -> None:
    from dataclasses import replace

    slow = replace(
        QUICK,
        requests_a_second=0.1,
        requests_at_once=3,
        strangers_at_once=2,
        strangers_a_second=0.5,
    )
    now = [0]
    server = platform_servers("slow", settings=slow, monotonic=lambda: now[0])
    codes = [server.owner("GET", "/v1/me").status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    told = server.owner("GET", "/v1/me")
    assert told.headers["retry-after"] == "10"
    now[0] += 10_000_000
    assert server.owner("GET", "/v1/me").status_code == 200
    nobody = server.client("ouvp_" + "0" * 32 + "_" + "a" * 43)
    assert [nobody("GET", "/v1/me").status_code for _ in range(3)] == [401, 401, 429]


def _code(answer: httpx2.Response) -> str:
    return answer.json()["error"]["code"]
