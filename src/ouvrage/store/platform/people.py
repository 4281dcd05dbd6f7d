"""Rows of users and of what proves who somebody is: tokens, sessions, node keys, enrolments.

Reads and writes; what a credential is worth is judged by ``server``. A row is found by the public half of its secret, and
revoking it takes effect with the next request, since every request reads it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from ouvrage.store.platform.tenancy_tables import (
    enrolments,
    memberships,
    node_keys,
    sessions,
    ssh_keys,
    tokens,
    users,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who can be known: a ``person``, or a ``machine`` that has tokens alone."""

    user_id: str
    org: str
    login: str
    kind: str
    password: str | None
    changed_us: int
    issuer: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A role that a user holds; ``project`` is empty for all projects."""

    user_id: str
    org: str
    project: str
    login: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token without its secret; ``scopes`` are words with blanks between, ``project`` empty for all."""

    token: str
    user_id: str
    name: str
    hash: str
    scopes: str
    project: str
    created_us: int
    expires_us: int
    used_us: int | None = None
    revoked_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SshKeyRow:
    """A public key of a user's: its ``kind`` and ``body`` as they stand in a line of OpenSSH's."""

    ssh_key: str
    user_id: str
    name: str
    kind: str
    body: str
    fingerprint: str
    created_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A browser's session."""

    session: str
    user_id: str
    hash: str
    created_us: int
    seen_us: int
    expires_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentRow:
    """A one-time token for a node's runner."""

    enrolment: str
    hash: str
    created_us: int
    expires_us: int
    used_us: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKeyRow:
    """A node's own key."""

    node_key: str
    node: str
    hash: str
    created_us: int
    revoked_us: int | None = None


def _values(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)


def add_user(connection: Connection, user: User) -> None:
    """A new user."""
    connection.execute(insert(users).values(**asdict(user)))


def user_of(connection: Connection, user_id: str) -> User | None:
    """A user by id."""
    row = connection.execute(select(users).where(users.c.user_id == user_id)).first()
    return User(**_values(row)) if row else None


def user_called(connection: Connection, login: str) -> User | None:
    """A user by login."""
    row = connection.execute(select(users).where(users.c.login == login)).first()
    return User(**_values(row)) if row else None


def users_known_as(connection: Connection, issuer: str, subject: str) -> list[User]:
    """The users, one in each organisation, whom an identity provider calls so."""
    query = select(users).where(users.c.issuer == issuer, users.c.subject == subject)
    rows = connection.execute(query.order_by(users.c.user_id))
    return [User(**_values(row)) for row in rows]


def change_user(connection: Connection, user_id: str, **values: str | int | None) -> None:
    """Set columns of a user."""
    connection.execute(update(users).where(users.c.user_id == user_id).values(**values))


def users_of(connection: Connection, org: str, kind: str) -> list[User]:
    """The users of an organisation, by login."""
    query = select(users).where(users.c.org == org, users.c.kind == kind).order_by(users.c.login)
    return [User(**_values(row)) for row in connection.execute(query)]


def memberships_of(connection: Connection, user_id: str) -> list[MemberRow]:
    """The roles that a user holds."""
    query = select(memberships).where(memberships.c.user_id == user_id)
    return [MemberRow(**_values(row)) for row in connection.execute(query)]


def add_token(connection: Connection, token: TokenRow) -> None:
    """A new token."""
    connection.execute(insert(tokens).values(**asdict(token)))


def token_of(connection: Connection, token: str) -> TokenRow | None:
    """A token by its id."""
    row = connection.execute(select(tokens).where(tokens.c.token == token)).first()
    return TokenRow(**_values(row)) if row else None


def tokens_of(connection: Connection, user_id: str) -> list[TokenRow]:
    """All tokens of a user, newest first, revoked ones included."""
    query = select(tokens).where(tokens.c.user_id == user_id).order_by(tokens.c.token.desc())
    return [TokenRow(**_values(row)) for row in connection.execute(query)]


def revoke_token(connection: Connection, token: str, now_us: int) -> None:
    """End a token; one that has ended keeps its moment."""
    where = (tokens.c.token == token, tokens.c.revoked_us.is_(None))
    connection.execute(update(tokens).where(*where).values(revoked_us=now_us))


def revoke_tokens_of(connection: Connection, user_id: str, now_us: int) -> None:
    """End all tokens of a user."""
    where = (tokens.c.user_id == user_id, tokens.c.revoked_us.is_(None))
    connection.execute(update(tokens).where(*where).values(revoked_us=now_us))


def token_used(connection: Connection, token: str, now_us: int) -> None:
    """Note that a token was used."""
    connection.execute(update(tokens).where(tokens.c.token == token).values(used_us=now_us))


def add_ssh_key(connection: Connection, key: SshKeyRow) -> None:
    """A new public key."""
    connection.execute(insert(ssh_keys).values(**asdict(key)))


def ssh_keys_of(connection: Connection, user_id: str) -> list[SshKeyRow]:
    """The public keys of a user, newest first."""
    query = select(ssh_keys).where(ssh_keys.c.user_id == user_id)
    rows = connection.execute(query.order_by(ssh_keys.c.ssh_key.desc()))
    return [SshKeyRow(**_values(row)) for row in rows]


def remove_ssh_key(connection: Connection, key: str) -> None:
    """Forget a public key."""
    connection.execute(delete(ssh_keys).where(ssh_keys.c.ssh_key == key))


def add_session(connection: Connection, session: SessionRow) -> None:
    """A new session."""
    connection.execute(insert(sessions).values(**asdict(session)))


def session_of(connection: Connection, session: str) -> SessionRow | None:
    """A session by its id."""
    row = connection.execute(select(sessions).where(sessions.c.session == session)).first()
    return SessionRow(**_values(row)) if row else None


def session_seen(connection: Connection, session: str, now_us: int) -> None:
    """Note that a session is in use."""
    where = sessions.c.session == session
    connection.execute(update(sessions).where(where).values(seen_us=now_us))


def end_session(connection: Connection, session: str) -> None:
    """Forget a session."""
    connection.execute(delete(sessions).where(sessions.c.session == session))


def end_sessions_of(connection: Connection, user_id: str) -> None:
    """Forget all sessions of a user."""
    connection.execute(delete(sessions).where(sessions.c.user_id == user_id))


def end_old_sessions(connection: Connection, now_us: int) -> None:
    """Forget the sessions whose time is over."""
    connection.execute(delete(sessions).where(sessions.c.expires_us <= now_us))


def add_enrolment(connection: Connection, enrolment: EnrolmentRow) -> None:
    """A new one-time token."""
    connection.execute(insert(enrolments).values(**asdict(enrolment)))


def enrolment_of(connection: Connection, enrolment: str) -> EnrolmentRow | None:
    """A one-time token by its id."""
    where = enrolments.c.enrolment == enrolment
    row = connection.execute(select(enrolments).where(where)).first()
    return EnrolmentRow(**_values(row)) if row else None


def enrolment_used(connection: Connection, enrolment: str, node: str, now_us: int) -> bool:
    """Use up a one-time token for a node; False where it was used before."""
    where = (enrolments.c.enrolment == enrolment, enrolments.c.used_us.is_(None))
    done = connection.execute(update(enrolments).where(*where).values(used_us=now_us, node=node))
    return done.rowcount == 1


def add_node_key(connection: Connection, key: NodeKeyRow) -> None:
    """A node's new key."""
    connection.execute(insert(node_keys).values(**asdict(key)))


def node_key_of(connection: Connection, node_key: str) -> NodeKeyRow | None:
    """A node's key by its id."""
    row = connection.execute(select(node_keys).where(node_keys.c.node_key == node_key)).first()
    return NodeKeyRow(**_values(row)) if row else None


def revoke_node_keys(connection: Connection, node: str, now_us: int) -> None:
    """End all keys of a node."""
    where = (node_keys.c.node == node, node_keys.c.revoked_us.is_(None))
    connection.execute(update(node_keys).where(*where).values(revoked_us=now_us))
