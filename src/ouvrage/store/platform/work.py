"""Jobs, attempts and the files of jobs, as rows.

Decides how they are looked up and kept. Whether a change is right is decided by the services; each change of a state here is
made in the transaction that records why.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, insert, select, update

from ouvrage.model.selling import Placed
from ouvrage.model.work import ENDED, JobSpec, Peaks
from ouvrage.store.platform.json_rows import (
    coded,
    has_code,
    page,
    put,
    text_of,
    value_of,
    values_of,
)
from ouvrage.store.platform.work_tables import attempts, job_files, jobs, shares

# Made once: these are asked several times for every event.
_JOB = select(jobs).where(jobs.c.job == bindparam("id"))
_ATTEMPT = select(attempts).where(attempts.c.attempt == bindparam("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job and how it stands; ``attempts`` ordered so far."""

    job: str
    org: str
    project: str
    user_id: str
    name: str
    offer: str | None
    lease: str | None
    spec: JobSpec
    submitted_us: int
    state: str
    attempts: int
    ended_us: int | None
    code: str | None
    reason: str | None
    not_on: tuple[str, ...]
    not_before_us: int

    @property
    def over(self) -> bool:
        """Whether it has come to its end."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """An attempt and how it stands, with the runner too; ``progress`` is the last that it said, as JSON."""

    attempt: str
    job: str
    org: str
    number: int
    lease: str
    node: str
    placed: Placed
    ordered_us: int
    state: str
    began_us: int | None
    ended_us: int | None
    wall_us: int | None
    exit_code: int | None
    signal: int | None
    outcome: str | None
    cause: str | None
    reason: str | None
    isolation: str | None
    peaks: Peaks | None
    scrub: str | None
    scrub_detail: str | None
    sent_us: int | None
    known_us: int | None
    missing_us: int | None
    stop: str | None
    stop_reason: str | None
    stop_grace_us: int | None
    progress: dict[str, Any] | None
    forgotten: bool

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state == "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file of a job: ``direction`` is ``in`` or ``out``; its size, its hash, and when it came."""

    job: str
    direction: str
    name: str
    bytes: int
    sha256: str
    at_us: int


def put_job(connection: Connection, row: JobRow) -> None:
    """Keep a new job."""
    connection.execute(insert(jobs).values(**job_values(row)))


def job_values(row: JobRow) -> dict[str, Any]:
    """A job's row as its columns."""
    values = {name: getattr(row, name) for name in JobRow.__slots__}
    return {**values, "spec": text_of(row.spec), "not_on": text_of(row.not_on)}


def change_job(connection: Connection, job: str, **values: Any) -> None:
    """Change columns of a job."""
    if "not_on" in values:
        values["not_on"] = text_of(values["not_on"])
    connection.execute(update(jobs).where(jobs.c.job == job).values(**values))


def job_of(connection: Connection, job: str) -> JobRow | None:
    """The job of an id."""
    row = connection.execute(_JOB, {"id": job}).first()
    return None if row is None else job_row(row)


def jobs_called(connection: Connection, text: str) -> list[JobRow]:
    """The jobs of a name or of a short code, newest first."""
    where = coded(jobs.c.job, text)
    named = jobs.c.name == text
    query = select(jobs).where(named if where is None else named | where)
    rows = connection.execute(query.order_by(jobs.c.job.desc()).limit(1000))
    return [job_row(row) for row in rows if row.name == text or has_code(row.job, text)]


def jobs_by_id(connection: Connection, ids: Collection[str]) -> dict[str, JobRow]:
    """Some jobs."""
    if not ids:
        return {}
    query = select(jobs).where(jobs.c.job.in_(sorted(set(ids))))
    return {row.job: job_row(row) for row in connection.execute(query)}


def any_waiting(connection: Connection) -> bool:
    """Whether any job waits."""
    query = select(jobs.c.job).where(jobs.c.state == "waiting").limit(1)
    return connection.execute(query).first() is not None


def count_jobs(connection: Connection, state: str, *, org: str) -> int:
    """How many jobs of an organisation are in a state."""
    query = select(func.count()).select_from(jobs).where(jobs.c.state == state, jobs.c.org == org)
    return connection.execute(query).scalar_one()


def jobs_in(
    connection: Connection, states: Collection[str], limit: int | None = None
) -> list[JobRow]:
    """The jobs in these states, oldest first."""
    query = select(jobs).where(jobs.c.state.in_(sorted(states)))
    query = query.order_by(jobs.c.submitted_us, jobs.c.job).limit(limit)
    return [job_row(row) for row in connection.execute(query)]


def job_counts(
    connection: Connection,
    *,
    orgs: Collection[str] | None,
    projects: Collection[str] | None,
    states: Collection[str],
) -> dict[str, int]:
    """How many jobs of these organisations (None: all) and projects are in each of these states."""
    many = func.count().label("many")
    query = select(jobs.c.state, many).where(*_among(orgs, projects, states))
    return {row.state: row.many for row in connection.execute(query.group_by(jobs.c.state))}


def _among(
    orgs: Collection[str] | None, projects: Collection[str] | None, states: Collection[str] | None
) -> list[ColumnElement[bool]]:
    wanted = ((jobs.c.org, orgs), (jobs.c.project, projects), (jobs.c.state, states))
    return [column.in_(sorted(allowed)) for column, allowed in wanted if allowed is not None]


def job_page(
    connection: Connection,
    *,
    orgs: Collection[str] | None,
    projects: Collection[str] | None = None,
    states: Collection[str] | None = None,
    lease: str | None = None,
    limit: int,
    cursor: str | None,
) -> list[JobRow]:
    """Jobs of these organisations (None: all) and projects, newest first, one more where more follow."""
    query = select(jobs).where(*_among(orgs, projects, states))
    if lease is not None:
        query = query.where(jobs.c.lease == lease)
    found = connection.execute(page(query, jobs.c.job, limit=limit, cursor=cursor))
    return [job_row(row) for row in found]


def job_row(row: Row[Any]) -> JobRow:
    """A job as its row states it."""
    values: dict[str, Any] = dict(row._mapping)
    values |= {"spec": value_of(JobSpec, row.spec), "not_on": values_of(str, row.not_on)}
    return JobRow(**values)


def put_attempt(connection: Connection, row: AttemptRow) -> None:
    """Keep a new attempt."""
    connection.execute(insert(attempts).values(**attempt_values(row)))


def attempt_values(row: AttemptRow) -> dict[str, Any]:
    """An attempt's row as its columns."""
    values = {name: getattr(row, name) for name in AttemptRow.__slots__}
    return {
        **values,
        "placed": text_of(row.placed),
        "peaks": None if row.peaks is None else text_of(row.peaks),
        "progress": None if row.progress is None else json.dumps(row.progress),
        "forgotten": int(row.forgotten),
    }


def change_attempt(connection: Connection, attempt: str, **values: Any) -> None:
    """Change columns of an attempt."""
    if values.get("peaks") is not None:
        values["peaks"] = text_of(values["peaks"])
    if values.get("progress") is not None:
        values["progress"] = json.dumps(values["progress"])
    connection.execute(update(attempts).where(attempts.c.attempt == attempt).values(**values))


def attempt_of(connection: Connection, attempt: str) -> AttemptRow | None:
    """The attempt of an id."""
    row = connection.execute(_ATTEMPT, {"id": attempt}).first()
    return None if row is None else attempt_row(row)


def attempts_of(connection: Connection, job: str) -> list[AttemptRow]:
    """The attempts of a job, in their order."""
    query = select(attempts).where(attempts.c.job == job).order_by(attempts.c.number)
    return [attempt_row(row) for row in connection.execute(query)]


def last_attempts(connection: Connection, of: Collection[str]) -> dict[str, AttemptRow]:
    """The latest attempt of each of some jobs that has one."""
    if not of:
        return {}
    query = select(attempts).where(attempts.c.job.in_(sorted(set(of)))).order_by(attempts.c.number)
    return {row.job: attempt_row(row) for row in connection.execute(query)}


def open_attempts(connection: Connection, *, lease: str | None = None) -> list[AttemptRow]:
    """The attempts that have not ended, oldest first."""
    query = select(attempts).where(attempts.c.state != "ended").order_by(attempts.c.attempt)
    if lease is not None:
        query = query.where(attempts.c.lease == lease)
    return [attempt_row(row) for row in connection.execute(query)]


def ended_since(connection: Connection, node: str, since_us: int) -> list[AttemptRow]:
    """The attempts on a node that ended at a moment or after it."""
    mine = (attempts.c.node == node) & (attempts.c.ended_us >= since_us)
    return [attempt_row(row) for row in connection.execute(select(attempts).where(mine))]


def attempts_in(connection: Connection, lease: str) -> list[AttemptRow]:
    """The attempts that ran, or run, in a lease."""
    query = select(attempts).where(attempts.c.lease == lease).order_by(attempts.c.attempt)
    return [attempt_row(row) for row in connection.execute(query)]


def node_attempts(connection: Connection, node: str) -> dict[str, AttemptRow]:
    """The attempts of a node that its runner may still know, by id."""
    query = select(attempts).where(attempts.c.node == node, attempts.c.forgotten == 0)
    found = connection.execute(query.order_by(attempts.c.attempt))
    return {row.attempt: attempt_row(row) for row in found}


def attempt_row(row: Row[Any]) -> AttemptRow:
    """An attempt as its row states it."""
    values: dict[str, Any] = dict(row._mapping)
    values |= {
        "placed": value_of(Placed, row.placed),
        "peaks": None if row.peaks is None else value_of(Peaks, row.peaks),
        "progress": None if row.progress is None else json.loads(row.progress),
        "forgotten": bool(row.forgotten),
    }
    return AttemptRow(**values)


def put_file(connection: Connection, row: FileRow) -> None:
    """Keep what is known of a file of a job; a file of the same name takes its place."""
    put(connection, job_files, {name: getattr(row, name) for name in FileRow.__slots__})


def files_of(connection: Connection, of: Collection[str]) -> list[FileRow]:
    """The files of some jobs."""
    if not of:
        return []
    query = select(job_files).where(job_files.c.job.in_(sorted(set(of))))
    query = query.order_by(job_files.c.direction, job_files.c.name)
    return [FileRow(**row._mapping) for row in connection.execute(query)]


def share_of(connection: Connection, project: str) -> tuple[int, int]:
    """What a project has used and the moment for which that is counted; nothing at 0 where it has not."""
    row = connection.execute(select(shares).where(shares.c.project == project)).first()
    return (0, 0) if row is None else (row.used_us, row.at_us)


def all_shares(connection: Connection) -> dict[str, tuple[int, int]]:
    """What each project has used, and the moment for which that is counted."""
    return {row.project: (row.used_us, row.at_us) for row in connection.execute(select(shares))}


def put_share(connection: Connection, project: str, used_us: int, at_us: int) -> None:
    """Keep what a project has used."""
    put(connection, shares, {"project": project, "used_us": used_us, "at_us": at_us})
