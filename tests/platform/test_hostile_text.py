"""Texts that were made to break something, in every field of every request, form and address: on SQLite and on PostgreSQL.

Whatever comes is answered, at once and with a refusal or a success of the declared form; nothing of it is executed, by a database, a
template, a browser or a terminal, and the store holds afterwards.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from ouvrage.server.app import routes_app
from ouvrage.store.audit import audit
from tests.platform.browsing import Browser, page_routes
from tests.platform.money_samples import MONEY
from tests.platform.samples import SAMPLES, World
from tests.platform.test_pages_rights import ALONE, ENTRIES, stem
from tests.platform.work_samples import WORK, works
from tests.platform.world import peopled
from tests.support import postgres
from tests.support.server import QUICK, running

ALL = {**SAMPLES, **WORK, **MONEY}
MARK = "<script>alert(1)</script>"
HOSTILE = (
    "'; DROP TABLE jobs; --", "\" OR \"\"=\"", "%' OR 1=1 --", "{{7*7}}${7*7}<%= 7*7 %>", MARK,
    f"\"'><img src=x onerror=alert(1)>{MARK}", "a\x00b", "\ud800", "../../../../etc/passwd",
    "a\r\nSet-Cookie: evil=1", "\x1b[2J\x1b]0;owned\x07", "\u202eevil", "x" * 20_000, "9" * 5_000,
    "1e999999999", "-1", "", "NaN", "\u0661\u0662", "$(reboot)`reboot`", "%s%n%d", "\ufdd0\U0010ffff",
)  # fmt: skip
PATHS = routes_app().openapi()["paths"]
SLOW_S = 3.0
_TURN = count()


def texts(step: int) -> Sequence[str]:
    """Every ``step``-th of them, beginning with another each time, so that together the fields meet all."""
    return HOSTILE[next(_TURN) % step :: step]


STEPS = pytest.mark.parametrize(
    "step", [16, pytest.param(1, marks=pytest.mark.soak)], ids=["some", "all"]
)
KEPT = {
    ("POST", "/v1/logout"),
    ("POST", "/v1/me/password"),
    ("POST", "/v1/organisations/{org}/close"),
}
"""They would end the session that all others are asked with, or the tenant that all others are about."""
STREAMS = {key for key in ALL if key[0] == "PUT"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    store = None
    if request.param == "postgresql":
        if not postgres.available():
            pytest.skip("PostgreSQL is not installed")
        store = request.getfixturevalue("cluster").like(request.getfixturevalue("migrated"))
    directory = tmp_path_factory.mktemp("hostile") / "state"
    with running(directory, store=store, settings=replace(QUICK, public_page=True)) as server:
        made = peopled(server)
        yield made
        found = audit(server.platform.store, directory)
        assert found.first is None, found.first


@pytest.fixture
def admin(world: World) -> Iterator[Browser]:
    browser = Browser.at(world.server.url)
    yield browser.signed_in("admin", world.server.password or "")
    browser.http.close()


def _fields(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts in a body."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _fields(each, (*at, name))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _fields(each, (*at, number))
    elif isinstance(value, str):
        yield at


def _with(value: Any, at: tuple[Any, ...], text: str) -> Any:
    made = copy.deepcopy(value)
    inner = made
    for part in at[:-1]:
        inner = inner[part]
    inner[at[-1]] = text
    return made


def _answered(answer: httpx2.Response, began: float, what: object) -> None:
    """Answered in time, by a success or one of our refusals."""
    assert answer.status_code < 500, (what, answer.text[:400])
    assert time.monotonic() - began < SLOW_S, what
    assert "evil" not in str(answer.headers.get("set-cookie"))
    assert MARK not in answer.text or "json" in answer.headers["content-type"], what
    if answer.status_code >= 400:
        assert answer.json()["error"]["code"], what


@pytest.mark.slow
@STEPS
@pytest.mark.parametrize("address", sorted(ALL.keys() - KEPT - STREAMS), ids=" ".join)
def test_every_text_of_every_request(world: World, address: tuple[str, str], step: int) -> None:
    sample = ALL[address]
    owner = world.server.owner
    path = sample.path(world) if sample.path else address[1]
    body = sample.body(world)
    for at in _fields(body):
        for text in texts(step):
            asked = json.dumps(_with(body, at, text)).encode()
            headers = {"Content-Type": "application/json"}
            began = time.monotonic()
            answer = owner(address[0], path, content=asked, headers=headers)
            _answered(answer, began, (at, text[:40]))
    names = [
        parameter["name"]
        for parameter in PATHS[address[1]][address[0].lower()]
        .get("parameters", ())
        if parameter["in"] == "query"
    ]  # fmt: skip
    for name in names:
        for text in texts(step):
            sent = quote(text, safe="", errors="surrogatepass")
            began = time.monotonic()
            sep = "&" if "?" in path else "?"
            answer = owner(address[0], f"{path}{sep}{name}={sent}", json=body)
            _answered(answer, began, (name, text[:40]))
    if "{" in address[1]:
        head, _, rest = address[1].partition("{")
        tail = rest.partition("}")[2].replace("{name}", "x").replace("{number}", "x")
        for text in texts(step):
            sent = quote(text, safe="", errors="surrogatepass")
            began = time.monotonic()
            _answered(owner(address[0], f"{head}{sent}{tail}", json=body), began, text[:40])


@pytest.mark.slow
@STEPS
def test_every_field_of_every_form_and_page(world: World, admin: Browser, step: int) -> None:
    browser = admin
    for route in sorted(ENTRIES.keys() - ALONE):
        entry = ENTRIES[route]
        path = entry.path(world) if entry.path else route[1]
        form = entry.form(world)
        for text in texts(step):
            raw = text.encode("utf-8", "surrogatepass")
            began = time.monotonic()
            if route[0] == "POST":
                for name in [*form, "key", "why", "next"]:
                    answer = browser.send(path, {**form, name: raw})
                    _shown(answer, began, (route, name, text[:40]))
                    began = time.monotonic()
                continue
            sent = quote(text, safe="", errors="surrogatepass")
            for name in (
                "project",
                "org",
                "before",
                "job",
                "units",
                "month",
                "site&by",
                "all",
                "offset",
            ):
                began = time.monotonic()
                asked = f"{path}?{name.replace('&', f'={sent[:9000]}&')}={sent}"
                if name == "units":
                    asked += f"&job={works(world).done()}"
                _shown(browser.get(asked), began, (route, name, text[:40]))
            if "{" in route[1] and text:
                began = time.monotonic()
                place = route[1].partition("{")[0] + sent
                _shown(browser.get(place), began, (route, text[:40]))


def _shown(answer: httpx2.Response, began: float, what: object) -> None:
    assert answer.status_code < 500, (what, answer.text[:400])
    assert time.monotonic() - began < SLOW_S, what
    assert "evil" not in str(answer.headers.get("set-cookie"))
    location = answer.headers.get("location", "/")
    assert location.startswith("/"), (what, location)
    assert not location.startswith("//"), (what, location)
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert "<script>alert" not in answer.text, what
        assert "<img src=x" not in answer.text, what


def test_what_was_kept_of_it_is_shown_as_text(world: World, admin: Browser) -> None:
    """After all that: names, reasons and logs that hold markup are words on every page."""
    owner = world.server.owner
    owner.post("/v1/tokens", {"name": MARK, "scopes": ["read"]})
    owner.post("/v1/payments", {"org": "acme", "amount": "1", "reference": MARK})
    browser = admin
    for method, path in page_routes():
        if (
            method == "GET"
            and "{" not in path
            and stem(path) not in ("/oidc/start", "/oidc/callback")
        ):
            _shown(browser.get(path), time.monotonic(), path)
    for path in ("/tenants/acme", "/tenants/owner", "/money?org=acme"):
        _shown(browser.get(path), time.monotonic(), path)
