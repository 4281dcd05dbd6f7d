"""What somebody who means ill sends: broken requests, sessions that were planted, others' places and names, ways out of a directory.

Each is answered with a refusal of ours or as anybody else would be; texts in fields are ``test_hostile_text``, rights are
``test_rights`` and ``test_pages_rights``.
"""

from __future__ import annotations

import base64
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator

import httpx2
import pytest

from ouvrage.adapters.podman import REGISTRIES, Podman
from ouvrage.base.errors import OuvrageError
from ouvrage.server.identify import SESSION_COOKIE
from ouvrage.server.pages.frame import VISIT, csrf_of
from tests.platform.browsing import Browser, page_routes
from tests.platform.money_samples import issued
from tests.platform.samples import World
from tests.platform.test_pages_rights import ENTRIES, stem
from tests.platform.work_samples import works
from tests.platform.working import Working
from tests.platform.world import peopled
from tests.support.meter import SOURCES
from tests.support.server import NO_CA, Running, running

JSON = b"Content-Type: application/json\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("hostile") / "state") as server:
        made = peopled(server)
        issued(made)
        yield made


@pytest.fixture
def browser(world: World) -> Iterator[Browser]:
    made = Browser.at(world.server.url)
    yield made
    made.http.close()


def _honest(answer: httpx2.Response) -> None:
    """The headers by which a browser frames nothing of ours, guesses no type and runs no script of others."""
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
    assert "server" not in answer.headers


def test_every_page_and_every_refusal_carries_the_headers(world: World, browser: Browser) -> None:
    admin = browser.signed_in("admin", world.server.password or "")
    for method, path in page_routes():
        entry = ENTRIES[method, stem(path)]
        where = entry.path(world) if entry.path else path
        where += ".json" * path.endswith(".json") if entry.path else ""
        for who in (admin, Browser(browser.http)):
            _honest(who.get(where) if method == "GET" else who.send(where, {}, csrf="x"))
        _honest(browser.http.request("PUT", where))
    for path in ("/nowhere", "/jobs/nobody", "/jobs/nobody.json", "/tenants/nobody", "/v1/nowhere",
                 "/static/..%2fconsole.css", "/jobs?before=%00", "/sign-in?token=x", "/oidc/start"):  # fmt: skip
        answer = admin.get(path)
        assert 400 <= answer.status_code < 500, path
        _honest(answer)


def test_a_planted_session_is_nobodys_and_never_becomes_the_victims(
    world: World, browser: Browser
) -> None:
    login, password = world.logins["tenant-admin"]
    planted = browser.signed_in(*world.logins["tenant-user"]).cookie
    http = browser.http
    http.cookies.set(SESSION_COOKIE, planted or "")
    http.cookies.set(VISIT, "planted")
    form = {"csrf": csrf_of(planted or ""), "login": login, "password": password}
    answer = http.post("/sign-in", data=form)
    assert answer.status_code == 303
    given = answer.cookies[SESSION_COOKIE]
    assert given != planted
    http.cookies.clear()
    mine = Browser(http, given)
    login = login.partition("@")[0]
    assert login in mine.get("/").text
    assert login not in Browser(http, planted).get("/").text
    assert mine.send("/logout", {}).status_code == 303
    assert mine.get("/").status_code == 303  # the session has ended, not only its cookie


def test_a_sign_in_form_of_another_browser_signs_nobody_in(world: World, browser: Browser) -> None:
    login, password = world.logins["tenant-user"]
    form = {"csrf": csrf_of("attacker"), "login": login, "password": password}
    for cookies in ({}, {VISIT: "victim"}):
        browser.http.cookies.clear()
        browser.http.cookies.update(cookies)
        answer = browser.http.post("/sign-in", data=form)
        assert answer.status_code == 403
        assert SESSION_COOKIE not in answer.headers.get("set-cookie", "")


@pytest.mark.parametrize(
    "list_", ["jobs", "leases", "projects", "offers", "usage", "members?org=rival"]
)
def test_a_place_in_anothers_list_leads_to_ones_own(world: World, list_: str) -> None:
    for thing in (works(world).done(), works(world).lease(), world.vision, "zzzz", "-", "\x7f"):
        cursor = base64.urlsafe_b64encode(thing.encode()).decode()
        sep = "&" if "?" in list_ else "?"
        answer = world.clients["rival"]("GET", f"/v1/{list_}{sep}cursor={cursor}&limit=200")
        assert answer.status_code < 500
        for secret in (world.orgs["acme"], world.vision, "@acme"):
            assert secret not in answer.text


def test_a_key_of_anothers_request_opens_nothing(world: World) -> None:
    key = {"Idempotency-Key": "a-key-that-was-seen"}
    asked = {"name": world.new("p")}
    made = world.clients["tenant-admin"]("POST", "/v1/projects", asked, headers=key).json()
    other = world.clients["rival"]("POST", "/v1/projects", asked, headers=key).json()
    assert made["project"] != other["project"]
    assert other["org"] == world.orgs["rival"]


REQUESTS = {
    "a length of 5,000 digits": b"POST /v1/login HTTP/1.1\r\nHost: x\r\n%sContent-Length: %s\r\n\r\n{}" % (JSON, b"9" * 5000),
    "no end of brackets": b"POST /v1/login HTTP/1.1\r\nHost: x\r\n%sContent-Length: 200000\r\n\r\n%s" % (JSON, b"[" * 200_000),
    "two lengths": b"POST /v1/login HTTP/1.1\r\nHost: x\r\n%sContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}" % JSON,
    "an address of no encoding": b"GET /jobs/%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n",
    "cookies of no encoding": b"GET /jobs HTTP/1.1\r\nHost: x\r\nCookie: ouvrage_session=\xff\xfe; ouvrage_language=\xff\r\n\r\n",
    "a token of no encoding": b"GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n",
    "another host": b"GET /jobs HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a host from a proxy": b"GET /jobs HTTP/1.1\r\nHost: x\r\nX-Forwarded-Host: evil.example\r\n\r\n",
    "a form that never begins": b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\n\r\nabcde",
    "a form of no parts": b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data\r\nContent-Length: 5\r\n\r\nabcde",
    "a form of no encoding": b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded; charset=bogus\r\nContent-Length: 5\r\n\r\na=%ff",
    "750 fields": b"POST /sign-in HTTP/1.1\r\nHost: x\r\n%sContent-Length: 3000\r\n\r\n%s" % (FORM, b"a=1&" * 750),
    "a socket": b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "an address with a line of its own": b"GET /sign-in?next=/%0d%0aSet-Cookie:%20evil=1 HTTP/1.1\r\nHost: x\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
def test_a_broken_request_is_answered_and_breaks_nothing(world: World, sent: bytes) -> None:
    host, _, port = world.server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(sent.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        told = b""
        while piece := connection.recv(65_536):
            told += piece
    status = int(told.split()[1])
    assert 300 <= status < 500, told[:300]
    assert b"evil" not in told
    assert world.server.owner.get("/v1/health")["status"]


NAMES = (
    "..",
    "../../x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    ".hidden",
    "a\nb",
    "a\r\nX: y",
    "\x1b[2J",
    "",
    "x" * 300,
    "%2e%2e",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_files_lead_nowhere(world: World, name: str) -> None:
    """As the name of an input or output it is refused; asked for, there is no such file."""
    owner = world.server.owner
    for field in ("inputs", "outputs", "volumes"):
        spec = {"command": ["true"], field: {"data": name}}
        asked = {"project": world.vision, "offer": works(world).huge(), "spec": spec}
        answer = owner("POST", "/v1/jobs", asked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "job/field"), name
    job = works(world).done()
    if name != "..":  # a client makes another address of that
        answer = owner("GET", f"/v1/jobs/{job}/files/{_quoted(name)}")
        assert answer.status_code in (400, 404, 422)
    good = owner("GET", f"/v1/jobs/{job}/files/out")
    assert good.headers["content-disposition"] == "attachment"
    assert good.headers["content-type"] == "application/octet-stream"


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="") or "%20"


@pytest.mark.parametrize("place", ["../out", "data/../../x", "/scratch/../etc", "a\x00b", ".."])
def test_a_path_that_leads_out_is_refused_when_it_is_asked_for(world: World, place: str) -> None:
    """A link in its place, or a path of the system's, is the node's to refuse: ``tests/isolation``."""
    for field in ("inputs", "outputs", "volumes", "checkpoint", "workdir"):
        given = place if field in ("checkpoint", "workdir") else {place: "out"}
        spec = {"command": ["true"], field: given}
        asked = {"project": world.vision, "offer": works(world).huge(), "spec": spec}
        answer = world.server.owner("POST", "/v1/jobs", asked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "job/field"), field


@pytest.mark.parametrize(
    "image",
    [
        "127.0.0.1:5000/x:1", "169.254.169.254/latest/meta-data", "localhost:8680/v1/me", "[::1]:80/x",
        "docker.io@127.0.0.1/x", "http://127.0.0.1/x", "internal.example/x", "docker.io.evil.example/x",
        "dir:/etc", "oci-archive:/etc/passwd", "docker-archive:/x", "-v/:/host", "0x7f000001:80/x",
        "docker.io/../../x", "docker.io/x --privileged",
    ],
)  # fmt: skip
def test_an_image_makes_nobody_ask_elsewhere(world: World, image: str, tmp_path: object) -> None:
    """Refused as a name by the server, or by the node, which takes images from registries that its owner named alone."""
    asked: list[object] = []

    class Deaf(Podman):
        def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
            asked.append(words)
            return subprocess.CompletedProcess(words, 1, b"", b"")

    spec = {"command": ["true"], "image": image}
    body = {"project": world.vision, "offer": works(world).huge(), "spec": spec}
    if world.server.owner("POST", "/v1/jobs", body).status_code == 422:
        return
    with pytest.raises(OuvrageError) as refused:
        Deaf(tmp_path).pull(image, REGISTRIES)  # type: ignore[arg-type]  # a path, from pytest
    assert refused.value.code in ("image/name", "image/registry")
    assert not [words for words in asked if "pull" in words]  # type: ignore[operator]  # each is a tuple of words


def test_what_a_job_prints_commands_no_terminal(working: Working) -> None:
    """An operator who looks at a tenant's log with the command sees the sequences and obeys none."""
    working.node()
    working.offer("standard")
    ann = working.tenant("acme")
    job = working.submit(ann)["job"]
    working.engine.observe()
    twin = working.twins[0]
    twin.ask()
    attempt = twin.starts[0].attempt
    twin.log(attempt, 0, b"\x1b]0;owned\x07\x1b[2Jhello \xc2\x9b31m \xe2\x80\xaeevil\n")
    twin.report([twin.began(attempt), twin.ended(attempt)])
    leader, follower = pty.openpty()
    environment = {
        **os.environ, "PYTHONPATH": str(SOURCES), "OUVRAGE_URL": working.server.url,
        "OUVRAGE_TOKEN_FILE": str(working.server.platform.state_dir / "owner.token"),
    }  # fmt: skip
    command = [sys.executable, "-m", "ouvrage", "job", "logs", job]
    done = subprocess.run(command, env=environment, stdout=follower, check=False, timeout=60)
    os.close(follower)
    said = os.read(leader, 65_536)
    os.close(leader)
    assert done.returncode == 0
    assert b"hello" in said
    for sequence in (b"\x1b", b"\x07", b"\xc2\x9b", b"\xe2\x80\xae"):
        assert sequence not in said


def test_no_login_is_told_from_none_by_its_answer(shared_server: Running) -> None:
    """A login that exists and one that does not are refused in the same words."""
    with httpx2.Client(base_url=shared_server.url, verify=NO_CA) as http:
        told = {
            http.post(
                "/v1/login", json={"login": login, "password": "wrong-password"},
                headers={"Idempotency-Key": "12345678"},
            ).text
            for login in ("admin", "nobody", "admin@nowhere", "' OR 1=1 --")
        }  # fmt: skip
    assert len(told) == 1, told
