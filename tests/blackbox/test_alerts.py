"""A machine alone that tells its owner: a signed webhook, a mail and a page of figures, from an empty home to the all-clear."""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from ouvrage.adapters.clock import monotonic_us
from ouvrage.agent.probing.exposition import NAMES
from tests.blackbox.home import Home
from tests.support.meter import until
from tests.support.stopped_machine import Tree

BUS = "0000:41:00"
SECRET = "what only the two of us know"
MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"


@dataclass
class Hook:
    """Listens on loopback; answers ``status``; keeps what came."""

    url: str = ""
    status: int = 204
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.came]


class Mailbox:
    """What a mail server was given."""

    def __init__(self) -> None:
        self.came: list[str] = []

    async def handle_DATA(
        self, server: object, session: object, envelope: Any
    ) -> str:  # the server's name
        self.came.append(envelope.content.decode())
        return "250 OK"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.came.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(made.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}/whom"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def mails() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=_free())
    server.start()
    yield box, server.port
    server.stop()


def _free() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def _set_up(home: Home, hook: Hook, port: int) -> int:
    """The owner's settings; the port of the page of figures."""
    agent = home.path / "agent"
    agent.mkdir(parents=True)
    (agent / "hook.secret").write_text(SECRET + "\n")
    (agent / "hook.secret").chmod(0o600)
    metrics = _free()
    (agent / "agent.toml").write_text(
        f'[watch]\nmetrics = "127.0.0.1:{metrics}"\n[alerts]\nleast = "CRITICAL"\n'
        f'webhook = "{hook.url}"\nsecret = "file:{agent}/hook.secret"\n'
        f'smtp = "127.0.0.1:{port}"\nmail_from = "n1@example.org"\nmail_to = "ops@example.org"\n'
    )
    return metrics


def _started(home: Home, tree: Tree) -> subprocess.Popen[str]:
    return home.start(
        "agent", "run", "--node", "n1", "--root", str(tree.root), stdout=subprocess.DEVNULL
    )


def _verdict(home: Home, device: str | None) -> str | None:
    said = home.inside("node", "watch", "--json")
    checks = said.json["checks"] if said.code == 0 else ()
    return next(
        (c["verdict"] for c in checks if (c["check"], c["device"]) == ("xid", device)), None
    )


def test_a_fault_is_told_once_by_webhook_and_mail_and_so_is_its_end(
    ouvrage: Home, tmp_path: Path, hook: Hook, mails: tuple[Mailbox, int]
) -> None:
    """Killed before its receiver took it, the message comes again under the same id and nothing else comes."""
    tree, (box, port) = Tree(tmp_path / "root"), mails
    metrics = _set_up(ouvrage, hook, port)
    tried = ouvrage.inside("agent", "alert", "--test")
    assert (tried.code, tried.first) == (0, "Told by webhook and mail; nothing waits.")
    assert [m["changes"] for m in hook.messages] == [[]]
    hook.status = 503
    agent = _started(ouvrage, tree)
    try:
        until(lambda: _verdict(ouvrage, None) == "OK", "the first look")
        tree.log(f"NVRM: Xid (PCI:{BUS}): 79, pid=1, GPU has fallen off the bus.", monotonic_us())
        until(lambda: _left(ouvrage) == ["webhook"], "the mail, and the first try of the other")
        agent.kill()
        agent.wait()
        assert len(hook.came) == 2
        said = ouvrage.inside("agent", "alert", "--json").json
        assert said["told"] == {f"xid {BUS}": "CRITICAL"}
        _make_due(ouvrage)
        hook.status = 204
        agent = _started(ouvrage, tree)
        until(lambda: len(hook.came) == 3, "the second try")
        _is_the_fault(hook, box)
        _is_known_as_ours(ouvrage, tmp_path, box.came[1])
        assert _names(metrics) <= set(NAMES)
        assert ouvrage.inside("node", "verify", "--device", BUS).code == 0
        until(lambda: len(hook.came) == 4, "the end of it")
        (over,) = hook.messages[-1]["changes"]
        assert (over["verdict"], over["was"], hook.messages[-1]["verdict"]) == (
            "OK",
            "CRITICAL",
            "OK",
        )
        until(lambda: len(box.came) == 3, "the mail of it")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(30) == 0
    finally:
        agent.kill()
        agent.wait()
    assert not ouvrage.inside("agent", "alert", "--json").json["waiting"]


def _left(home: Home) -> list[str]:
    """Whom the message that waits has not reached."""
    waiting = home.inside("agent", "alert", "--json").json["waiting"]
    return waiting[0]["left"] if waiting else []


def _make_due(home: Home) -> None:
    """The pause before the next try is over."""
    file = home.path / "agent" / "alerts.json"
    desk = json.loads(file.read_text())
    for each in desk["waiting"]:
        each["due_us"] = 0
    file.write_text(json.dumps(desk))


def _is_the_fault(hook: Hook, box: Mailbox) -> None:
    (headers, body), (_, again) = hook.came[1:]
    assert body == again
    stamp, mac = (each.partition("=")[2] for each in headers["ouvrage-signature"].split(","))
    signed = hmac.new(SECRET.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert mac == signed
    message = json.loads(body)
    assert headers["ouvrage-delivery"] == message["id"]
    (change,) = message["changes"]
    assert (change["device"], change["verdict"], change["runbook"]) == (BUS, "CRITICAL", "reboot")
    assert len(box.came) == 2, "the mail of the fault came once, whatever became of the webhook"
    assert f"Subject: n1: xid {BUS} is CRITICAL" in box.came[1]
    assert "how: docs/runbooks/reboot.md" in box.came[1]


def _is_known_as_ours(home: Home, tmp_path: Path, mail: str) -> None:
    for text, code, first in (
        (mail, 0, "Ours: message "),
        (mail.replace("CRIT", "crit"), 1, "Not ours"),
    ):
        (tmp_path / "came.eml").write_text(text)
        said = home.inside("agent", "alert", "--mail", str(tmp_path / "came.eml"))
        assert (said.code, said.first.startswith(first)) == (code, True)


def _names(port: int) -> set[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        page = answer.read().decode()
    found = {
        line.partition("{")[0].partition(" ")[0] for line in page.splitlines() if line[:1] != "#"
    }
    assert f'ouvrage_node_check_verdict{{node="n1",check="xid",device="{BUS}"}} 2' in page
    _are_known_to_the_files(found)
    return found


def _are_known_to_the_files(found: set[str]) -> None:
    """What the files for Prometheus and Grafana ask for is on a real page, or comes on one with faults."""
    import re

    rules = (MONITORING / "ouvrage-rules.yml").read_text()
    board = (MONITORING / "grafana-dashboard.json").read_text()
    wanted = set(re.findall(r"ouvrage_[a-z_]+", rules + board)) - {"ouvrage_up"}
    assert wanted
    assert wanted <= set(NAMES)
    assert set(NAMES) - found <= {"ouvrage_node_check_evidence"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("least = 'OK'", "alerts.least is not understood"),
        ("webhook = 'https://example.org/x'", "alerts.secret is not understood"),
        ("webhook = 'https://u:p@example.org/x'\nsecret = 'env:X'", "alerts.webhook is not understood"),
        ("webhook = 'https://example.org/x'\nsecret = 'hunter2'", "never the secret itself"),
        ("smtp = 'mail.example.org:587'", "a mail needs smtp, mail_to and mail_from"),
        ("smtp = 'h:25'\nmail_to = 'a@b.c'\nmail_from = 'a@b.c'", "alerts.secret is not understood"),
        ("smtp_clear = 'yes'", "alerts.smtp_clear is not understood"),
        ("pager = '1'", "known are least"),
    ],
)  # fmt: skip
def test_settings_that_are_not_understood_start_nothing(
    ouvrage: Home, tmp_path: Path, text: str, words: str
) -> None:
    (ouvrage.path / "agent").mkdir(parents=True)
    (ouvrage.path / "agent" / "agent.toml").write_text(f"[alerts]\n{text}\n")
    for asked in (("agent", "alert"), ("agent", "run", "--root", str(tmp_path))):
        said = ouvrage.inside(*asked)
        assert (said.code, words in said.err) == (2, True), said.err
        assert "hunter2" not in said.err


def test_nobody_is_told_unless_that_was_asked_for(ouvrage: Home) -> None:
    said = ouvrage.inside("agent", "alert")
    assert (said.code, "agent/no-alerts" in said.err) == (2, True)
