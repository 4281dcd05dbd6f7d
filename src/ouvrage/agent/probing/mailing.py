"""An alert as a mail: how it is signed, how it is sent, and how a mail that came is known to be ours.

Decides that nothing travels in the clear unless its owner says so: by STARTTLS where the server has it, without it only
to this machine itself or where ``smtp_clear`` allows it, a password never. Anybody can write a mail that looks like a
machine's; so each bears the headers of the webhook, with an HMAC over what a person reads, its subject and its text. Servers on the way may
change how lines end and what stands after their last letter, so that is no part of it.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import formatdate

from ouvrage.adapters.posting import signature
from ouvrage.base.errors import OuvrageError

EVENT, DELIVERY, SIGNATURE = "Ouvrage-Event", "Ouvrage-Delivery", "Ouvrage-Signature"
_TIMEOUT_S = 10.0
_SIGNED = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")
_WHOLE = policy.default.clone(max_line_length=200)
"""A signature stays on one line, as the webhook's, and is not written in another form."""
NO_TLS = (
    "the mail server offers no STARTTLS, and mails go in the clear to this machine alone;"
    " smtp_clear = true sends them all the same"
)
UNTOLD = "the mail server offers no STARTTLS, and a password goes over nothing else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """How a mail leaves: the server ``host:port``, whether in the clear, and as whom. ``password`` tells it when it is needed."""

    server: str
    clear: bool = False
    user: str | None = None
    password: Callable[[], str] | None = None


def mail_of(
    about: tuple[str, str, str], said: tuple[str, str], ends: tuple[str, str], secret: str, at_s: int
) -> EmailMessage:  # fmt: skip
    """A signed mail. ``about``: event, id and node; ``said``: subject and text; ``ends``: from and to; ``at_s``: UTC seconds."""
    event, id, node = about
    mail = EmailMessage(_WHOLE)
    mail["Subject"], text = said
    mail["From"], mail["To"] = ends
    mail["Date"] = formatdate(at_s)
    mail["Message-ID"] = f"<{id}@{node}.ouvrage.invalid>"
    mail[EVENT], mail[DELIVERY] = event, id
    mail[SIGNATURE] = signature(secret, signed_part(id, *said), at_s)
    mail.set_content(text)
    return mail


def signed_part(id: str, subject: str, text: str) -> bytes:
    """What the signature is made over: the id, the subject, an empty line, and the text without what mail servers change."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join([id, subject.strip(), "", *lines]).rstrip("\n").encode()


def signed_at(data: bytes, secret: str) -> tuple[str, int] | None:
    """The id and second (UTC) of a mail as it came, where its signature is ours; None where it is not."""
    mail = message_from_bytes(data, policy=policy.default)
    found = _SIGNED.fullmatch(str(mail.get(SIGNATURE, "")).strip())
    body = mail.get_body(("plain",))
    if found is None or body is None:
        return None
    at_s, id = int(found[1]), str(mail.get(DELIVERY, ""))
    try:
        part = signed_part(id, str(mail.get("Subject", "")), str(body.get_content()))
    except (LookupError, UnicodeError):
        return None  # written in a way that nothing of ours is
    return (id, at_s) if hmac.compare_digest(signature(secret, part, at_s), found[0]) else None


def send(post: Post, mail: EmailMessage) -> str | None:
    """Send it once; why it did not arrive, None where the server took it."""
    host, _, port = post.server.rpartition(":")
    try:
        with smtplib.SMTP(host, int(port), timeout=_TIMEOUT_S) as line:
            line.ehlo()
            secure = line.has_extn("starttls")
            if secure:
                line.starttls(context=ssl.create_default_context())
                line.ehlo()
            elif post.user is not None:
                return UNTOLD
            elif not post.clear and not _is_own(line):
                return NO_TLS
            if post.user is not None:
                assert post.password is not None
                line.login(post.user, post.password())
            line.send_message(mail)
    except OuvrageError as error:
        return error.message
    except (OSError, smtplib.SMTPException, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


def _is_own(line: smtplib.SMTP) -> bool:
    """Whether the connection leads to this machine itself, whatever name was given."""
    assert line.sock is not None
    return ipaddress.ip_address(str(line.sock.getpeername()[0]).partition("%")[0]).is_loopback
