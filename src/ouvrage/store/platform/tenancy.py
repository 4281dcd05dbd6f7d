"""Rows of organisations, projects and memberships, which the facts of the same names stand behind.

Writes a row for a stated noun, and reads them by id or name. The same function makes the row from a fact when ``ouvrage
verify`` compares the two, so that there is one idea of what a row is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, delete, insert, select, update

from ouvrage.model.tenancy import Membership, Organisation, Project
from ouvrage.store.platform.people import MemberRow
from ouvrage.store.platform.tenancy_tables import memberships, organisations, projects


def row_of(value: Organisation | Project) -> dict[str, Any]:
    """The row of an organisation or project as stated."""
    return {name: int(v) if isinstance(v, bool) else v for name, v in asdict(value).items()}


def member_row(value: Membership) -> dict[str, Any]:
    """The row of a membership that holds."""
    assert value.role is not None
    row = MemberRow(
        user_id=value.user,
        org=value.org,
        project=value.project or "",
        login=value.login,
        role=value.role,
    )
    return asdict(row)


def _organisation(row: Row[Any]) -> Organisation:
    values: dict[str, Any] = dict(row._mapping)
    values["closed"] = bool(values["closed"])
    return Organisation(**values)


def _project(row: Row[Any]) -> Project:
    values: dict[str, Any] = dict(row._mapping)
    for name in ("closed", "trusted"):
        values[name] = bool(values[name])
    return Project(**values)


def put_organisation(connection: Connection, value: Organisation) -> None:
    """Make the row what is stated now."""
    _put(connection, organisations, "org", row_of(value))


def put_project(connection: Connection, value: Project) -> None:
    """Make the row what is stated now."""
    _put(connection, projects, "project", row_of(value))


def _put(connection: Connection, table: Table, key: str, row: dict[str, Any]) -> None:
    done = connection.execute(update(table).where(table.c[key] == row[key]).values(**row))
    if not done.rowcount:
        connection.execute(insert(table).values(**row))


def put_membership(connection: Connection, value: Membership) -> None:
    """Make the row what is stated now; a role of None removes it."""
    project = value.project or ""
    where = and_(
        memberships.c.user_id == value.user,
        memberships.c.org == value.org,
        memberships.c.project == project,
    )
    connection.execute(delete(memberships).where(where))
    if value.role is not None:
        connection.execute(insert(memberships).values(**member_row(value)))


def organisation_of(connection: Connection, name: str) -> Organisation | None:
    """An organisation by its id or name."""
    where = (organisations.c.org == name) | (organisations.c.name == name)
    row = connection.execute(select(organisations).where(where)).first()
    return _organisation(row) if row else None


def owners_organisation(connection: Connection) -> Organisation | None:
    """The organisation that owns the machines; None before the first start."""
    row = connection.execute(select(organisations).where(organisations.c.side == "owner")).first()
    return _organisation(row) if row else None


def list_organisations(
    connection: Connection, *, within: Collection[str] | None, after: str, limit: int
) -> list[Organisation]:
    """Organisations by id, those ``within`` alone (None: all), after one id."""
    query = select(organisations).where(organisations.c.org > after)
    if within is not None:
        query = query.where(organisations.c.org.in_(within))
    rows = connection.execute(query.order_by(organisations.c.org).limit(limit))
    return [_organisation(row) for row in rows]


def project_of(connection: Connection, project: str) -> Project | None:
    """A project by its id."""
    row = connection.execute(select(projects).where(projects.c.project == project)).first()
    return _project(row) if row else None


def projects_called(
    connection: Connection, name: str, *, orgs: Collection[str] | None
) -> list[Project]:
    """The projects of some organisations (None: of all) that have a name."""
    query = select(projects).where(projects.c.name == name)
    if orgs is not None:
        query = query.where(projects.c.org.in_(orgs))
    return [_project(row) for row in connection.execute(query.order_by(projects.c.project))]


def list_projects(
    connection: Connection,
    *,
    orgs: Collection[str] | None,
    within: Collection[str] | None,
    after: str,
    limit: int,
) -> list[Project]:
    """Projects by id, of some organisations and among some ids (None: all), after one id."""
    query = select(projects).where(projects.c.project > after)
    if orgs is not None:
        query = query.where(projects.c.org.in_(orgs))
    if within is not None:
        query = query.where(projects.c.project.in_(within))
    rows = connection.execute(query.order_by(projects.c.project).limit(limit))
    return [_project(row) for row in rows]


def members_of(connection: Connection, org: str) -> list[MemberRow]:
    """All memberships of an organisation, by login and project."""
    query = select(memberships).where(memberships.c.org == org)
    rows = connection.execute(query.order_by(memberships.c.login, memberships.c.project))
    return [MemberRow(**dict(row._mapping)) for row in rows]
