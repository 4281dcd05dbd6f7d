"""What is asked of a Slurm, as rows: from the intent to the moment at which Slurm is done with it.

Decides how they are kept and looked up. The intent is a row before anybody asks Slurm; what may happen to a row is decided by the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from ouvrage.store.platform.slurm_tables import slurm_jobs
from ouvrage.store.platform.work import JobRow, job_row
from ouvrage.store.platform.work_tables import jobs

STATES = ("wanted", "asked", "queued", "placed", "over")
_LOOKED_AT = 20
_BRINGING = (slurm_jobs.c.state.in_(STATES[:3]), slurm_jobs.c.withdrawn.is_(None))
"""The rows of which a place may come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJobRow:
    """One place that an attempt of ``job`` is to have. ``state`` is one of ``STATES``.

    ``wanted``: nobody has asked Slurm yet. ``asked``: somebody may have, and the answer is not known. ``queued``: Slurm has it, by ``number``.
    ``placed``: it has a node, and the attempt was ordered there. ``over``: Slurm has nothing of it any more. ``priority`` is the job's.
    """

    attempt: str
    job: str
    state: str
    made_us: int
    number: int | None = None
    asked_us: int | None = None
    word: str | None = None
    reason: str | None = None
    node: str | None = None
    withdrawn: str | None = None
    priority: int = 0


def put_slurm_job(connection: Connection, row: SlurmJobRow) -> None:
    """Keep a new intent."""
    values = {name: getattr(row, name) for name in SlurmJobRow.__slots__}
    connection.execute(insert(slurm_jobs).values(**values))


def change_slurm_job(connection: Connection, attempt: str, **values: Any) -> None:
    """Change columns of a row."""
    mine = slurm_jobs.c.attempt == attempt
    connection.execute(update(slurm_jobs).where(mine).values(**values))


def open_slurm_jobs(connection: Connection, job: str | None = None) -> list[SlurmJobRow]:
    """The rows that are not over, oldest first; of one job, where it is named."""
    query = select(slurm_jobs).where(slurm_jobs.c.state.in_(STATES[:-1]))
    if job is not None:
        query = query.where(slurm_jobs.c.job == job)
    found = connection.execute(query.order_by(slurm_jobs.c.attempt))
    return [SlurmJobRow(**row._mapping) for row in found]


def unasked_jobs(connection: Connection) -> list[JobRow]:
    """The jobs that wait for an offer's place and have no row that may bring them one, oldest first."""
    asked = select(slurm_jobs.c.job).where(*_BRINGING)
    query = select(jobs).where(
        jobs.c.state == "waiting", jobs.c.lease.is_(None), jobs.c.job.not_in(asked)
    )
    return [
        job_row(row) for row in connection.execute(query.order_by(jobs.c.submitted_us, jobs.c.job))
    ]


def needless_rows(connection: Connection) -> list[SlurmJobRow]:
    """The rows that would bring a place to a job that waits no more, oldest first."""
    waiting = select(jobs.c.job).where(jobs.c.state == "waiting")
    query = select(slurm_jobs).where(*_BRINGING, slurm_jobs.c.job.not_in(waiting))
    return [
        SlurmJobRow(**row._mapping)
        for row in connection.execute(query.order_by(slurm_jobs.c.attempt))
    ]


def slurm_job_of(connection: Connection, attempt: str) -> SlurmJobRow | None:
    """The row of an attempt, None where Slurm was never asked for it."""
    row = connection.execute(select(slurm_jobs).where(slurm_jobs.c.attempt == attempt)).first()
    return None if row is None else SlurmJobRow(**row._mapping)


def rows_before(connection: Connection, row: SlurmJobRow, job: JobRow) -> list[SlurmJobRow]:
    """Rows whose jobs have a higher priority, wait too, and are of the same project and offer; the highest first, and of equals the oldest."""
    query = (
        select(slurm_jobs)
        .join(jobs, jobs.c.job == slurm_jobs.c.job)
        .where(
            *_BRINGING,
            slurm_jobs.c.priority > row.priority,
            jobs.c.state == "waiting",
            jobs.c.project == job.project,
            jobs.c.offer == job.offer,
        )
        .order_by(slurm_jobs.c.priority.desc(), jobs.c.submitted_us, jobs.c.job)
        .limit(_LOOKED_AT)
    )
    return [SlurmJobRow(**found._mapping) for found in connection.execute(query)]
