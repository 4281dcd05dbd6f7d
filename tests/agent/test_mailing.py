"""Mails of a machine: what their signature holds through mail servers, and that none leaves in the clear unasked."""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Iterator
from email import message_from_bytes, policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from ouvrage.agent.probing.mailing import NO_TLS, UNTOLD, Post, mail_of, send, signed_at

SECRET, AT_S = "what only the two of us know", 1_796_087_000
SAID = (
    "n1: xid 0000:41:00 is CRITICAL",
    "xid: CRITICAL (was OK), it hangs – ça ne va plus\n    do: reboot\n",
)
ABOUT, ENDS = ("node.health", "0a61", "n1"), ("n1@example.org", "ops@example.org")


def mail(text: str = SAID[1], subject: str = SAID[0]) -> bytes:
    made = mail_of(ABOUT, (subject, text), ENDS, SECRET, AT_S)
    return made.as_bytes().replace(b"\n", b"\r\n")


def test_a_mail_is_ours_whatever_servers_do_to_its_line_ends() -> None:
    came = mail()
    assert signed_at(came, SECRET) == ("0a61", AT_S)
    for other in (
        came.replace(b"\r\n", b"\n"),
        b"Received: from here by there\r\n" + came + b"\r\n\r\n",
        mail(SAID[1] * 80),
        mail(subject="n1: " + "a long subject that is folded on its way " * 5),
        mail("no more than letters  \nand two lines"),
    ):
        assert signed_at(other, SECRET) == ("0a61", AT_S)


def test_the_signature_is_what_the_guide_says() -> None:
    headers = message_from_bytes(mail(), policy=policy.default)
    part = "0a61\nn1: xid 0000:41:00 is CRITICAL\n\nxid: CRITICAL (was OK), it hangs – ça ne va plus\n    do: reboot"
    mac = hmac.new(SECRET.encode(), f"{AT_S}.{part}".encode(), hashlib.sha256).hexdigest()
    assert headers["Ouvrage-Signature"] == f"t={AT_S},v1={mac}"
    assert (headers["Ouvrage-Event"], headers["Ouvrage-Delivery"]) == ("node.health", "0a61")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"CRITICAL (", b"OK (       "),
        (b"Subject: n1", b"Subject: n2"),
        (b"Delivery: 0a61", b"Delivery: 0a62"),
        (b"t=1796087000", b"t=1796087001"),
        (b"Ouvrage-Signature", b"Ouvrage-Elsewise"),
        (b"charset=\"utf-8\"", b"charset=\"none\""),
    ],
)  # fmt: skip
def test_a_mail_that_was_changed_is_not_ours(old: bytes, new: bytes) -> None:
    came = mail("xid: CRITICAL (was OK)\n", SAID[0])
    assert old in came
    assert signed_at(came.replace(old, new), SECRET) is None
    assert signed_at(came, "another") is None
    assert signed_at(b"", SECRET) is None


class Box:
    def __init__(self) -> None:
        self.came: list[bytes] = []

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        self.came.append(envelope.content)
        return "250 OK"


@pytest.fixture
def box() -> Iterator[tuple[Box, str]]:
    """A mail server without STARTTLS."""
    made = Box()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    server = Controller(made, hostname="127.0.0.1", port=port)
    server.start()
    yield made, f"127.0.0.1:{port}"
    server.stop()


def test_without_starttls_nothing_goes_to_another_machine_unless_its_owner_says_so(
    box: tuple[Box, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, at = box
    letter = mail_of(ABOUT, SAID, ENDS, SECRET, AT_S)
    assert send(Post(server=at, user="n1", password=lambda: "hunter2"), letter) == UNTOLD
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("ouvrage.agent.probing.mailing._is_own", lambda _: False)
        assert send(Post(server=at), letter) == NO_TLS
        assert not made.came
        assert send(Post(server=at, clear=True), letter) is None
    assert send(Post(server=at), letter) is None
    assert [signed_at(each, SECRET) for each in made.came] == [("0a61", AT_S)] * 2
