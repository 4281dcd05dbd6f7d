"""Who may do what: one table from action to roles, and the one function that reads it.

Decides the rights of every role. A role of the owner's side reaches into every organisation, since the owner answers for
the machines; a tenant's role reaches its own organisation, or the one project it was given for. A token's scopes only ever
take away. Whoever may not even know of an organisation is told that there is none. The matrix of roles and addresses is
made from this table and tested whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.model.tenancy import OWNER_ROLES, ROLES, TENANT_ROLES
from ouvrage.server.context import Actor, Held
from ouvrage.server.errors import may_not, unknown

AREAS = ("work", "money", "machines", "people")
SCOPES = ("all", "read", *AREAS)
"""What a token may be limited to: everything, reading everything, or reading and writing in one area."""

OWNER = ("owner",)
RUNS = ("owner", "operator")
"""Who keeps the machines running."""
COUNTS = ("owner", "finance")
"""Who keeps the owner's money."""
MANAGES = ("owner", "tenant-admin")
"""Who manages an organisation: its people, projects and budgets."""
WORKS = ("owner", "operator", *TENANT_ROLES)
"""Who submits work and looks after it."""
PAYS = ("owner", "finance", "tenant-admin")
"""Who sees and settles what an organisation owes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Which ``roles`` may do it, the ``area`` that a token's scopes must include (None: any token), and
    whether it only ``reads``."""

    roles: tuple[str, ...]
    area: str | None
    reads: bool = False


def _reads(roles: tuple[str, ...], area: str | None) -> Action:
    return Action(roles=roles, area=area, reads=True)


def _writes(roles: tuple[str, ...], area: str) -> Action:
    return Action(roles=roles, area=area)


ACTIONS: dict[str, Action] = {
    "organisation.read": _reads(ROLES, None),
    "organisation.create": _writes(OWNER, "people"),
    "organisation.change": _writes(COUNTS, "money"),
    "organisation.close": _writes(OWNER, "people"),
    "project.read": _reads(ROLES, None),
    "project.create": _writes(MANAGES, "people"),
    "project.change": _writes(MANAGES, "people"),
    "member.read": _reads(("owner", "operator", "finance", "tenant-admin"), "people"),
    "member.create": _writes(MANAGES, "people"),
    "member.change": _writes(MANAGES, "people"),
    "member.password": _writes(MANAGES, "people"),
    "token.read": _reads(MANAGES, "people"),
    "token.create": _writes(MANAGES, "people"),
    "token.revoke": _writes(MANAGES, "people"),
    "webhook.read": _reads(MANAGES, "people"),
    "webhook.change": _writes(MANAGES, "people"),
    "audit.read": _reads(("owner", "tenant-admin"), "people"),
    "node.read": _reads(RUNS, "machines"),
    "node.enrol": _writes(RUNS, "machines"),
    "node.change": _writes(RUNS, "machines"),
    "offer.read": _reads(ROLES, "work"),
    "offer.create": _writes(OWNER, "machines"),
    "offer.withdraw": _writes(OWNER, "machines"),
    "lease.read": _reads(ROLES, "work"),
    "lease.create": _writes(WORKS, "work"),
    "lease.release": _writes(WORKS, "work"),
    "job.read": _reads(WORKS, "work"),
    "job.submit": _writes(WORKS, "work"),
    "job.change": _writes(WORKS, "work"),
    "service.use": _writes(TENANT_ROLES, "work"),
    "job.enter": _writes(TENANT_ROLES, "work"),
    "run.read": _reads(WORKS, "work"),
    "run.push": _writes(WORKS, "work"),
    "usage.read": _reads(ROLES, "money"),
    "payment.read": _reads(PAYS, "money"),
    "payment.create": _writes(COUNTS, "money"),
    "budget.read": _reads((*PAYS, "tenant-user"), "money"),
    "budget.change": _writes(MANAGES, "money"),
    "invoice.read": _reads(PAYS, "money"),
    "invoice.create": _writes(COUNTS, "money"),
    "platform.read": _reads(OWNER_ROLES, "machines"),
}
"""Every action there is. An address names its action; ``SELF`` actions concern the asker alone and need no role."""

SELF = frozenset({"me.read", "me.change", "me.login", "me.logout", "me.token", "me.key"})
"""Open to everybody who is known, about themselves."""
PUBLIC = "public"
"""Open to anybody at all."""
NODE = "node"
"""Open to a node with its own key."""
NODES_TOO = frozenset({"run.push"})
"""Open to members by their roles and to a node with its own key, which may send what is its own."""


def scope_includes(actor: Actor, action: Action) -> bool:
    """Whether the asker's token was made for such an action."""
    if actor.scopes is None or "all" in actor.scopes or action.area is None:
        return True
    return action.area in actor.scopes or (action.reads and "read" in actor.scopes)


def may(actor: Actor, action: str, *, org: str | None, project: str | None = None) -> bool:
    """Whether somebody may do something in an organisation (None: of the platform itself) and project."""
    if actor.kind == "server":
        return True
    rule = ACTIONS[action]
    if actor.kind != "user" or not scope_includes(actor, rule):
        return False
    return any(
        held.role in rule.roles and _reaches(held, org, project) for held in actor.memberships
    )


def authorise(actor: Actor, action: str, *, org: str | None, project: str | None = None) -> None:
    """Raise ``Refused`` unless ``may``: 404 where the asker must not know of the organisation or project, else 403."""
    if may(actor, action, org=org, project=project):
        return
    if org is not None and not knows(actor, org=org, project=project):
        raise unknown("organisation" if project is None else "project")
    raise may_not(action, ACTIONS[action].roles)


def authorise_inside(actor: Actor, action: str, *, org: str, project: str) -> None:
    """``authorise`` for what reaches into running work: whoever owns the machines stays outside of a tenant's.

    Their own organisation's work its owner and operators reach as a tenant does theirs.
    """
    own = any(held.org == org and held.role in RUNS for held in actor.memberships)
    if not (own and scope_includes(actor, ACTIONS[action])):
        authorise(actor, action, org=org, project=project)


def knows(actor: Actor, *, org: str, project: str | None = None) -> bool:
    """Whether somebody may know that an organisation, or a project of it, exists."""
    return is_owner_side(actor) or any(
        held.org == org and (project is None or held.project in (None, project))
        for held in actor.memberships
    )


def _reaches(held: Held, org: str | None, project: str | None) -> bool:
    """A role for one project reaches nothing that belongs to the whole organisation."""
    if held.role in OWNER_ROLES or org is None:
        return True
    return held.org == org and (held.project is None or held.project == project)


def is_owner_side(actor: Actor) -> bool:
    """Whether somebody belongs to the owner of the machines."""
    return actor.kind == "server" or any(held.role in OWNER_ROLES for held in actor.memberships)


def visible_orgs(actor: Actor) -> frozenset[str] | None:
    """The organisations that somebody may see; None: all."""
    return None if is_owner_side(actor) else frozenset(held.org for held in actor.memberships)


def visible_projects(actor: Actor, org: str) -> frozenset[str] | None:
    """The projects of an organisation that somebody may see; None: all of them."""
    held = [each for each in actor.memberships if each.org == org]
    if is_owner_side(actor) or any(each.project is None for each in held):
        return None
    return frozenset(each.project for each in held if each.project)
