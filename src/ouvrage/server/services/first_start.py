"""The first start of a platform: the owner's organisation, a project, an administrator, a token for the command line.

Decides that all of it appears at once or not at all, that the password exists on the terminal of the first start alone, and that
the owner's token stands in a file of the owner's, renewed by a start before it expires.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ouvrage.base.time import DAY
from ouvrage.model.tenancy import Membership, Organisation, Project
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.credentials import new_password, new_secret, password_hash
from ouvrage.server.identify import actor_by_bearer
from ouvrage.server.recording import record, stated
from ouvrage.store.platform.people import (
    TokenRow,
    User,
    add_token,
    add_user,
    revoke_token,
    token_of,
    tokens_of,
    user_called,
)
from ouvrage.store.platform.tenancy import (
    owners_organisation,
    put_membership,
    put_organisation,
    put_project,
)
from ouvrage.store.transaction import Transaction

ADMIN = "admin"
OWNER_NAME = "owner"
TOKEN_FILE = "owner.token"  # noqa: S105 - the name of a file
_TOKEN_NAME = "owner.token of this server"  # noqa: S105 - the name of a token
_RENEWED_BEFORE = 30 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a start found or made: the first one's ``password``, None later; the file of the owner's token."""

    password: str | None
    token_file: Path


def prepare(platform: Platform, *, currency: str = "EUR") -> Started:
    """Make what is missing, and renew the owner's token where it would soon expire."""
    password = _first(platform, currency)
    file = platform.state_dir / TOKEN_FILE
    _renew_token(platform, file)
    return Started(password=password, token_file=file)


def _first(platform: Platform, currency: str) -> str | None:
    with platform.reading() as connection:
        if owners_organisation(connection) is not None:
            return None
    password = new_password(platform)
    hashed = password_hash(platform, password)
    with platform.writing() as tx:
        if owners_organisation(tx.connection) is not None:
            return None  # another server process was first
        _make(tx, platform, hashed, currency)
    return password


def _make(tx: Transaction, platform: Platform, hashed: str, currency: str) -> None:
    org, user = platform.ids(), platform.ids()
    organisation = Organisation(
        org=org, name=OWNER_NAME, side="owner", currency=currency, billing="credit",
        credit_limit="0", closed=False,
    )  # fmt: skip
    project = Project(
        project=platform.ids(), org=org, name="main", weight="1", trusted=False, closed=False
    )
    membership = Membership(user=user, login=ADMIN, org=org, project=None, role="owner")
    put_organisation(tx.connection, organisation)
    put_project(tx.connection, project)
    put_membership(tx.connection, membership)
    add_user(
        tx.connection,
        User(
            user_id=user,
            org=org,
            login=ADMIN,
            kind="person",
            password=hashed,
            changed_us=tx.now_us,
        ),
    )
    facts = (
        stated(platform, organisation, subject=org, at_us=tx.now_us),
        stated(platform, project, subject=project.project, at_us=tx.now_us),
        stated(platform, membership, subject=user, at_us=tx.now_us),
    )
    record(tx, platform, SERVER, "platform.first-start", org=org, target=org, facts=facts)


def _renew_token(platform: Platform, file: Path) -> None:
    """Write the owner's token anew where the file has none that will be valid for a while."""
    text = file.read_text("ascii", errors="replace").strip() if file.exists() else ""
    actor = actor_by_bearer(platform, text, None)
    now = platform.clock()
    if actor is not None and actor.credential is not None:
        with platform.reading() as connection:
            row = token_of(connection, actor.credential)
        if row is not None and row.expires_us > now + _RENEWED_BEFORE:
            return
    with platform.reading() as connection:
        user = user_called(connection, ADMIN)
    if user is None:
        return  # the administrator is gone: whoever holds the role now makes tokens themselves
    # Other servers on the same database have a file, and so a token, of their own.
    name = f"{_TOKEN_NAME} {platform.source[-8:]}"
    made = new_secret(platform, "token")
    write_secret(file, made.text)
    with platform.writing() as tx:
        for old in tokens_of(tx.connection, user.user_id):
            if old.name == name:
                revoke_token(tx.connection, old.token, tx.now_us)
        token = TokenRow(
            token=made.id, user_id=user.user_id, name=name, hash=made.hash, scopes="all",
            project="", created_us=tx.now_us, expires_us=tx.now_us + platform.settings.longest_token_us,
        )  # fmt: skip
        add_token(tx.connection, token)
        record(tx, platform, SERVER, "token.create", org=user.org, target=made.id, detail=str(file))


def write_secret(file: Path, text: str) -> None:
    """Write a secret for the owner of the file alone, whole or not at all."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, f"{text}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.replace(file)
