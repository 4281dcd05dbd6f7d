"""``/v1/jobs``: work submitted, watched, cancelled, tried again, explained.

Decides only the form of the addresses. What a job says and leaves is in ``routes/job_output``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ouvrage.model.work import JOB_STATES
from ouvrage.server.access import EngineDep, OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import jobs
from ouvrage.server.services.waking import after_change, after_stopping
from ouvrage.wire.api import Listed
from ouvrage.wire.work import Explained, JobShown, JobTold, NewJob, Why

router = APIRouter(tags=["jobs"])

State = Annotated[
    list[Annotated[str, Query(pattern=f"^({'|'.join(JOB_STATES)})$")]] | None,
    Query(description="Those in any of these states.", max_length=len(JOB_STATES)),
]
Narrowed = Annotated[str | None, Query(max_length=200)]


@router.get("/v1/jobs", **acts("job.read"))
def listed(
    platform: PlatformDep,
    actor: UserDep,
    page: PageDep,
    state: State = None,
    project: Narrowed = None,
    lease: Narrowed = None,
) -> Listed[JobTold]:
    """Jobs that the asker may see, newest first."""
    rows = jobs.listed(
        platform,
        actor,
        states=state,
        project=project,
        lease=lease,
        cursor=page.after or None,
        limit=page.limit,
    )
    items, following = cut(rows, page, lambda row: row.job)
    return Listed[JobTold](items=list(items), next=following)


@router.post("/v1/jobs", **acts("job.submit", status=201))
def submit(once: OnceDep, engine: EngineDep, asked: NewJob) -> JobTold:
    """Submit a job to an offer or into a lease; it waits for its inputs where it names any."""
    told = once.do(
        JobTold, asked, lambda tx: jobs.submit(tx, once.platform, engine, once.actor, asked)
    )
    after_change(once.platform)
    return told


@router.get("/v1/jobs/{job}", **acts("job.read"))
def shown(request: Request, platform: PlatformDep, actor: UserDep, job: str) -> JobShown:
    """One job by name (the newest), code or id: what was asked for and every attempt."""
    return jobs.shown(platform, request.app.state.uses, actor, job)


@router.post("/v1/jobs/{job}/cancel", **acts("job.change"))
def cancel(once: OnceDep, engine: EngineDep, job: str, asked: Why) -> JobTold:
    """End a job: at once where it waits, after its grace where it runs."""
    told = once.do(
        JobTold, asked, lambda tx: jobs.cancel(tx, once.platform, engine, once.actor, job, asked)
    )
    after_stopping(once.platform, job=told.job)
    return told


@router.post("/v1/jobs/{job}/retry", **acts("job.submit", status=201))
def retry(once: OnceDep, engine: EngineDep, job: str) -> JobTold:
    """Submit a job that has ended once more, as a new one."""
    told = once.do(JobTold, None, lambda tx: jobs.retry(tx, once.platform, engine, once.actor, job))
    after_change(once.platform)
    return told


@router.get("/v1/jobs/{job}/explain", **acts("job.read"))
def explain(platform: PlatformDep, engine: EngineDep, actor: UserDep, job: str) -> Explained:
    """Why a job waits, or why it ended so, as data."""
    return jobs.explained(platform, engine, actor, job)
