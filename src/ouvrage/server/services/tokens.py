"""Tokens: made once, shown once, limited, revoked at once.

Decides that nobody makes a token that can do more, or longer reach, than what it is asked with; that a program's token belongs
to a user of its own, so that it outlives the person who made it; and that a token of another person is never made.
"""

from __future__ import annotations

from ouvrage.base.time import DAY
from ouvrage.model.tenancy import Membership, Organisation
from ouvrage.server.authorise import ACTIONS, SCOPES, authorise, knows, may
from ouvrage.server.context import Actor, Platform
from ouvrage.server.credentials import new_secret
from ouvrage.server.errors import conflict, may_not, unknown, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.members import check_role, role_told
from ouvrage.server.services.naming import organisation_meant, project_meant, refuse_closed
from ouvrage.store.platform.people import (
    TokenRow,
    User,
    add_token,
    add_user,
    memberships_of,
    revoke_token,
    token_of,
    tokens_of,
    user_called,
    user_of,
    users_of,
)
from ouvrage.store.platform.tenancy import put_membership
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.api import Login, Me, NewToken, TokenShown, TokenTold

__all__ = ["Transaction", "about", "create", "listed", "of_login", "revoke", "revoke_own"]


def about(platform: Platform, actor: Actor) -> Me:
    """What somebody is, as they are shown it."""
    with platform.reading() as connection:
        row = token_of(connection, actor.credential) if actor.credential else None
        return Me(
            user=actor.id,
            login=actor.login,
            roles=[
                role_told(connection, held.org, held.project, held.role)
                for held in actor.memberships
            ],
            scopes=None if actor.scopes is None else sorted(actor.scopes),
            token=row.token if row else None,
            expires_us=row.expires_us if row else None,
        )


def of_login(platform: Platform, actor: Actor, asked: Login) -> TokenShown:
    """A token for somebody who has just shown their password."""
    with platform.writing() as tx:
        return _made(
            tx, platform, actor, actor.login, actor.id, asked.name, ["all"], "", asked.days
        )


def revoke_own(platform: Platform, actor: Actor) -> None:
    """Revoke the token that somebody asks with."""
    if actor.credential is not None:
        with platform.writing() as tx:
            revoke_token(tx.connection, actor.credential, tx.now_us)
            record(
                tx,
                platform,
                actor,
                "logout",
                org=_home(tx.connection, actor),
                target=actor.credential,
            )


def _home(connection: Connection, actor: Actor) -> str | None:
    user = user_of(connection, actor.id)
    return user.org if user else None


def create(tx: Transaction, platform: Platform, actor: Actor, asked: NewToken) -> TokenShown:
    """A token for oneself or for a program. Raises ``Refused`` where it would reach further than its maker."""
    _refuse_wider(actor, asked.scopes)
    project = project_meant(tx.connection, actor, asked.project) if asked.project else None
    if asked.machine is not None:
        return _for_machine(tx, platform, actor, asked)
    if asked.role is not None or asked.org is not None:
        raise unreadable(
            "token/role",
            "a role is given to a program's token; your own has your roles",
            hint="name the program: --machine NAME",
            field="role",
        )
    limit = project.project if project else _only_project(actor)
    return _made(
        tx, platform, actor, actor.login, actor.id, asked.name, asked.scopes, limit, asked.days
    )


def _only_project(actor: Actor) -> str:
    """The project that the asking token is limited to, so that the new one is too."""
    projects = {held.project for held in actor.memberships}
    return projects.pop() or "" if len(projects) == 1 else ""


def _refuse_wider(actor: Actor, scopes: list[str]) -> None:
    odd = [word for word in scopes if word not in SCOPES]
    if odd:
        raise unreadable(
            "token/scope",
            f"{odd[0]!r} is no scope",
            hint=f"one or more of: {', '.join(SCOPES)}",
            field="scopes",
        )
    held = actor.scopes
    if held is None or "all" in held:
        return
    if "people" not in held or not set(scopes) <= held:
        raise may_not("make a token that does more than this one", ACTIONS["token.create"].roles)


def _for_machine(tx: Transaction, platform: Platform, actor: Actor, asked: NewToken) -> TokenShown:
    org = organisation_meant(tx.connection, actor, asked.org)
    authorise(actor, "token.create", org=org.org)
    project = project_meant(tx.connection, actor, asked.project) if asked.project else None
    refuse_closed(org, project)
    if project is not None and project.org != org.org:
        raise unknown("project", asked.project or "", field="project")
    limit, role = project.project if project else "", asked.role or ""
    check_role(org, role, limit or None)
    login = f"{asked.machine}@{org.name}.machine"
    user = user_called(tx.connection, login)
    if user is None:
        user = _new_machine(tx, platform, login, org, limit, role)
    elif (limit, role) not in _held(tx.connection, user):
        raise conflict(
            "token/machine",
            f"{asked.machine} is known with another role or project",
            hint="name another program, or the same role and project",
            field="machine",
        )
    return _made(
        tx, platform, actor, login, user.user_id, asked.name, asked.scopes, limit, asked.days
    )


def _held(connection: Connection, user: User) -> set[tuple[str, str]]:
    return {(row.project, row.role) for row in memberships_of(connection, user.user_id)}


def _new_machine(
    tx: Transaction, platform: Platform, login: str, org: Organisation, project: str, role: str
) -> User:
    user = User(
        user_id=platform.ids(),
        org=org.org,
        login=login,
        kind="machine",
        password=None,
        changed_us=tx.now_us,
    )
    membership = Membership(
        user=user.user_id, login=login, org=org.org, project=project or None, role=role
    )
    add_user(tx.connection, user)
    put_membership(tx.connection, membership)
    tx.append([stated(platform, membership, subject=user.user_id, at_us=tx.now_us)])
    return user


def _made(
    tx: Transaction, platform: Platform, actor: Actor, login: str, user_id: str,
    name: str, scopes: list[str], project: str, days: int,
) -> TokenShown:  # fmt: skip
    made = new_secret(platform, "token")
    length = min(days * DAY, platform.settings.longest_token_us)
    row = TokenRow(
        token=made.id, user_id=user_id, name=name, hash=made.hash, scopes=" ".join(sorted(set(scopes))),
        project=project, created_us=tx.now_us, expires_us=tx.now_us + length,
    )  # fmt: skip
    add_token(tx.connection, row)
    user = user_of(tx.connection, user_id)
    told = f"{login}: {row.scopes}"
    org = user.org if user else None
    record(tx, platform, actor, "token.create", org=org, target=made.id, detail=told)
    return TokenShown(
        token=made.id,
        secret=made.text,
        login=login,
        scopes=row.scopes.split(),
        project=project or None,
        expires_us=row.expires_us,
    )


def listed(
    platform: Platform, actor: Actor, org: str | None, after: str, limit: int
) -> list[TokenTold]:
    """One's own tokens; with ``org``, those of its people and programs. By id, newest first, after one id."""
    with platform.reading() as connection:
        owners = _owners(connection, actor, org)
        found = [(row, user) for user in owners for row in tokens_of(connection, user.user_id)]
    found = [each for each in found if not after or each[0].token < after]
    found.sort(key=lambda each: each[0].token, reverse=True)
    now = platform.clock()
    return [_told(row, user, now) for row, user in found[:limit]]


def _owners(connection: Connection, actor: Actor, org: str | None) -> list[User]:
    if org is None:
        user = user_of(connection, actor.id)
        return [user] if user else []
    found = organisation_meant(connection, actor, org)
    authorise(actor, "token.read", org=found.org)
    return [*users_of(connection, found.org, "person"), *users_of(connection, found.org, "machine")]


def _told(row: TokenRow, user: User, now: int) -> TokenTold:
    state = "expired" if now >= row.expires_us else "valid"
    return TokenTold(
        token=row.token,
        name=row.name,
        login=user.login,
        kind=user.kind,
        scopes=row.scopes.split(),
        project=row.project or None,
        created_us=row.created_us,
        expires_us=row.expires_us,
        used_us=row.used_us,
        state="revoked" if row.revoked_us is not None else state,
    )


def revoke(tx: Transaction, platform: Platform, actor: Actor, token: str) -> None:
    """End a token of one's own, or of one's organisation; it is worth nothing from the next request on."""
    row = token_of(tx.connection, token)
    user = user_of(tx.connection, row.user_id) if row else None
    if row is None or user is None:
        raise unknown("token", token)
    if user.user_id != actor.id:
        if not may(actor, "token.revoke", org=user.org) and not knows(actor, org=user.org):
            raise unknown("token", token)
        authorise(actor, "token.revoke", org=user.org)
    revoke_token(tx.connection, token, tx.now_us)
    record(tx, platform, actor, "token.revoke", org=user.org, target=token, detail=user.login)
