"""Signing in with an identity provider that runs here: the whole way of a browser, and every lie on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jwk import RSAKey

from ouvrage.base.errors import OuvrageError
from ouvrage.server.configuration import configured
from ouvrage.server.context import Oidc
from ouvrage.server.identify import SESSION_COOKIE, actor_by_session
from tests.support.oidc import CLIENT, SECRET, LocalProvider, local_provider
from tests.support.server import NO_CA, QUICK, Running, running


@dataclass
class Way:
    """A platform, its provider, and browsers that go from one to the other."""

    server: Running
    provider: LocalProvider

    def __call__(self, start: str = "/oidc/start") -> httpx2.Response:
        """A fresh browser that follows the way to its end."""
        with httpx2.Client(verify=NO_CA, follow_redirects=True, timeout=30) as browser:
            return browser.get(self.server.url + start)

    def login(self, answer: httpx2.Response) -> str | None:
        """As whom an answer's browser is signed in."""
        cookie = answer.cookies.get(SESSION_COOKIE)
        actor = actor_by_session(self.server.platform, cookie, None) if cookie else None
        return actor.login if actor else None


@pytest.fixture(scope="module")
def provider() -> Iterator[LocalProvider]:
    with local_provider() as made:
        yield made


@pytest.fixture
def way(tmp_path: Path, provider: LocalProvider) -> Iterator[Way]:
    provider.lie, provider.signs_with = {}, None
    provider.who = {}
    provider.claims = {"sub": "42", "email": "Ann@example.org", "email_verified": True}
    oidc = Oidc(issuer=provider.url, client_id=CLIENT, client_secret=SECRET, redirect="")
    with running(tmp_path / "state", settings=replace(QUICK, oidc=oidc)) as server:
        provider.redirect = f"{server.url}/oidc/callback"
        object.__setattr__(oidc, "redirect", provider.redirect)  # the port is known only now
        server.owner.post("/v1/organisations", {"name": "acme"})
        yield Way(server, provider)


def _member(
    way: Way, login: str = "ann", org: str = "acme", email: str = "ann@example.org"
) -> None:
    role = "tenant-user" if org != "owner" else "operator"
    body = {"login": login, "role": role, "org": org, "email": email, "password": False}
    assert way.server.owner.post("/v1/members", body)["password"] is None


def test_a_member_signs_in_and_stays_known_when_their_address_changes(way: Way) -> None:
    _member(way)
    answer = way("/oidc/start?next=/jobs")
    assert way.login(answer) == "ann@acme"
    assert 'url=/jobs"' in answer.text
    cookie = next(line for line in answer.headers.get_list("set-cookie") if SESSION_COOKIE in line)
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    way.provider.claims = {"sub": "42", "email": "new@example.org", "email_verified": False}
    assert way.login(way()) == "ann@acme"
    way.provider.claims = {"sub": "43", "email": "ann@example.org", "email_verified": True}
    assert _code(way()) == "login/oidc-nobody"  # another person, who was given her old address


def test_a_provider_that_tells_the_address_only_when_asked_is_asked(way: Way) -> None:
    _member(way)
    way.provider.claims = {"sub": "42"}
    way.provider.who = {"sub": "43", "email": "ann@example.org", "email_verified": True}
    assert _code(way()) == "login/oidc-token"  # another person's
    way.provider.who["sub"] = "42"
    assert way.login(way()) == "ann@acme"


def test_nobody_becomes_a_member_by_signing_in(way: Way) -> None:
    assert _code(way()) == "login/oidc-nobody"
    _member(way)
    way.provider.claims |= {"email_verified": False}
    assert _code(way()) == "login/oidc-nobody"
    way.provider.claims |= {"email_verified": "true"}
    assert _code(way()) == "login/oidc-nobody"


def test_a_member_of_two_organisations_says_which(way: Way) -> None:
    _member(way)
    _member(way, org="owner")
    assert _code(way()) == "login/oidc-which"
    assert way.login(way("/oidc/start?org=acme")) == "ann@acme"
    assert way.login(way("/oidc/start?org=owner")) == "ann"
    assert _code(way("/oidc/start?org=nowhere")) == "login/oidc-nobody"


def test_a_member_without_a_role_is_signed_in_to_nothing(way: Way) -> None:
    _member(way)
    way.server.owner.delete("/v1/members/ann@acme")
    assert way.login(way()) == "ann@acme"  # known, and allowed nothing
    way.server.owner.post("/v1/organisations/acme/close", {})
    assert _code(way()) == "organisation/closed"


LIES: list[tuple[str, dict[str, Any]]] = [
    ("another client's token", {"claims": {"aud": "another"}}),
    ("another issuer", {"claims": {"iss": "https://evil.example"}}),
    ("an old token", {"claims": {"exp": 1, "iat": 0}}),
    ("another sign-in's nonce", {"claims": {"nonce": "x"}}),
    ("no subject", {"claims": {"sub": None}}),
    ("a wrong hash of the access token", {"claims": {"at_hash": "AAAA"}}),
    ("a key that it does not publish", {"kid": "two"}),
]


@pytest.mark.parametrize("lie", [lie for _, lie in LIES], ids=[name for name, _ in LIES])
def test_a_token_that_does_not_hold_signs_nobody_in(way: Way, lie: dict[str, Any]) -> None:
    _member(way)
    way.provider.lie = lie
    answer = way()
    assert answer.status_code == 403
    assert _code(answer) == "login/oidc-token"
    assert SESSION_COOKIE not in answer.headers.get("set-cookie", "")


def test_a_token_signed_by_somebody_else_signs_nobody_in(way: Way) -> None:
    _member(way)
    way.provider.signs_with = RSAKey.generate_key(2048, {"kid": "one"})
    assert _code(way()) == "login/oidc-token"


def test_a_provider_that_calls_itself_otherwise_is_not_asked(way: Way) -> None:
    way.provider.lie = {"issuer": "https://evil.example"}
    assert (way().status_code, _code(way())) == (502, "login/oidc-provider")


def test_a_sign_in_begun_elsewhere_is_not_finished_here(way: Way) -> None:
    _member(way)
    with httpx2.Client(verify=NO_CA, timeout=30) as browser:
        begun = browser.get(f"{way.server.url}/oidc/start")
        back = browser.get(begun.headers["location"]).headers["location"]
    with httpx2.Client(verify=NO_CA, timeout=30) as victim:
        assert _code(victim.get(back)) == "login/oidc-stale"
        victim.get(f"{way.server.url}/oidc/start")
        assert _code(victim.get(back)) == "login/oidc-stale"


@pytest.mark.parametrize(
    "next_", ["https://evil.example", "//evil.example", "/\\evil.example", 'x"']
)
def test_the_way_ends_on_this_server(way: Way, next_: str) -> None:
    _member(way)
    with httpx2.Client(verify=NO_CA, follow_redirects=True, timeout=30) as browser:
        answer = browser.get(f"{way.server.url}/oidc/start", params={"next": next_})
    assert 'url=/"' in answer.text
    assert "evil" not in answer.text


def test_without_a_provider_there_is_no_way(shared_server: Running) -> None:
    answer = shared_server.client(None)("GET", "/oidc/start")
    assert (answer.status_code, _code(answer)) == (404, "login/no-oidc")


def test_the_provider_is_named_in_server_toml(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "server.toml").write_text(
        '[oidc]\nissuer = "https://id.example"\nclient_id = "ouvrage"\n'
        'client_secret_file = "secret"\nredirect = "https://gpu.example/oidc/callback"\n'
        "[sessions]\nidle_hours = 2\n"
    )
    found = configured(tmp_path, secure=True, behind_proxy=False)
    assert found.oidc is not None
    assert found.oidc.client_secret == SECRET
    assert SECRET not in repr(found)
    assert found.session_idle_us == 2 * 3600 * 1_000_000
    for odd in (
        '[oidc]\nissuer = "http://id.example"\n',
        "[session]\n",
        "[sessions]\ndays = 0\n",
        "[",
    ):
        (tmp_path / "server.toml").write_text(odd)
        with pytest.raises(OuvrageError) as refused:
            configured(tmp_path, secure=True, behind_proxy=False)
        assert refused.value.code == "server/file"


def _code(answer: httpx2.Response) -> str:
    """The code that a refusal's page states."""
    assert answer.status_code >= 400, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    found = re.search(r"\b(?:login|organisation)/[a-z-]+", answer.text)
    assert found, answer.text
    return found[0]


def test_the_sign_in_page_shows_the_way(way: Way, shared_server: Running) -> None:
    page = way.server.client(None)("GET", "/sign-in?next=/jobs")
    assert 'href="/oidc/start?next=%2Fjobs"' in page.text
    assert "Sign in with 127.0.0.1" in page.text
    assert "/oidc/" not in shared_server.client(None)("GET", "/sign-in").text
