"""Webhooks: what is told to whom, signed and at least once, and where nothing of ours ever goes."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.posting import Posted, is_open, post
from ouvrage.base.time import DAY, HOUR, SECOND
from ouvrage.server import hooked
from ouvrage.server.hooked import Sender
from tests.platform.working import Working, working_on
from tests.support.meter import until
from tests.support.server import QUICK, Client

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@dataclass
class Receiver:
    """Listens on loopback; answers with the next of ``answers``, then 204; keeps what came."""

    url: str = ""
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def events(self) -> list[str]:
        return [json.loads(body)["event"] for _, body in self.came]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.came.append(({k.lower(): v for k, v in self.headers.items()}, body))
            status = made.answers.pop(0) if made.answers else 204
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{made.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Working]:
    with working_on(tmp_path / "state", settings=replace(QUICK, hook_networks=LOOPBACK)) as made:
        made.node("box-1", cpus=8)
        made.offer("standard")
        look(made)
        yield made


def look(work: Working) -> None:
    sender = Sender(work.server.platform, "test")
    sender.look()
    sender.settle()
    sender.close()


def hook(who: Client, url: str, **more: Any) -> tuple[str, str]:
    made = who.post("/v1/webhooks", {"url": url, **more})
    return made["webhook"]["webhook"], made["secret"]


def ended(work: Working, who: Client, outcome: str = "failed", **spec: Any) -> str:
    job = work.submit(who, retries=0, **spec)["job"]
    work.engine.observe()
    twin = work.twins[0]
    twin.ask()
    attempt = next(start.attempt for start in twin.starts if start.job == job)
    twin.report([twin.began(attempt), twin.ended(attempt, outcome)])
    return job


def test_who_is_told_of_what_and_how_it_is_signed(work: Working, receiver: Receiver) -> None:
    ann, rival = work.tenant("acme"), work.tenant("rival")
    before = ended(work, ann)
    _, secret = hook(ann, f"{receiver.url}/a?x=1")
    hook(rival, f"{receiver.url}/rival")
    look(work)
    assert receiver.came == []  # what happened before anybody listened is not told
    job = ended(work, ann, name="train")
    look(work)
    ((headers, body),) = receiver.came
    told = json.loads(body)
    assert (told["event"], told["data"]["job"]) == ("job.ended", job)
    assert (told["data"]["name"], told["data"]["state"]) == ("train", "failed")
    assert told["id"] == headers["ouvrage-delivery"]
    assert headers["ouvrage-event"] == "job.ended"
    stamp, mac = (each.partition("=")[2] for each in headers["ouvrage-signature"].split(","))
    assert int(stamp) == work.clock() // SECOND
    expected = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert mac == expected
    look(work)
    assert len(receiver.came) == 1
    assert before not in str(receiver.came)


def test_the_owner_hears_of_machines_and_a_tenant_of_its_budget(
    work: Working, receiver: Receiver
) -> None:
    ann = work.tenant("acme")
    hook(ann, receiver.url)
    hook(work.owner, receiver.url, events=["node.fenced"])
    work.owner.post("/v1/nodes/box-1/fence", {"held": True, "why": "a fan"})
    look(work)
    work.owner.post("/v1/nodes/box-1/fence", {"held": False})
    look(work)
    assert receiver.events() == ["node.fenced"]
    assert json.loads(receiver.came[0][1])["data"]["name"] == "box-1"

    ann.post(
        "/v1/budgets", {"project": "main", "amount": "0.30", "period": "total", "action": "stop"}
    )
    job = work.submit(ann)["job"]
    work.engine.observe()
    twin = work.twins[0]
    twin.ask()
    attempt = next(start.attempt for start in twin.starts if start.job == job)
    twin.report([twin.began(attempt)])
    for _ in range(2):
        work.clock.move(31 * 60 * SECOND)
        twin.ask()
        work.reconcile()
        look(work)
    twin.report([twin.ended(attempt, "budget", cause="platform")])
    look(work)
    assert set(receiver.events()[1:]) == {"budget.warned", "job.ended", "budget.stopped"}
    warned = next(json.loads(b) for _, b in receiver.came if b'"budget.warned"' in b)
    assert "%" in warned["data"]["words"]


def test_what_did_not_arrive_is_sent_again_in_order_until_it_does(
    work: Working, receiver: Receiver
) -> None:
    ann = work.tenant("acme")
    id_, _ = hook(ann, receiver.url)
    receiver.answers = [500, 302]
    jobs = [ended(work, ann), ended(work, ann)]
    look(work)
    look(work)  # nothing is due yet
    assert len(receiver.came) == 1
    first, second = reversed(ann.get(f"/v1/webhooks/{id_}/deliveries")["items"])
    assert (first["state"], first["tries"], first["said"]) == ("waiting", 1, "status 500")
    assert (second["state"], second["tries"]) == ("waiting", 0)
    work.clock.move(10 * SECOND)
    look(work)
    assert len(receiver.came) == 2  # no redirect was followed
    work.clock.move(10 * SECOND)
    look(work)
    assert len(receiver.came) == 2
    work.clock.move(10 * SECOND)
    look(work)
    bodies = [json.loads(body) for _, body in receiver.came]
    assert [each["data"]["job"] for each in bodies] == [jobs[0]] * 3 + [jobs[1]]
    assert len({each["id"] for each in bodies[:3]}) == 1
    shown = ann.get(f"/v1/webhooks/{id_}/deliveries")["items"]
    assert [each["state"] for each in shown] == ["arrived", "arrived"]


def test_it_is_given_up_after_a_day_and_forgotten_with_its_webhook(
    work: Working, receiver: Receiver
) -> None:
    ann = work.tenant("acme")
    id_, _ = hook(ann, "http://127.0.0.1:9/x".replace(":9/", ":49152/"))
    ended(work, ann)
    look(work)
    for _ in range(26):
        work.clock.move(HOUR)
        look(work)
    (shown,) = ann.get(f"/v1/webhooks/{id_}/deliveries")["items"]
    assert (shown["state"], shown["due_us"]) == ("given up", None)
    assert "refused" in shown["said"]
    ann("DELETE", f"/v1/webhooks/{id_}").raise_for_status()
    work.clock.move(DAY)
    look(work)
    assert ann("GET", f"/v1/webhooks/{id_}/deliveries").status_code == 404
    secrets = [each for each in work.records() if "ouvh_" in each.fact.payload]
    assert secrets == []


def test_a_receiver_that_hangs_delays_nobody_else(work: Working, receiver: Receiver) -> None:
    """All that one organisation may have hang; it has more of them than places, and another's go out meanwhile."""
    ann, rival = work.tenant("acme"), work.tenant("rival")
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        for _ in range(10):
            hook(ann, f"http://127.0.0.1:{silent.getsockname()[1]}")
        hook(rival, receiver.url)
        ended(work, ann)
        sender = Sender(work.server.platform, "test")
        for round_ in (1, 2, 3):
            ended(work, rival)
            sender.look()
            until(lambda n=round_: len(receiver.came) == n, "what is not the one that hangs")
        held = list(iter(lambda: _taken(silent), None))
        assert len(held) == 4  # the places of one organisation
        for each in held:
            each.close()
        silent.close()
    sender.settle()
    sender.close()


def _taken(silent: socket.socket) -> socket.socket | None:
    """The next connection that stands, without waiting for one."""
    silent.setblocking(False)
    try:
        return silent.accept()[0]
    except BlockingIOError:
        return None


def test_receivers_that_failed_leave_places_to_those_that_did_not(
    work: Working, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooked, "_PLACES", 2)
    monkeypatch.setattr(hooked, "_PLACES_AGAIN", 1)
    ann, rival = work.tenant("acme"), work.tenant("rival")
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        for _ in range(3):
            hook(ann, f"http://127.0.0.1:{silent.getsockname()[1]}")
        hook(rival, receiver.url)
        with monkeypatch.context() as quick:
            quick.setattr(hooked, "post", lambda *_: Posted(status=None, words="no answer"))
            ended(work, ann)
            look(work)
        work.clock.move(10 * SECOND)
        ended(work, rival)
        sender = Sender(work.server.platform, "test")
        sender.look()
        until(lambda: receiver.events() == ["job.ended"], "the first try of another's")
        for each in iter(lambda: _taken(silent), None):
            each.close()
    sender.settle()
    sender.close()


def test_nobody_else_sees_or_changes_a_webhook(work: Working, receiver: Receiver) -> None:
    ann, rival = work.tenant("acme"), work.tenant("rival")
    id_, _ = hook(ann, receiver.url)
    assert rival("GET", f"/v1/webhooks/{id_}/deliveries").status_code == 404
    assert rival("DELETE", f"/v1/webhooks/{id_}").status_code == 404
    assert rival.get("/v1/webhooks")["items"] == []
    assert "secret" not in ann.get("/v1/webhooks")["items"][0]
    for _ in range(9):
        hook(ann, receiver.url)
    assert ann("POST", "/v1/webhooks", {"url": receiver.url}).status_code == 409


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "https://", "https://user:pass@example.org/", "https://example.org/#x", "//example.org/",
        "https://example.org:22/", "https://example.org:25/", "file:///etc/passwd", "https://exa mple.org/",
        "https://example.org/\r\nX: y", "https://example.org\\@127.0.0.1/", "https://[::1", "https://ex\u00e4mple.org/",
        "gopher://x/", "https://example.org:99999/",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(shared_server: Any, url: str) -> None:
    refused = shared_server.owner("POST", "/v1/webhooks", {"url": url})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "url"), refused.text


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]", "224.0.0.1", "255.255.255.255", "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
        "198.18.0.1", "240.0.0.1", "[ff02::1]",
    ],
)  # fmt: skip
def test_nothing_goes_to_the_owner_s_own_networks(receiver: Receiver, host: str) -> None:
    port = receiver.url.rpartition(":")[2]
    for scheme in ("https", "http"):
        came = post(f"{scheme}://{host}:{port}/x", b"{}", {}, ())
        assert came.status is None
        assert "no address of the open Internet" in came.words, (scheme, came)
    assert receiver.came == []


def test_what_the_owner_allows_is_reached_and_nothing_else(receiver: Receiver) -> None:
    assert post(receiver.url, b"{}", {}, LOOPBACK).status == 204
    assert post(receiver.url, b"{}", {}, (ipaddress.ip_network("127.0.0.2/32"),)).status is None
    assert post("http://8.8.8.8:8080/", b"{}", {}, LOOPBACK).words.startswith("it must be https://")


@pytest.mark.parametrize(
    ("address", "open_"),
    [
        ("8.8.8.8", True), ("2606:4700::1111", True), ("64:ff9b::808:808", True), ("::ffff:8.8.8.8", True),
        ("2001:db8::1", False), ("192.0.2.1", False), ("::ffff:0:1", False),
    ],
)  # fmt: skip
def test_which_addresses_are_open(address: str, *, open_: bool) -> None:
    assert is_open(ipaddress.ip_address(address)) is open_


def test_a_name_that_means_two_things_is_judged_by_both(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    """One address of the open Internet and one of ours: whichever would have been taken, nothing is sent."""
    found = [(2, 1, 6, "", (each, 443)) for each in ("8.8.8.8", "127.0.0.1")]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    dialled: list[Any] = []
    monkeypatch.setattr("socket.create_connection", lambda *a, **_: dialled.append(a))
    assert "127.0.0.1" in post("https://rebinding.example/", b"{}", {}, ()).words
    assert dialled == []
