"""Tells people what became of this machine, without any server: by a webhook and by e-mail, both signed.

Decides that a message is on the disk before it is sent and leaves it when its receiver has it, so that none is lost and a
repeated one has the same id; that each channel gets them in their order; and that no secret stands in the settings. A full disk keeps
nobody from being told: a reserve is given up for it, and without room it is told all the same, perhaps twice. It is a process of
its own, started when the view has changed, so that no receiver is ever waited for by what watches. Exit code 0: all is told; 1: later.

    python -m ouvrage.agent.probing.alerting --state DIR [--test]
"""

from __future__ import annotations

import argparse
import fcntl
import ipaddress
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.adapters.posting import fault_of, post, signature
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.agent.probing.alerts import (
    EVENT,
    Desk,
    Waiting,
    is_over,
    news_of,
    tried,
    words_of,
)
from ouvrage.agent.probing.now import read_now
from ouvrage.agent.probing.settings import FILE as SETTINGS
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND
from ouvrage.model.health import CRITICAL, OK, WARN
from ouvrage.store.samples import write_whole

DESK, LOCK, RESERVE = "alerts.json", "alerts.lock", "alerts.reserve"
_RESERVE_BYTES = 1 << 16
_NEAR = tuple(
    ipaddress.ip_network(each)
    for each in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)  # fmt: skip
"""The owner's own networks: where a receiver may stand, and be told in the clear."""
_MAIL = re.compile(r"[^\s@<>,;\x00-\x1f]+@[^\s@<>,;\x00-\x1f]+")
_TEXTS = ("webhook", "secret", "mail_to", "mail_from", "smtp", "smtp_user", "smtp_password")
_REFERENCES = ("file", "env", "command")
Send = Callable[[Mapping[str, Any]], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The table ``[alerts]`` of ``agent.toml``. ``least`` is the mildest verdict that is told: WARN or CRITICAL.

    ``smtp_clear``: a mail server on another machine may be spoken to without encryption. ``secret`` and ``smtp_password`` are references: ``file:PATH``, ``env:NAME`` or ``command:PROGRAM``.
    """

    least: str = WARN
    webhook: str | None = None
    secret: str | None = None
    mail_to: str | None = None
    mail_from: str | None = None
    smtp: str | None = None
    smtp_user: str | None = None
    smtp_password: str | None = None
    smtp_clear: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The channels that are set up."""
        return tuple(
            name for name, set_up in (("webhook", self.webhook), ("mail", self.smtp)) if set_up
        )


def channels_in(state: Path) -> Channels:
    """How a machine's owner wants to be told; no channel where nothing stands there. Raises ``OuvrageError``."""
    file = state / SETTINGS
    told: Any = {}
    if file.exists():
        told = load_toml(str(file), read_text(file, "agent"), "agent/config").get("alerts", {})

    def refuse(name: str, hint: str) -> OuvrageError:
        return OuvrageError(
            "agent/config", f"alerts.{name} is not understood", where=(str(file),), hint=hint
        )

    if not isinstance(told, dict):
        raise refuse("", "a table: [alerts]")
    given = cast("dict[str, Any]", told)
    for name, value in given.items():
        if name not in (*_TEXTS, "least", "smtp_clear"):
            raise refuse(name, f"known are least, {', '.join(_TEXTS)}, smtp_clear")
        if name == "smtp_clear":
            if not isinstance(value, bool):
                raise refuse(name, "true or false")
            continue
        if not isinstance(value, str) or not value:
            raise refuse(name, "a text")
    return _sound(Channels(**given), refuse)


def _sound(found: Channels, refuse: Callable[[str, str], OuvrageError]) -> Channels:
    if found.least not in (WARN, CRITICAL):
        raise refuse("least", "WARN or CRITICAL")
    for name in ("secret", "smtp_password"):
        reference = getattr(found, name)
        if reference is not None and reference.partition(":")[0] not in _REFERENCES:
            raise refuse(name, "file:PATH, env:NAME or command:PROGRAM; never the secret itself")
    if found.webhook is not None and (fault := fault_of(found.webhook)):
        raise refuse("webhook", fault)
    if found.webhook is not None and found.secret is None:
        raise refuse("secret", 'a webhook is signed: secret = "file:PATH"')
    _check_mail(found, refuse)
    return found


def _check_mail(found: Channels, refuse: Callable[[str, str], OuvrageError]) -> None:
    mails = (found.smtp, found.mail_to, found.mail_from)
    if any(mails) and not all(mails):
        raise refuse("smtp", "a mail needs smtp, mail_to and mail_from")
    if found.smtp is not None and found.secret is None:
        raise refuse("secret", 'a mail is signed: secret = "file:PATH"')
    for name in ("mail_to", "mail_from"):
        address = getattr(found, name)
        if address is not None and not _MAIL.fullmatch(address):
            raise refuse(name, "one address: ops@example.org")
    if found.smtp is not None and not re.fullmatch(r"[^\s/@]+:\d{1,5}", found.smtp):
        raise refuse("smtp", 'a host and its port: smtp = "mail.example.org:587"')
    if found.smtp_user is not None and found.smtp_password is None:
        raise refuse("smtp_password", 'smtp_password = "file:PATH"')


def alert(state: Path, channels: Channels) -> Desk:
    """Tell what is new and what waits. The desk as it stands afterwards."""
    desk = desk_in(state)
    now = read_now(state)
    if now is not None:
        desk = news_of(desk, now, channels.names, channels.least)
        _keep(state, desk)
    return _sent(state, desk, senders(channels, state))


def try_out(node: str, state: Path, channels: Channels) -> dict[str, str | None]:
    """Send a test by each channel, once; by channel why it did not arrive, None where it did."""
    at = now_us()
    message = {
        "id": f"test-{at}", "event": EVENT, "at_us": at, "node": node, "verdict": OK, "changes": [],
    }  # fmt: skip
    return {name: send(message) for name, send in senders(channels, state).items()}


def _sent(state: Path, desk: Desk, by: Mapping[str, Send]) -> Desk:
    """The oldest first; a channel that does not take one gets no later one either, until it is tried again."""
    deaf: set[str] = set()
    kept: list[Waiting] = []
    for at, waits in enumerate(desk.waiting):
        each = replace(waits, left=tuple(name for name in waits.left if name in by))
        if each.due_us > now_us():
            deaf |= set(each.left)
        faults = {name: "waits for an earlier one" for name in each.left if name in deaf}
        reached = [name for name in each.left if name not in deaf]
        for name in reached:
            why = by[name](each.message)
            if why is not None:
                faults[name] = why
            left = tuple(n for n in each.left if n != name or why is not None)
            each = replace(each, left=left)
            _keep(state, replace(desk, waiting=(*kept, each, *desk.waiting[at + 1 :])))
        if reached:
            each = tried(each, faults, now_us())
        deaf |= faults.keys()
        if not is_over(each, now_us()):
            kept.append(each)
        _keep(state, replace(desk, waiting=(*kept, *desk.waiting[at + 1 :])))
    return replace(desk, waiting=tuple(kept))


def senders(channels: Channels, state: Path) -> dict[str, Send]:
    """How each channel that is set up is told: a function that says why a message did not arrive."""
    where = str(state / SETTINGS)
    made: dict[str, Send] = {}
    if channels.webhook is not None:
        made["webhook"] = lambda message: _posted(channels, message, where)
    if channels.smtp is not None:
        made["mail"] = lambda message: _mailed(channels, message, where)
    return made


def _posted(channels: Channels, message: Mapping[str, Any], where: str) -> str | None:
    assert channels.webhook is not None
    assert channels.secret is not None
    try:
        secret = _secret(channels.secret, where)
    except OuvrageError as error:
        return error.message
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Ouvrage-Event": str(message["event"]),
        "Ouvrage-Delivery": str(message["id"]),
        "Ouvrage-Signature": signature(secret, body, now_us() // SECOND),
    }
    came = post(channels.webhook, body, headers, _NEAR)
    arrived = came.status is not None and 200 <= came.status < 300
    return None if arrived else came.words


def _mailed(channels: Channels, message: Mapping[str, Any], where: str) -> str | None:
    from ouvrage.agent.probing.mailing import Post, mail_of, send

    assert channels.smtp is not None
    assert channels.mail_from is not None
    assert channels.mail_to is not None
    assert channels.secret is not None
    password = channels.smtp_password
    post = Post(
        server=channels.smtp, clear=channels.smtp_clear, user=channels.smtp_user,
        password=None if password is None else lambda: _secret(password, where),
    )  # fmt: skip
    try:
        about = (str(message["event"]), str(message["id"]), str(message["node"]))
        ends = (channels.mail_from, channels.mail_to)
        secret = _secret(channels.secret, where)
        return send(post, mail_of(about, words_of(message), ends, secret, now_us() // SECOND))
    except OuvrageError as error:
        return error.message


def secret_in(channels: Channels, state: Path) -> str:
    """The secret by which webhooks and mails are signed. Raises ``OuvrageError`` where it cannot be had."""
    assert channels.secret is not None
    return _secret(channels.secret, str(state / SETTINGS))


def _secret(reference: str, where: str) -> str:
    from ouvrage.adapters.remote_config import secret_at  # it weighs

    return secret_at(reference, where, "agent/secret")


def desk_in(state: Path) -> Desk:
    """What was told and what waits; empty where nothing was told yet. Raises ``OuvrageError`` for a spoilt file."""
    try:
        told = json.loads((state / DESK).read_bytes())
        waiting = tuple(_waiting(each) for each in told["waiting"])
        return Desk(told=told["told"], waiting=waiting, given_up=told["given_up"])
    except FileNotFoundError:
        return Desk()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OuvrageError(
            "agent/alerts", f"{state / DESK} is not what was told: {type(error).__name__}",
            hint="put it aside; what counts now is told anew",
        ) from error  # fmt: skip


def _waiting(told: dict[str, Any]) -> Waiting:
    return Waiting(
        message=told["message"], left=tuple(told["left"]), tries=told["tries"],
        due_us=told["due_us"], said=told["said"],
    )  # fmt: skip


def _keep(state: Path, desk: Desk) -> bool:
    """Bring the desk to the disk, on a full one into the room that was laid aside; whether it is there."""
    data = json.dumps(asdict(desk), ensure_ascii=False).encode()
    for _ in range(2):
        with suppress(OSError):
            write_whole(state / DESK, data)
            return True
        with suppress(OSError):
            (state / RESERVE).unlink()
    return False


def _lay_aside(state: Path) -> None:
    """Keep some room for a day when the disk is full; without it people are told all the same."""
    if not (state / RESERVE).exists():
        with suppress(OSError):
            write_whole(state / RESERVE, bytes(_RESERVE_BYTES))


def main(words: Sequence[str] | None = None) -> int:
    """Tell once. Another one that tells from the same directory goes first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", required=True, type=Path)
    state = parser.parse_args(words).state
    end_with_the_parent()
    held = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        desk = alert(state, channels_in(state))
        kept = _keep(state, desk)
        _lay_aside(state)
    except (OuvrageError, OSError) as error:
        sys.stderr.write(f"ouvrage agent: {error}\n")
        return 1
    for each in desk.waiting:
        sys.stderr.write(f"ouvrage agent: alert {each.message['id']} waits: {each.said}\n")
    return int(bool(desk.waiting) or not kept)


if __name__ == "__main__":
    sys.exit(main())
