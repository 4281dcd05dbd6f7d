"""Members: who belongs to an organisation, with which role, and the passwords of new ones.

Decides that a login belongs to one organisation (``ann@acme``; the owner's people are ``ann``), so that no tenant can find
out whom another one knows; that roles of the owner's side stand in the owner's organisation alone and for all of it; that the last
owner cannot go; and that whoever holds no role any more is signed out everywhere.
"""

from __future__ import annotations

from ouvrage.model.tenancy import OWNER_ROLES, TENANT_ROLES, Membership, Organisation
from ouvrage.server.authorise import authorise, knows
from ouvrage.server.context import Actor, Platform
from ouvrage.server.credentials import new_password
from ouvrage.server.errors import conflict, unknown, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.naming import organisation_meant, project_meant, refuse_closed
from ouvrage.server.services.signing_in import set_password
from ouvrage.store.platform.people import (
    MemberRow,
    User,
    add_user,
    change_user,
    end_sessions_of,
    memberships_of,
    revoke_tokens_of,
    user_called,
    user_of,
    users_known_as,
    users_of,
)
from ouvrage.store.platform.tenancy import members_of, organisation_of, project_of, put_membership
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.api import MemberMade, MemberTold, NewMember, RoleHeld

PENDING = "e-mail"
"""The issuer of a member who has not signed in with the provider yet; the subject is the address."""


def login_in(org: Organisation, word: str) -> str:
    """How a member of an organisation signs in."""
    return word if org.side == "owner" else f"{word}@{org.name}"


def check_role(org: Organisation, role: str, project: str | None) -> None:
    """Raise ``Refused`` for a role that does not exist on this side, or an owner's role in one project."""
    roles = OWNER_ROLES if org.side == "owner" else TENANT_ROLES
    if role not in roles:
        raise unreadable(
            "member/role",
            f"{role} is no role in {org.name}",
            hint=f"one of: {', '.join(roles)}",
            field="role",
        )
    if project is not None and role in OWNER_ROLES:
        raise unreadable(
            "member/project",
            f"the role {role} is for all of the owner's organisation",
            hint="leave the project out",
            field="project",
        )


def create(tx: Transaction, platform: Platform, actor: Actor, asked: NewMember) -> MemberMade:
    """A role for somebody, who is made known where they are not yet."""
    org = organisation_meant(tx.connection, actor, asked.org)
    authorise(actor, "member.create", org=org.org)
    refuse_closed(org)
    project = project_meant(tx.connection, actor, asked.project) if asked.project else None
    if project is not None and project.org != org.org:
        raise unknown("project", asked.project or "", field="project")
    user, password = add_member(
        tx, platform, actor,
        org=org, word=asked.login, role=asked.role,
        project=project.project if project else None, with_password=asked.password,
        email=asked.email,
    )  # fmt: skip
    return MemberMade(member=_told(tx.connection, org, user), password=password)


def add_member(
    tx: Transaction, platform: Platform, actor: Actor, *,
    org: Organisation, word: str, role: str, project: str | None, with_password: bool,
    email: str | None = None,
) -> tuple[User, str | None]:  # fmt: skip
    """Write the membership, and the user with a password where they are new; the right was checked before."""
    check_role(org, role, project)
    login = login_in(org, word)
    user, password = user_called(tx.connection, login), None
    if user is None:
        user = User(
            user_id=platform.ids(), org=org.org, login=login, kind="person", password=None,
            changed_us=tx.now_us,
        )  # fmt: skip
        add_user(tx.connection, user)
        if with_password:
            password = new_password(platform)
            set_password(tx, platform, user, password)
    if email is not None:
        _expect(tx.connection, user, email.lower())
    state_membership(tx, platform, actor, user, org.org, project, role)
    return user, password


def _expect(connection: Connection, user: User, email: str) -> None:
    """Take the identity provider's word for a member, once it says that this is their address."""
    taken = [each for each in users_known_as(connection, PENDING, email) if each.org == user.org]
    if taken and taken[0].user_id != user.user_id:
        raise conflict(
            "member/email",
            f"{taken[0].login} has that address",
            hint="each member has one of their own",
            field="email",
        )
    change_user(connection, user.user_id, issuer=PENDING, subject=email)


def state_membership(
    tx: Transaction, platform: Platform, actor: Actor, user: User,
    org: str, project: str | None, role: str | None,
) -> None:  # fmt: skip
    """A user's role in an organisation, or (None) its end, as a fact, a row and a line of the trail."""
    value = Membership(user=user.user_id, login=user.login, org=org, project=project, role=role)
    put_membership(tx.connection, value)
    fact = stated(platform, value, subject=user.user_id, at_us=tx.now_us)
    action = "member.create" if role else "member.end"
    detail = f"{user.login}: {role or 'no role'}" + (f" in project {project}" if project else "")
    record(tx, platform, actor, action, org=org, target=user.user_id, detail=detail, facts=(fact,))


def listed(
    platform: Platform, actor: Actor, org: str | None, after: str, limit: int
) -> list[MemberTold]:
    """The members of an organisation by login, after one login."""
    with platform.reading() as connection:
        found = organisation_meant(connection, actor, org)
        authorise(actor, "member.read", org=found.org)
        rows = members_of(connection, found.org)
        users = [
            *users_of(connection, found.org, "person"),
            *users_of(connection, found.org, "machine"),
        ]
        named = sorted((user for user in users if user.login > after), key=lambda user: user.login)
        return [_shown(connection, found, user, rows) for user in named[:limit]]


def _told(connection: Connection, org: Organisation, user: User) -> MemberTold:
    return _shown(connection, org, user, memberships_of(connection, user.user_id))


def _shown(
    connection: Connection, org: Organisation, user: User, rows: list[MemberRow]
) -> MemberTold:
    own = [row for row in rows if row.user_id == user.user_id]
    roles = [role_told(connection, row.org, row.project or None, row.role) for row in own]
    return MemberTold(user=user.user_id, login=user.login, org=org.org, kind=user.kind, roles=roles)


def role_told(connection: Connection, org: str, project: str | None, role: str) -> RoleHeld:
    """A role with the names of what it is for."""
    named = organisation_of(connection, org)
    within = project_of(connection, project) if project else None
    return RoleHeld(
        org=org,
        org_name=named.name if named else org,
        project=project,
        project_name=within.name if within else None,
        role=role,
    )


def _meant(tx: Transaction, actor: Actor, text: str) -> tuple[User, Organisation]:
    """A user by id or login whom the actor may know of."""
    user = user_of(tx.connection, text) or user_called(tx.connection, text)
    org = organisation_of(tx.connection, user.org) if user else None
    if user is None or org is None or not knows(actor, org=org.org):
        raise unknown("member", text)
    return user, org


def end(
    tx: Transaction, platform: Platform, actor: Actor, text: str, project: str | None
) -> MemberTold:
    """Take a member's role in one project, or (None) every role; without any they are signed out everywhere."""
    user, org = _meant(tx, actor, text)
    authorise(actor, "member.change", org=org.org)
    limit = project_meant(tx.connection, actor, project).project if project else None
    rows = memberships_of(tx.connection, user.user_id)
    going = [row for row in rows if limit is None or row.project == limit]
    if not going:
        raise unknown("membership", text)
    _refuse_last_owner(tx.connection, org, going)
    for row in going:
        state_membership(tx, platform, actor, user, row.org, row.project or None, None)
    if len(going) == len(rows):
        end_credentials(tx, user)
    return _told(tx.connection, org, user)


def _refuse_last_owner(connection: Connection, org: Organisation, going: list[MemberRow]) -> None:
    owners = [row for row in members_of(connection, org.org) if row.role == "owner"]
    if owners and {row.user_id for row in owners} <= {row.user_id for row in going}:
        raise conflict(
            "member/last-owner",
            "the owner's organisation keeps at least one owner",
            hint="make somebody else an owner first",
        )


def reset_password(tx: Transaction, platform: Platform, actor: Actor, text: str) -> MemberMade:
    """A new password for a member, shown this once; their sessions and tokens end."""
    user, org = _meant(tx, actor, text)
    authorise(actor, "member.password", org=org.org)
    refuse_closed(org)
    if user.kind != "person":
        raise conflict("member/machine", f"{user.login} is a program", hint="make it another token")
    password = new_password(platform)
    end_credentials(tx, user)
    set_password(tx, platform, user, password)
    record(
        tx, platform, actor, "member.password", org=org.org, target=user.user_id, detail=user.login
    )
    return MemberMade(member=_told(tx.connection, org, user), password=password)


def end_credentials(tx: Transaction, user: User) -> None:
    """Sign a user out everywhere: no session and no token of theirs is worth anything from now on."""
    end_sessions_of(tx.connection, user.user_id)
    revoke_tokens_of(tx.connection, user.user_id, tx.now_us)
