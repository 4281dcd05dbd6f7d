"""From a password to a token or a session, slowly for whoever guesses.

Decides how long somebody must wait after failures: nothing for the first few, then a time that doubles, kept in the store so
that a restart forgives nothing. Failures count for the pair of login and address, for the address, and (far later) for the login
alone, so that nobody locks another out from afar. While the time runs even the right password is not looked at.
"""

from __future__ import annotations

import threading

from ouvrage.base.time import HOUR, SECOND
from ouvrage.server.context import Actor, Platform
from ouvrage.server.credentials import (
    check_password,
    new_secret,
    password_hash,
    password_holds,
)
from ouvrage.server.errors import Refused, too_many, unreadable
from ouvrage.server.identify import held_by
from ouvrage.server.recording import record
from ouvrage.store.platform.answers import (
    Throttle,
    forget_throttle,
    put_throttle,
    throttle_of,
)
from ouvrage.store.platform.people import (
    SessionRow,
    User,
    add_session,
    change_user,
    end_session,
    end_sessions_of,
    user_called,
    user_of,
)
from ouvrage.store.platform.tenancy import organisation_of
from ouvrage.store.transaction import Connection, Transaction

_TRIES = threading.BoundedSemaphore(2)
"""Strangers' passwords tried at once: each takes memory and a core, and nobody has shown who they are."""
LONGEST_WAIT = 15 * 60 * SECOND
FORGIVEN_AFTER = 24 * HOUR


def _names(login: str, address: str | None) -> tuple[tuple[str, int], ...]:
    """The names under which a failure counts, each with the failures that cost nothing."""
    return (
        (f"pair {login} {address}", 5),
        (f"address {address}", 20),
        (f"login {login}", 100),
    )


def signed_in(platform: Platform, login: str, password: str, address: str | None) -> Actor:
    """Who signs in with a password. Raises ``Refused`` 401 for a wrong one, 429 while somebody must wait."""
    names = _names(login, address)
    with platform.reading() as connection:
        _refuse_while_waiting(connection, names, platform.clock())
        user = user_called(connection, login)
    with _TRIES:
        right = password_holds(platform, password, user.password if user else None)
    if not right or user is None:
        _failed(platform, user, login, address)
        raise Refused(
            "login/wrong",
            "no such login and password",
            status=401,
            hint="an administrator of your organisation can set a new password",
        )
    with platform.writing() as tx:
        for name, _ in names[::2]:  # the address keeps its count: one right guess pardons no others
            forget_throttle(tx.connection, name)
        actor = _actor(tx.connection, user, address)
        record(tx, platform, actor, "login", org=user.org, target=user.user_id)
        return actor


def actor_for(platform: Platform, user: User, address: str | None) -> Actor:
    """Somebody whom an identity provider has vouched for."""
    with platform.writing() as tx:
        actor = _actor(tx.connection, user, address)
        record(tx, platform, actor, "login", org=user.org, target=user.user_id, detail="oidc")
        return actor


def _actor(connection: Connection, user: User, address: str | None) -> Actor:
    org = organisation_of(connection, user.org)
    if org is None or org.closed:
        raise Refused(
            "organisation/closed",
            "your organisation is closed here",
            status=403,
            hint="ask the owner of this platform",
        )
    return Actor(
        kind="user",
        id=user.user_id,
        login=user.login,
        memberships=held_by(connection, user),
        address=address,
    )


def _refuse_while_waiting(
    connection: Connection, names: tuple[tuple[str, int], ...], now: int
) -> None:
    kept = [throttle_of(connection, name) for name, _ in names]
    until = max((each.until_us for each in kept if each is not None), default=0)
    if until > now:
        seconds = (until - now + SECOND - 1) // SECOND
        raise too_many("login/wait", "too many failed attempts to sign in", seconds)


def _failed(platform: Platform, user: User | None, login: str, address: str | None) -> None:
    """Count a failure; what makes somebody wait is written into the trail, and only that."""
    with platform.writing() as tx:
        waits = [_counted(tx, name, free) for name, free in _names(login, address)]
        if any(waits):
            asker = Actor(kind="user", id="unknown", login=login[:64], address=address)
            record(
                tx, platform, asker, "login.throttled",
                org=user.org if user else None,
                target=user.user_id if user else None,
                detail=f"refused for {max(waits) // SECOND} s",
            )  # fmt: skip


def _counted(tx: Transaction, name: str, free: int) -> int:
    """One more failure under a name; for how long it is refused now (microseconds)."""
    before = throttle_of(tx.connection, name)
    recent = before is not None and before.last_us > tx.now_us - FORGIVEN_AFTER
    failures = 1 + (before.failures if before is not None and recent else 0)
    over = failures - free
    wait = min(LONGEST_WAIT, SECOND << min(over, 20)) if over >= 0 else 0
    put_throttle(
        tx.connection,
        Throttle(name=name, failures=failures, last_us=tx.now_us, until_us=tx.now_us + wait),
    )
    return wait


def new_session(platform: Platform, actor: Actor) -> str:
    """A session for somebody who has just signed in: the text of its cookie. Its id was never seen before."""
    made = new_secret(platform, "session")
    with platform.writing() as tx:
        row = SessionRow(
            session=made.id,
            user_id=actor.id,
            hash=made.hash,
            created_us=tx.now_us,
            seen_us=tx.now_us,
            expires_us=tx.now_us + platform.settings.session_us,
        )
        add_session(tx.connection, row)
    return made.text


def sign_out(platform: Platform, actor: Actor) -> None:
    """End the session of this actor."""
    if actor.credential is not None:
        with platform.writing() as tx:
            end_session(tx.connection, actor.credential)


def change_password(tx: Transaction, platform: Platform, actor: Actor, old: str, new: str) -> None:
    """Put one's own password in place of the old one; every session of the user ends."""
    user = user_of(tx.connection, actor.id)
    if user is None or not password_holds(platform, old, user.password):
        raise unreadable(
            "password/wrong", "that is not the old password", hint="type it again", field="old"
        )
    check_password(new)
    set_password(tx, platform, user, new)
    record(tx, platform, actor, "me.password", org=user.org, target=user.user_id)


def set_password(tx: Transaction, platform: Platform, user: User, password: str) -> None:
    """Set a user's password, and end every session begun with another."""
    change_user(
        tx.connection,
        user.user_id,
        password=password_hash(platform, password),
        changed_us=tx.now_us,
    )
    end_sessions_of(tx.connection, user.user_id)
