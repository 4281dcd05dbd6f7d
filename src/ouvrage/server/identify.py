"""From a secret that was shown to who shows it.

Decides which credentials count: of a known form, of a row that still stands, not expired, not revoked, with the right
secret. Every request reads its rows, so that what was revoked ends at once. Nothing is said about why one did not count.
"""

from __future__ import annotations

from collections.abc import Callable

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import MINUTE
from ouvrage.server.context import Actor, Held, Platform
from ouvrage.server.credentials import Presented, presented, proves
from ouvrage.store.platform.people import (
    TokenRow,
    User,
    memberships_of,
    node_key_of,
    session_of,
    session_seen,
    token_of,
    token_used,
    user_of,
)
from ouvrage.store.transaction import Connection, Transaction

SESSION_COOKIE = "ouvrage_session"
"""The cookie of a browser that has signed in."""


def actor_by_bearer(platform: Platform, text: str, address: str | None) -> Actor | None:
    """Who holds a token or a node's key; None where nobody known does."""
    shown = presented(text)
    if shown is None or shown.kind not in ("token", "node key"):
        return None
    with platform.reading() as connection:
        if shown.kind == "node key":
            return _node(connection, shown, address)
        row = token_of(connection, shown.id)
        if row is None or not _token_counts(row, shown, platform.clock()):
            return None
        actor = _user(connection, row.user_id, address, token=row)
    if actor is not None and (row.used_us or 0) < platform.clock() - MINUTE:
        _note(platform, lambda tx: token_used(tx.connection, row.token, tx.now_us))
    return actor


def actor_by_session(platform: Platform, text: str, address: str | None) -> Actor | None:
    """Whose browser shows this cookie; None where nobody known does."""
    shown = presented(text)
    if shown is None or shown.kind != "session":
        return None
    now = platform.clock()
    with platform.reading() as connection:
        row = session_of(connection, shown.id)
        idle = platform.settings.session_idle_us
        if row is None or now >= row.expires_us or now >= row.seen_us + idle:
            return None
        if not proves(shown, row.hash):
            return None
        actor = _user(connection, row.user_id, address, session=row.session)
    if actor is not None and row.seen_us < now - MINUTE:
        _note(platform, lambda tx: session_seen(tx.connection, row.session, tx.now_us))
    return actor


def _note(platform: Platform, write: Callable[[Transaction], None]) -> None:
    """Note that a credential was used. A store that takes nothing now, as on a full disk, can still be read."""
    try:
        with platform.writing() as tx:
            write(tx)
    except OuvrageError as error:
        if not error.code.startswith("store/"):
            raise


def _token_counts(row: TokenRow, shown: Presented, now: int) -> bool:
    return row.revoked_us is None and now < row.expires_us and proves(shown, row.hash)


def _node(connection: Connection, shown: Presented, address: str | None) -> Actor | None:
    row = node_key_of(connection, shown.id)
    if row is None or row.revoked_us is not None or not proves(shown, row.hash):
        return None
    return Actor(
        kind="node",
        id=row.node,
        login=f"node:{row.node}",
        credential=row.node_key,
        address=address,
    )


def _user(
    connection: Connection,
    user_id: str,
    address: str | None,
    *,
    token: TokenRow | None = None,
    session: str | None = None,
) -> Actor | None:
    user = user_of(connection, user_id)
    if user is None:
        return None
    held = held_by(connection, user)
    if token is not None and token.project:
        held = _narrowed(held, token.project)
    return Actor(
        kind="user",
        id=user.user_id,
        login=user.login,
        memberships=held,
        scopes=None if token is None else frozenset(token.scopes.split()),
        credential=token.token if token else session,
        address=address,
    )


def held_by(connection: Connection, user: User) -> tuple[Held, ...]:
    """The roles that a user holds."""
    return tuple(
        Held(org=row.org, project=row.project or None, role=row.role)
        for row in memberships_of(connection, user.user_id)
    )


def _narrowed(held: tuple[Held, ...], project: str) -> tuple[Held, ...]:
    """What is left of some roles for a token that is for one project alone."""
    return tuple(
        Held(org=each.org, project=project, role=each.role)
        for each in held
        if each.project in (None, project)
    )
