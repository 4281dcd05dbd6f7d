"""Estimates before a job is submitted, from the organisation's own finished runs of the same job.

Decides which runs those are (attempts that ended well in projects that the asker may see, the latest hundred) and that a run in a lease for a term counts by its time, on the
configuration of that lease. The estimate itself is ``books.dues.estimate``'s.
"""

from __future__ import annotations

from ouvrage.base.grades import Grade
from ouvrage.books.dues.estimate import EarlierRun, estimate
from ouvrage.server.authorise import authorise, visible_projects
from ouvrage.server.context import Actor, Platform
from ouvrage.server.services.counted import counted
from ouvrage.server.services.naming import project_meant
from ouvrage.server.services.offers import seen
from ouvrage.store.platform.dues import earlier_attempts, leases_called
from ouvrage.store.platform.selling import offers_by_id
from ouvrage.store.platform.work import AttemptRow, jobs_by_id
from ouvrage.store.transaction import Connection
from ouvrage.wire.dues import EstimateTold

MOST = 100


def estimated(
    platform: Platform,
    actor: Actor,
    *,
    project: str,
    offer: str,
    name: str,
    unit: str | None,
    limit_us: int | None,
) -> EstimateTold:
    """What a job of this name would cost on an offer."""
    with platform.reading() as connection:
        meant = project_meant(connection, actor, project)
        authorise(actor, "job.read", org=meant.org, project=meant.project)
        terms = seen(connection, actor, offer).terms
        within = visible_projects(actor, meant.org)
        rows = earlier_attempts(connection, meant.org, within, name, MOST)
        runs = _runs(platform, connection, rows)
        found = estimate(name, unit, terms, runs, platform.clock(), limit_us)
    return EstimateTold.model_validate(found.as_json())


def _runs(platform: Platform, connection: Connection, rows: list[AttemptRow]) -> list[EarlierRun]:
    jobs = jobs_by_id(connection, [row.job for row in rows])
    leases = {row.lease: row for row in leases_called(connection, [each.lease for each in rows])}
    offers = offers_by_id(connection, {row.offer for row in leases.values()})
    units = counted(platform.store, connection, [row.attempt for row in rows])
    found: list[EarlierRun] = []
    for row in rows:
        lease, unit = leases.get(row.lease), units.get(row.attempt)
        if lease is not None and row.wall_us is not None:
            found.append(
                EarlierRun(
                    attempt=row.attempt, name=jobs[row.job].name, offer=offers[lease.offer].terms,
                    us=row.wall_us, unit=unit.unit if unit else None,
                    finished=unit.finished if unit else None, grade=unit.grade if unit else Grade.METERED,
                )
            )  # fmt: skip
    return found
