"""Projects: where an organisation's work and budgets are kept apart.

Decides that ``trusted`` (work without a sandbox) is for projects of the owner's own organisation alone, and that only the owner
sets it or a project's weight in the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ouvrage.model.tenancy import Organisation, Project
from ouvrage.server.authorise import authorise, is_owner_side, visible_orgs
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, may_not, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.naming import (
    organisation_meant,
    project_meant,
    refuse_closed,
    refuse_id_as_name,
)
from ouvrage.store.platform.tenancy import (
    list_projects,
    organisation_of,
    projects_called,
    put_project,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.api import ChangeProject, NewProject, ProjectTold


def told(connection: Connection, project: Project) -> ProjectTold:
    """A project as it is shown."""
    org = organisation_of(connection, project.org)
    return ProjectTold(
        project=project.project,
        org=project.org,
        org_name=org.name if org else project.org,
        name=project.name,
        weight=project.weight,
        trusted=project.trusted,
        closed=project.closed,
    )


def listed(
    platform: Platform, actor: Actor, org: str | None, after: str, limit: int
) -> list[ProjectTold]:
    """The projects that somebody may see, by id, after one id; of one organisation where it is named."""
    with platform.reading() as connection:
        if org is not None:
            orgs: Sequence[str] | frozenset[str] | None = [
                organisation_meant(connection, actor, org).org
            ]
        else:
            orgs = visible_orgs(actor)
        within = _within(actor)
        found = list_projects(connection, orgs=orgs, within=within, after=after, limit=limit)
        return [told(connection, project) for project in found]


def _within(actor: Actor) -> list[str] | None:
    """The projects that an actor's roles are limited to; None where one of them is not."""
    if is_owner_side(actor) or any(held.project is None for held in actor.memberships):
        return None
    return [held.project for held in actor.memberships if held.project]


def one(platform: Platform, actor: Actor, name: str) -> ProjectTold:
    """One project by id or name."""
    with platform.reading() as connection:
        return told(connection, project_meant(connection, actor, name))


def create(tx: Transaction, platform: Platform, actor: Actor, asked: NewProject) -> ProjectTold:
    """A new project of an organisation."""
    org = organisation_meant(tx.connection, actor, asked.org)
    authorise(actor, "project.create", org=org.org)
    refuse_closed(org)
    refuse_id_as_name(asked.name, "name")
    _check_owners_words(actor, org, asked.weight if asked.weight != "1" else None, asked.trusted)
    if projects_called(tx.connection, asked.name, orgs=[org.org]):
        raise conflict(
            "project/exists",
            f"{org.name} has a project {asked.name} already",
            hint="choose another name",
            field="name",
        )
    project = Project(
        project=platform.ids(), org=org.org, name=asked.name, weight=asked.weight,
        trusted=asked.trusted, closed=False,
    )  # fmt: skip
    _state(tx, platform, actor, "project.create", project)
    return told(tx.connection, project)


def change(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: ChangeProject
) -> ProjectTold:
    """What is said of a project from now on."""
    project = project_meant(tx.connection, actor, name)
    authorise(actor, "project.change", org=project.org, project=project.project)
    org = organisation_of(tx.connection, project.org)
    assert org is not None
    _check_owners_words(actor, org, asked.weight, bool(asked.trusted))
    new = replace(
        project,
        weight=asked.weight or project.weight,
        trusted=project.trusted if asked.trusted is None else asked.trusted,
        closed=project.closed if asked.closed is None else asked.closed,
    )
    _state(tx, platform, actor, "project.change", new)
    return told(tx.connection, new)


def _check_owners_words(actor: Actor, org: Organisation, weight: str | None, trusted: bool) -> None:
    if weight is not None and not is_owner_side(actor):
        raise may_not("set a project's weight in the queue", ("owner",))
    if trusted and org.side != "owner":
        raise unreadable(
            "project/trusted",
            "only a project of the owner's own organisation can be trusted with work outside a sandbox",
            hint="leave it out",
            field="trusted",
        )


def _state(
    tx: Transaction, platform: Platform, actor: Actor, action: str, project: Project
) -> None:
    put_project(tx.connection, project)
    fact = stated(platform, project, subject=project.project, at_us=tx.now_us)
    detail = f"{project.name}, weight {project.weight}"
    detail += ", trusted" * project.trusted + ", closed" * project.closed
    record(
        tx, platform, actor, action,
        org=project.org, target=project.project, detail=detail, facts=(fact,),
    )  # fmt: skip
