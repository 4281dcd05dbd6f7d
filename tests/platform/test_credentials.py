"""Passwords, tokens and sessions: what proves who somebody is, for how long, and what ends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import inspect

from ouvrage.base.time import DAY, HOUR, MINUTE, SECOND
from ouvrage.server.context import Actor
from ouvrage.server.credentials import presented
from ouvrage.server.identify import actor_by_session
from ouvrage.server.services import signing_in
from ouvrage.server.services.upkeep import tidy
from tests.support.server import NO_CA, Client, Running, running


@dataclass
class Clock:
    """A clock that a test moves."""

    now: int = 1_796_000_000 * SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> Iterator[Running]:
    with running(tmp_path / "state", clock=clock) as made:
        yield made


def test_a_revoked_token_is_worth_nothing_from_the_next_request_on(server: Running) -> None:
    ann = server.tenant("acme")
    made = ann.post("/v1/tokens", {"name": "t", "scopes": ["all"]})
    other = server.client(made["secret"])
    assert other.get("/v1/me")["token"] == made["token"]
    ann.delete(f"/v1/tokens/{made['token']}")
    assert other("GET", "/v1/me").status_code == 401
    assert [t["state"] for t in ann.get("/v1/tokens")["items"]] == ["revoked", "valid"]


def test_a_token_ends_with_its_days(server: Running, clock: Clock) -> None:
    ann = server.tenant("acme")
    short = server.client(
        ann.post("/v1/tokens", {"name": "t", "scopes": ["all"], "days": 1})["secret"]
    )
    clock.now += DAY - 1
    assert short("GET", "/v1/me").status_code == 200
    clock.now += 1
    assert short("GET", "/v1/me").status_code == 401


def test_what_is_kept_of_secrets_is_no_secret(server: Running) -> None:
    ann = server.tenant("acme")
    made = ann.post("/v1/tokens", {"name": "t", "scopes": ["all"]})
    assert server.password
    tokens = [made["secret"], ann.token or "", server.owner.token or ""]
    secrets = [server.password, *(shown.secret for shown in map(presented, tokens) if shown)]
    assert len(secrets) == 4
    with server.platform.reading() as connection:
        names = inspect(connection).get_table_names()
        held = repr([connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in names])
    for secret in secrets:
        assert secret not in held
    assert held.count("$argon2id$") >= 4


def test_a_token_that_is_nearly_right_is_wrong(server: Running) -> None:
    good = server.owner.token or ""
    for text in (good.upper(), good[:-1], f"{good[:-4]}AAAA", f"{good}x"):
        assert server.client(text)("GET", "/v1/me").status_code == 401


def test_nobody_makes_a_token_that_can_do_more_than_theirs(server: Running) -> None:
    ann = server.tenant("acme")
    people = server.client(ann.post("/v1/tokens", {"name": "t", "scopes": ["people"]})["secret"])
    assert people("POST", "/v1/tokens", {"name": "u", "scopes": ["people"]}).status_code == 201
    for scopes in (["all"], ["people", "work"]):
        assert people("POST", "/v1/tokens", {"name": "u", "scopes": scopes}).status_code == 403
    work = server.client(ann.post("/v1/tokens", {"name": "t", "scopes": ["work"]})["secret"])
    assert work("POST", "/v1/tokens", {"name": "u", "scopes": ["work"]}).status_code == 403


def test_a_token_for_one_project_sees_no_other(server: Running) -> None:
    ann = server.tenant("acme")
    vision = ann.post("/v1/projects", {"name": "vision"})["project"]
    main = next(p["project"] for p in ann.get("/v1/projects")["items"] if p["name"] == "main")
    made = ann.post("/v1/tokens", {"name": "t", "scopes": ["all"], "project": "vision"})
    narrow = server.client(made["secret"])
    assert [p["name"] for p in narrow.get("/v1/projects")["items"]] == ["vision"]
    assert narrow("GET", f"/v1/projects/{vision}").status_code == 200
    assert narrow("GET", f"/v1/projects/{main}").status_code == 404
    assert narrow("POST", "/v1/projects", {"name": "more"}).status_code == 403
    child = narrow.post("/v1/tokens", {"name": "u", "scopes": ["all"]})
    assert child["project"] == vision


def test_a_program_has_a_role_of_its_own_and_outlives_who_made_it(server: Running) -> None:
    ann = server.tenant("acme")
    bob = ann.post("/v1/members", {"login": "bob", "role": "tenant-admin"})
    body = {"name": "ci", "scopes": ["work", "read"], "machine": "ci", "role": "tenant-user"}
    made = server.signed_in("bob@acme", bob["password"]).post("/v1/tokens", body)
    program = server.client(made["secret"])
    assert program.get("/v1/me")["login"] == "ci@acme.machine"
    ann.delete("/v1/members/bob@acme")
    assert program.get("/v1/me")["roles"][0]["role"] == "tenant-user"
    assert ann("POST", "/v1/tokens", body | {"role": "tenant-admin"}).status_code == 409
    assert ann("POST", "/v1/tokens", body | {"role": "owner", "machine": "up"}).status_code == 422
    assert ann("POST", "/v1/tokens", body | {"org": "owner"}).status_code == 404
    user = server.signed_in("admin", server.password or "")
    assert (
        user("POST", "/v1/login", {"login": "ci@acme.machine", "password": "x"}).status_code == 401
    )


def test_whoever_has_no_role_any_more_is_signed_out_everywhere(server: Running) -> None:
    ann = server.tenant("acme")
    made = ann.post("/v1/members", {"login": "bob", "role": "tenant-user"})
    bob = server.signed_in("bob@acme", made["password"])
    cookie = signing_in.new_session(server.platform, _actor(made["member"]["user"], "bob@acme"))
    ann.delete("/v1/members/bob@acme")
    assert bob("GET", "/v1/me").status_code == 401
    assert actor_by_session(server.platform, cookie, None) is None
    refused = server.owner("DELETE", "/v1/members/admin")
    assert (refused.status_code, _code(refused)) == (409, "member/last-owner")


def test_a_new_password_ends_what_the_old_one_began(server: Running) -> None:
    ann = server.tenant("acme")
    made = ann.post("/v1/members", {"login": "bob", "role": "tenant-user"})
    bob = server.signed_in("bob@acme", made["password"])
    weak = bob("POST", "/v1/me/password", {"old": made["password"], "new": "short"})
    assert (weak.status_code, _code(weak)) == (422, "password/weak")
    bob.post("/v1/me/password", {"old": made["password"], "new": "a much better one"})
    assert _login(server, "bob@acme", made["password"]).status_code == 401
    reset = ann.post("/v1/members/bob@acme/password")
    assert bob("GET", "/v1/me").status_code == 401
    assert _login(server, "bob@acme", "a much better one").status_code == 401
    assert _login(server, "bob@acme", reset["password"]).status_code == 201


def test_closing_a_tenant_ends_every_credential_and_keeps_the_record(server: Running) -> None:
    made = server.owner.post("/v1/organisations", {"name": "acme", "admin": "ann"})
    ann = server.signed_in("ann@acme", made["password"])
    body = {"name": "ci", "scopes": ["all"], "machine": "ci", "role": "tenant-user"}
    program = server.client(ann.post("/v1/tokens", body)["secret"])
    server.owner.post("/v1/organisations/acme/close", {"why": "abuse"})
    assert ann("GET", "/v1/me").status_code == program("GET", "/v1/me").status_code == 401
    assert _login(server, "ann@acme", made["password"]).status_code == 403
    assert server.owner("POST", "/v1/projects", {"name": "x", "org": "acme"}).status_code == 409
    trail = server.owner.get("/v1/audit", params={"org": "acme"})["items"]
    assert ("organisation.close", "abuse") in {(line["action"], line["detail"]) for line in trail}
    server.owner.post("/v1/organisations/acme/reopen")
    assert _login(server, "ann@acme", made["password"]).status_code == 201
    assert program("GET", "/v1/me").status_code == 401


def test_a_guesser_waits_longer_and_longer_and_the_right_password_waits_too(
    tmp_path: Path, clock: Clock
) -> None:
    with running(tmp_path / "state", clock=clock) as server:
        codes = [_login(server, "admin", "wrong").status_code for _ in range(6)]
        assert codes == [401] * 5 + [429]
        waits = list[int]()
        for _ in range(4):
            told = _login(server, "admin", server.password or "")
            assert (told.status_code, _code(told)) == (429, "login/wait")
            waits.append(int(told.headers["retry-after"]))
            clock.now += waits[-1] * SECOND
            assert _login(server, "admin", "wrong").status_code == 401
        assert waits == [1, 2, 4, 8]
        password = server.password or ""
    with running(tmp_path / "state", clock=clock) as again:
        assert _login(again, "admin", password).status_code == 429  # a restart forgives nothing
        clock.now += 16 * MINUTE
        assert _login(again, "admin", password).status_code == 201
        assert _login(again, "admin", "wrong").status_code == 401  # and counts from the beginning
        trail = again.owner.get("/v1/audit")["items"]
        assert "login.throttled" in {line["action"] for line in trail}


def test_nobody_learns_which_logins_there_are(server: Running) -> None:
    known, unknown = (_login(server, name, "wrong") for name in ("admin", "nobody"))
    assert known.status_code == unknown.status_code == 401
    assert known.json() == unknown.json()


def test_another_address_is_not_locked_out(server: Running) -> None:
    for _ in range(6):
        _login(server, "admin", "wrong")
    with httpx2.Client(
        base_url=server.url, transport=httpx2.HTTPTransport(local_address="127.0.0.2", verify=NO_CA)
    ) as elsewhere:
        body = {"login": "admin", "password": server.password}
        assert elsewhere.post("/v1/login", json=body).status_code == 201
        assert _login(server, "admin", server.password or "").status_code == 429


def test_a_session_ends_when_idle_when_old_and_when_signed_out(
    server: Running, clock: Clock
) -> None:
    platform = server.platform
    admin = server.owner.get("/v1/me")["user"]
    first = signing_in.new_session(platform, _actor(admin, "admin"))
    second = signing_in.new_session(platform, _actor(admin, "admin"))
    assert first != second
    found = actor_by_session(platform, first, "192.0.2.1")
    assert found is not None
    assert (found.login, found.scopes, found.address) == ("admin", None, "192.0.2.1")
    signing_in.sign_out(platform, found)
    assert actor_by_session(platform, first, None) is None
    for _ in range(13):  # in use every 11 hours it lasts until its seven days are over
        clock.now += 11 * HOUR
        assert actor_by_session(platform, second, None) is not None
    third = signing_in.new_session(platform, _actor(admin, "admin"))
    clock.now += 12 * HOUR
    assert actor_by_session(platform, third, None) is None
    clock.now += 3 * DAY
    assert actor_by_session(platform, second, None) is None


def test_what_is_over_is_forgotten_and_nothing_else(server: Running, clock: Clock) -> None:
    admin = server.owner.get("/v1/me")["user"]
    _login(server, "admin", "wrong")
    server.owner.post("/v1/projects", {"name": "vision"})
    signing_in.new_session(server.platform, _actor(admin, "admin"))
    counts = list[tuple[int, int, int]]()
    for later in (0, DAY + 1, 2 * DAY, 5 * DAY):
        clock.now += later
        tidy(server.platform)
        with server.platform.reading() as connection:
            counts.append(
                tuple(
                    connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
                    for table in ("login_throttles", "idempotent_answers", "sessions")
                )
            )
    assert counts == [(3, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)]


def test_no_kind_of_secret_opens_another_kind_of_door(server: Running) -> None:
    admin = server.owner.get("/v1/me")["user"]
    cookie = signing_in.new_session(server.platform, _actor(admin, "admin"))
    assert server.client(cookie)("GET", "/v1/me").status_code == 401
    headers = {"Cookie": f"ouvrage_session={cookie}"}
    assert server.client(None)("GET", "/v1/me", headers=headers).status_code == 401
    assert actor_by_session(server.platform, server.owner.token or "", None) is None


def test_the_trail_says_who_was_refused_what(server: Running) -> None:
    ann = server.tenant("acme")
    assert ann("POST", "/v1/organisations", {"name": "mine"}).status_code == 403
    line = ann.get("/v1/audit")["items"][0]
    told = (line["login"], line["action"], line["outcome"], line["address"])
    assert told == ("ann@acme", "organisation.create", "right/missing", "127.0.0.1")
    assert json.dumps(line).count("ouvp_") == 0


def _actor(user: str, login: str) -> Actor:
    return Actor(kind="user", id=user, login=login)


def _login(server: Running, login: str, password: str) -> httpx2.Response:
    nobody: Client = server.client(None)
    return nobody("POST", "/v1/login", {"login": login, "password": password})


def _code(answer: httpx2.Response) -> str:
    return answer.json()["error"]["code"]
