"""Which organisation or project a text means, for somebody who may see it.

Decides that an id or a name will do, that a project may be named ``organisation/project``, and that what must not be seen is
told to be unknown, just as what is not there.
"""

from __future__ import annotations

import re

from ouvrage.model.tenancy import Organisation, Project
from ouvrage.server.authorise import knows, visible_orgs
from ouvrage.server.context import Actor
from ouvrage.server.errors import Refused, conflict, unknown, unreadable
from ouvrage.store.platform.tenancy import (
    organisation_of,
    owners_organisation,
    project_of,
    projects_called,
)
from ouvrage.store.transaction import Connection

_ID = re.compile(r"[0-9a-f]{32}")


def organisation_meant(connection: Connection, actor: Actor, text: str | None) -> Organisation:
    """The organisation by id or name; None: the only one that the actor belongs to. 404 where there is none to see."""
    found = organisation_of(connection, text) if text is not None else _own(connection, actor)
    if found is None or not knows(actor, org=found.org):
        raise unknown("organisation", text or "", field="org")
    return found


def _own(connection: Connection, actor: Actor) -> Organisation | None:
    orgs = sorted({held.org for held in actor.memberships})
    if len(orgs) > 1:
        raise conflict(
            "organisation/which",
            f"you belong to {len(orgs)} organisations",
            hint="name one: --org NAME",
            field="org",
        )
    return organisation_of(connection, orgs[0]) if orgs else None


def project_meant(connection: Connection, actor: Actor, text: str) -> Project:
    """The project by id, ``organisation/name``, or a name that only one of the visible projects has.

    Raises ``Refused`` 404 where there is none to see, 409 where there are several.
    """
    found = [each for each in _candidates(connection, actor, text) if _seen(actor, each)]
    if len(found) > 1:
        own = {held.org for held in actor.memberships}
        found = [each for each in found if each.org in own] or found
    if len(found) > 1:
        raise conflict(
            "project/which",
            f"{len(found)} projects are called {text!r}",
            hint="name its organisation too: organisation/project",
            field="project",
        )
    if not found:
        raise unknown("project", text, field="project")
    return found[0]


def _seen(actor: Actor, project: Project) -> bool:
    return knows(actor, org=project.org, project=project.project)


def _candidates(connection: Connection, actor: Actor, text: str) -> list[Project]:
    if _ID.fullmatch(text):
        found = project_of(connection, text)
        return [found] if found else []
    org_name, slash, name = text.rpartition("/")
    if not slash:
        return projects_called(connection, name, orgs=visible_orgs(actor))
    org = organisation_of(connection, org_name)
    return projects_called(connection, name, orgs=[org.org]) if org else []


def owner(connection: Connection) -> Organisation:
    """The organisation that owns the machines, which the first start makes."""
    found = owners_organisation(connection)
    assert found is not None
    return found


def refuse_id_as_name(name: str, field: str) -> None:
    """Raise ``Refused`` for a name that would be taken for an id."""
    if _ID.fullmatch(name):
        raise unreadable(
            "name/is-an-id",
            f"{name} looks like an id",
            hint="choose a name that people can say",
            field=field,
        )


def refuse_closed(org: Organisation, project: Project | None = None) -> None:
    """Raise ``Refused`` 409 where an organisation, or a project in it, is closed."""
    if org.closed:
        raise _closed("organisation", org.name)
    if project is not None and project.closed:
        raise _closed("project", project.name)


def _closed(what: str, name: str) -> Refused:
    return conflict(
        f"{what}/closed",
        f"the {what} {name} is closed",
        hint=f"open it again, or name another {what}",
    )
