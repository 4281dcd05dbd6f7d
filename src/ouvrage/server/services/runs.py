"""Runs that were received, for those who may see them: the members of their project, and whoever answers for the machines.

Decides nothing about figures: a run's report is the one that ``ouvrage report`` makes, from the same facts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ouvrage.base.ids import code_of
from ouvrage.metering.run_view import run_views
from ouvrage.pricing.report import report_json
from ouvrage.pricing.unit_cost import sheet_of
from ouvrage.server.authorise import authorise, knows, visible_orgs
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unknown
from ouvrage.server.services.naming import project_meant
from ouvrage.server.services.scopes import projects_seen
from ouvrage.store.platform.received import (
    ReceivedRow,
    received_coded,
    received_of,
    received_page,
    starts_of,
)
from ouvrage.store.platform.tenancy import organisation_of, project_of
from ouvrage.store.transaction import Connection
from ouvrage.wire.facts import RunShown, RunTold

_ID = re.compile(r"[0-9a-f]{32}")


def listed(
    platform: Platform, actor: Actor, *, project: str | None, limit: int, cursor: str | None
) -> list[RunTold]:
    """The runs that somebody may see, newest first, one more than asked for where more follow."""
    authorise(actor, "run.read", org=None)
    with platform.reading() as connection:
        projects = projects_seen(actor)
        if project is not None:
            projects = frozenset({project_meant(connection, actor, project).project})
        rows = received_page(
            connection, orgs=visible_orgs(actor), projects=projects, limit=limit, cursor=cursor
        )
        return _told(connection, rows)


def shown(platform: Platform, actor: Actor, name: str) -> RunShown:
    """A run by id or code, with its report."""
    with platform.reading() as connection:
        row = _meant(connection, actor, name)
        authorise(actor, "run.read", org=row.org, project=row.project)
        (told,) = _told(connection, [row])
    records = platform.store.records(subject=row.run)
    view = run_views(records).get(row.run)
    if view is None:
        return RunShown(run=told, report=None)
    sheet = sheet_of(view, max(entry.recorded_at for entry in records))
    return RunShown(run=told, report=report_json(view, sheet))


def _meant(connection: Connection, actor: Actor, name: str) -> ReceivedRow:
    if _ID.fullmatch(name):
        found = received_of(connection, name)
        rows = [found] if found else []
    else:
        rows = received_coded(connection, name)
    seen = [row for row in rows if knows(actor, org=row.org, project=row.project)]
    if not seen:
        raise unknown("run", name)
    if len(seen) > 1:
        raise conflict(
            "run/which",
            f"{len(seen)} runs have codes that begin with {name}",
            hint="give more of it, or the id",
        )
    return seen[0]


def _told(connection: Connection, rows: Sequence[ReceivedRow]) -> list[RunTold]:
    starts = starts_of(connection, [row.run for row in rows])
    orgs = {row.org: organisation_of(connection, row.org) for row in rows}
    projects = {row.project: project_of(connection, row.project) for row in rows}
    found: list[RunTold] = []
    for row in rows:
        org, project, start = orgs[row.org], projects[row.project], starts.get(row.run)
        assert org is not None
        assert project is not None
        found.append(
            RunTold(
                run=row.run,
                code=code_of(row.run),
                org=row.org,
                org_name=org.name,
                project=row.project,
                project_name=project.name,
                attempt=row.attempt,
                received_us=row.received_us,
                label=start.label if start else None,
                started_us=start.started_us if start else None,
            )
        )
    return found
