"""Public keys of people: added, listed, removed.

Decides which keys count: of a sort and strength that OpenSSH still takes, read whole and written anew, so that nothing else of what was sent (an
option, a command, a second line) ever stands in a file of keys. Keys are credentials: they stand in a table alone, and the trail says who changed them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct

from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unknown, unreadable
from ouvrage.server.recording import record
from ouvrage.store.platform.people import (
    SshKeyRow,
    add_ssh_key,
    remove_ssh_key,
    ssh_keys_of,
    user_of,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.api import KeyTold, NewKey

MOST = 20
"""Keys of one person."""
_SMALLEST_RSA_BITS = 2048
_LONGEST = 200
_PARTS = {
    "ssh-ed25519": 2, "ecdsa-sha2-nistp256": 3, "ecdsa-sha2-nistp384": 3, "ecdsa-sha2-nistp521": 3, "ssh-rsa": 3,
    "sk-ssh-ed25519@openssh.com": 3, "sk-ecdsa-sha2-nistp256@openssh.com": 4,
}  # fmt: skip
"""How many strings the text of each kind of key has (RFC 4253, RFC 5656, RFC 8709, PROTOCOL.u2f of OpenSSH)."""


def listed(platform: Platform, actor: Actor, after: str, limit: int) -> list[KeyTold]:
    """One's own keys, newest first, after one id."""
    with platform.reading() as connection:
        rows = ssh_keys_of(connection, actor.id)
    return [_told(row) for row in rows if not after or row.ssh_key < after][:limit]


def add(tx: Transaction, platform: Platform, actor: Actor, asked: NewKey) -> KeyTold:
    """Make a key known. ``Refused`` where it is none, is too weak, or is there already."""
    kind, body, comment = _read(asked.key)
    name = (asked.name or comment or kind)[:_LONGEST]
    fingerprint = _fingerprint(body)
    held = ssh_keys_of(tx.connection, actor.id)
    for row in held:
        if fingerprint == row.fingerprint or name == row.name:
            what = "that key" if fingerprint == row.fingerprint else f"a key called {name}"
            raise conflict(
                "key/known", f"{what} is known already", hint="ouvrage key list", field="key"
            )
    if len(held) >= MOST:
        raise conflict("key/many", f"{MOST} keys are the most", hint="ouvrage key remove NAME")
    row = SshKeyRow(
        ssh_key=platform.ids(), user_id=actor.id, name=name, kind=kind, body=body,
        fingerprint=fingerprint, created_us=tx.now_us,
    )  # fmt: skip
    add_ssh_key(tx.connection, row)
    org = _home(tx.connection, actor)
    record(tx, platform, actor, "key.add", org=org, target=row.ssh_key, detail=fingerprint)
    return _told(row)


def remove(tx: Transaction, platform: Platform, actor: Actor, meant: str) -> None:
    """Forget the key of one's own that an id or a name means."""
    row = next(
        (row for row in ssh_keys_of(tx.connection, actor.id) if meant in (row.ssh_key, row.name)),
        None,
    )
    if row is None:
        raise unknown("key", meant)
    remove_ssh_key(tx.connection, row.ssh_key)
    org = _home(tx.connection, actor)
    record(tx, platform, actor, "key.remove", org=org, target=row.ssh_key, detail=row.fingerprint)


def _home(connection: Connection, actor: Actor) -> str | None:
    user = user_of(connection, actor.id)
    return user.org if user else None


def _told(row: SshKeyRow) -> KeyTold:
    return KeyTold(
        key=row.ssh_key,
        name=row.name,
        line=f"{row.kind} {row.body}",
        fingerprint=row.fingerprint,
        created_us=row.created_us,
    )


def _fingerprint(body: str) -> str:
    """As ``ssh-keygen -l`` prints it."""
    digest = hashlib.sha256(base64.b64decode(body)).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _read(text: str) -> tuple[str, str, str]:
    """The kind, the body and the comment of a line of a public key."""
    words = text.split(None, 2)
    if "PRIVATE KEY" in text:
        why = "that is a private key: it stays where it is"
    elif len(text.strip().splitlines()) != 1 or len(words) < 2:
        why = "a public key is one line: its kind, its text, and a comment"
    elif words[0] not in _PARTS:
        why = f"{words[0][:60]} is no kind of key that is taken"
    else:
        why = _odd(words[0], words[1])
    if why or (not text.isprintable() and not text.strip().isprintable()):
        raise unreadable(
            "key/unreadable",
            why or "it holds what is no text",
            hint="ssh-keygen -t ed25519 makes one; its public half ends in .pub",
            field="key",
        )
    return words[0], words[1], words[2].strip() if len(words) > 2 else ""


def _odd(kind: str, body: str) -> str:
    """What is wrong with a key's text; nothing: empty."""
    try:
        raw = base64.b64decode(body.encode("ascii"), validate=True)
        parts = _parts(raw)
    except (binascii.Error, UnicodeError, struct.error, ValueError):
        return "its text is no key's"
    if not parts or parts[0] != kind.encode() or len(parts) != _PARTS[kind]:
        return "its text is of another kind than it says"
    if kind == "ssh-rsa" and int.from_bytes(parts[-1], "big").bit_length() < _SMALLEST_RSA_BITS:
        return f"RSA keys need {_SMALLEST_RSA_BITS} bits"
    return ""


def _parts(raw: bytes) -> list[bytes]:
    """The strings that a key's text is made of (RFC 4253, section 6.6), to its end."""
    parts: list[bytes] = []
    while raw:
        (length,) = struct.unpack_from(">I", raw)
        part, raw = raw[4 : 4 + length], raw[4 + length :]
        if len(part) < length:
            raise ValueError("it ends too early")
        parts.append(part)
    return parts
