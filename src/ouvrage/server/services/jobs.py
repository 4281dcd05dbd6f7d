"""Jobs: submitting, seeing, cancelling and trying again.

Decides what a submitted job may ask for, against its offer or lease, and that exactly one of the two is named; what becomes of it then is the
engine's. A job that has ended is tried again as a new job: what was recorded of the old one stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from ouvrage.base.ids import code_of
from ouvrage.model.selling import OwnOffer, Placed
from ouvrage.model.tenancy import Project
from ouvrage.model.work import JobSpec, JobSubmitted
from ouvrage.placement.snapshot import Needs
from ouvrage.placement.spec import check_within, job_spec, needs_of_offer
from ouvrage.server.authorise import authorise, is_owner_side, visible_orgs
from ouvrage.server.context import Actor, Platform
from ouvrage.server.engine import Engine
from ouvrage.server.errors import conflict, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.logs import place
from ouvrage.server.services.meant import job_meant, lease_meant
from ouvrage.server.services.naming import organisation_meant, project_meant, refuse_closed
from ouvrage.server.services.offers import seen
from ouvrage.server.services.rented import rented_lease
from ouvrage.server.services.scopes import projects_seen
from ouvrage.server.services.served import service_told
from ouvrage.server.services.strangers import refuse_unproven
from ouvrage.server.services.uses import Uses
from ouvrage.store.platform.selling import LeaseRow, OfferRow, lease_of, offers_by_id
from ouvrage.store.platform.tenancy import project_of
from ouvrage.store.platform.work import (
    AttemptRow,
    JobRow,
    attempts_of,
    count_jobs,
    files_of,
    job_counts,
    job_of,
    job_page,
    last_attempts,
    put_job,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.work import (
    AttemptTold,
    Explained,
    FileTold,
    JobShown,
    JobTold,
    NewJob,
    UsedTold,
    Why,
)


def submit(
    tx: Transaction, platform: Platform, engine: Engine, actor: Actor, asked: NewJob
) -> JobTold:
    """Take a job into the queue."""
    project = project_meant(tx.connection, actor, asked.project)
    authorise(actor, "job.submit", org=project.org, project=project.project)
    refuse_closed(organisation_meant(tx.connection, actor, project.org), project)
    offer, lease = _under(tx.connection, actor, project, asked)
    if offer is not None:
        refuse_unproven(tx.connection, platform, actor, offer.terms, tx.now_us)
    spec = _spec(tx.connection, actor, project, offer, lease, asked.spec)
    if count_jobs(tx.connection, "waiting", org=project.org) >= platform.limits.waiting:
        raise conflict(
            "job/too-many",
            f"{platform.limits.waiting} jobs of yours wait already",
            hint="submit more once some of them have started",
        )
    row = _queued(tx, platform, actor, project, offer and offer.offer, lease and lease.lease, spec)
    engine.submit(tx, row)
    return _told(tx.connection, platform, actor, [row])[0]


def _under(
    connection: Connection, actor: Actor, project: Project, asked: NewJob
) -> tuple[OfferRow | None, LeaseRow | None]:
    """The offer or the lease that a job is to run under; on a rented machine its one lease where neither is named."""
    if asked.offer is None and asked.lease is None:
        rented = rented_lease(connection, project.project)
        if rented is not None:
            return None, rented
    if (asked.offer is None) == (asked.lease is None):
        raise unreadable(
            "job/where",
            "a job runs under an offer or in a lease: exactly one of them is named",
            hint="--offer NAME, or --lease CODE for a lease of your own",
            field="offer",
        )
    if asked.offer is not None:
        offer = seen(connection, actor, asked.offer)
        if not offer.listed:
            raise conflict(
                "offer/withdrawn",
                f"{offer.terms.name} is not for sale any more",
                hint="ouvrage offer list shows what is",
                field="offer",
            )
        return offer, None
    lease = lease_meant(connection, actor, asked.lease or "")
    _check_lease(lease, project)
    return None, lease


def _check_lease(lease: LeaseRow, project: Project) -> None:
    if lease.kind != "term" or lease.project != project.project:
        raise conflict(
            "lease/not-yours",
            f"lease {code_of(lease.lease)} is not one that {project.name} took",
            hint="ouvrage lease list shows the project's own; a job's lease takes no other jobs",
            field="lease",
        )
    if lease.ended_us is not None or lease.ending is not None:
        raise conflict(
            "lease/ended",
            f"lease {code_of(lease.lease)} has ended, or is about to",
            hint="take another: ouvrage lease take",
            field="lease",
        )


def _spec(
    connection: Connection,
    actor: Actor,
    project: Project,
    offer: OfferRow | None,
    lease: LeaseRow | None,
    data: dict[str, Any],
) -> JobSpec:
    """What is asked for, held against what it is to run in."""
    has: OwnOffer | Placed
    if offer is not None:
        has, what, defaults = offer.terms, offer.terms.name, needs_of_offer(offer.terms)
    else:
        assert lease is not None
        has, what = lease.placed, f"lease {code_of(lease.lease)}"
        defaults = _of_lease(connection, lease)
    spec = job_spec(data, defaults=defaults)
    check_within(spec, has, what)
    if spec.isolation == "none" and not project.trusted:
        raise conflict(
            "job/isolation",
            "work without isolation is for the owner's own trusted projects",
            hint="leave isolation out",
            field="spec.isolation",
        )
    after = tuple(_before(connection, actor, project, name) for name in spec.after)
    return replace(spec, after=after)


def _of_lease(connection: Connection, lease: LeaseRow) -> Needs:
    """A job that asks for nothing gets all that its lease has."""
    terms = offers_by_id(connection, [lease.offer])[lease.offer].terms
    return needs_of_offer(terms)


def _before(connection: Connection, actor: Actor, project: Project, name: str) -> str:
    """The id of a job that another comes after; one of the same organisation."""
    found = job_meant(connection, actor, name)
    if found.org != project.org:
        raise unreadable(
            "job/after",
            f"{name} belongs to another organisation",
            hint="name a job of your own",
            field="spec.after",
        )
    return found.job


def _queued(
    tx: Transaction,
    platform: Platform,
    actor: Actor,
    project: Project,
    offer: str | None,
    lease: str | None,
    spec: JobSpec,
) -> JobRow:
    job = platform.ids()
    submitted = JobSubmitted(
        job=job,
        org=project.org,
        project=project.project,
        user=actor.id,
        offer=offer,
        lease=lease,
        spec=spec,
    )
    row = waiting_row(submitted, tx.now_us)
    put_job(tx.connection, row)
    fact = stated(platform, submitted, subject=f"job:{job}", natural=f"job/{job}", at_us=tx.now_us)
    record(
        tx, platform, actor, "job.submit", org=project.org, target=job, detail=spec.name,
        facts=(fact,),
    )  # fmt: skip
    return row


def waiting_row(submitted: JobSubmitted, at_us: int) -> JobRow:
    """The row of a job of which nothing more is known than that it was submitted."""
    return JobRow(
        job=submitted.job, org=submitted.org, project=submitted.project, user_id=submitted.user,
        name=submitted.spec.name, offer=submitted.offer, lease=submitted.lease,
        spec=submitted.spec, submitted_us=at_us, state="waiting", attempts=0, ended_us=None,
        code=None, reason=None, not_on=(), not_before_us=0,
    )  # fmt: skip


def cancel(
    tx: Transaction, platform: Platform, engine: Engine, actor: Actor, name: str, asked: Why
) -> JobTold:
    """End a job: at once where it waits, after its grace where it runs."""
    job = job_meant(tx.connection, actor, name)
    authorise(actor, "job.change", org=job.org, project=job.project)
    if not job.over:
        reason = f"cancelled by {actor.login}" + (f": {asked.why}" if asked.why else "")
        engine.cancel(tx, job, why="cancelled", reason=reason)
        record(tx, platform, actor, "job.cancel", org=job.org, target=job.job, detail=asked.why)
    left = job_of(tx.connection, job.job) or job
    return _told(tx.connection, platform, actor, [left])[0]


def retry(tx: Transaction, platform: Platform, engine: Engine, actor: Actor, name: str) -> JobTold:
    """Submit a job that has ended once more, as a new job."""
    old = job_meant(tx.connection, actor, name)
    authorise(actor, "job.submit", org=old.org, project=old.project)
    project = project_of(tx.connection, old.project)
    assert project is not None
    refuse_closed(organisation_meant(tx.connection, actor, old.org), project)
    if not old.over:
        raise conflict(
            "job/not-over",
            f"{old.name} has not ended",
            hint="a job is tried again by itself where its machine failed it; or cancel it first",
        )
    if old.lease is not None:
        lease = lease_of(tx.connection, old.lease)
        assert lease is not None
        _check_lease(lease, project)
    row = _queued(tx, platform, actor, project, old.offer, old.lease, old.spec)
    engine.submit(tx, row)
    return _told(tx.connection, platform, actor, [row])[0]


def shown(platform: Platform, uses: Uses, actor: Actor, name: str) -> JobShown:
    """A job with what was asked for and what came of it."""
    with platform.reading() as connection:
        job = readable(connection, actor, name)
        told = _told(connection, platform, actor, [job])[0]
        own = is_owner_side(actor)
        attempts = attempts_of(connection, job.job)
        return JobShown(
            **told.model_dump(exclude={"last"}),
            last=told.last,
            service=service_told(connection, platform, uses, job, attempts),
            spec=asdict(job.spec),
            all_attempts=[_attempt_told(platform, each, own) for each in attempts],
            files=[FileTold(**_file(each)) for each in files_of(connection, [job.job])],
        )


def _file(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("direction", "name", "bytes", "sha256", "at_us")}


def readable(connection: Connection, actor: Actor, name: str) -> JobRow:
    """The job that a text means, which somebody may read."""
    job = job_meant(connection, actor, name)
    authorise(actor, "job.read", org=job.org, project=job.project)
    return job


def listed(
    platform: Platform,
    actor: Actor,
    *,
    states: Sequence[str] | None,
    project: str | None,
    lease: str | None,
    cursor: str | None,
    limit: int,
) -> list[JobTold]:
    """Jobs that somebody may see, newest first, one more than ``limit`` where more follow."""
    authorise(actor, "job.read", org=None)
    with platform.reading() as connection:
        projects = projects_seen(actor)
        if project is not None:
            meant = project_meant(connection, actor, project)
            projects = frozenset({meant.project})
        rows = job_page(
            connection,
            orgs=visible_orgs(actor),
            projects=projects,
            states=states,
            lease=None if lease is None else lease_meant(connection, actor, lease).lease,
            limit=limit,
            cursor=cursor,
        )
        return _told(connection, platform, actor, rows)


def counted(platform: Platform, actor: Actor, states: Sequence[str]) -> dict[str, int]:
    """How many of the jobs that somebody may see are in each of these states."""
    authorise(actor, "job.read", org=None)
    orgs, projects = visible_orgs(actor), projects_seen(actor)
    with platform.reading() as connection:
        return job_counts(connection, orgs=orgs, projects=projects, states=states)


def explained(platform: Platform, engine: Engine, actor: Actor, name: str) -> Explained:
    """Why a job stands as it does."""
    own = is_owner_side(actor)
    with platform.reading() as connection:
        job = readable(connection, actor, name)
        why = engine.explain(connection, job)
        last = last_attempts(connection, [job.job]).get(job.job)
    if why is not None:
        return Explained(
            job=job.job,
            state=job.state,
            code=why.code,
            words=why.words,
            detail=dict(why.detail),
            owner=dict(why.owner) if own else None,
        )
    code, words = _standing(job, last)
    detail: dict[str, Any] = {"attempts": job.attempts}
    return Explained(
        job=job.job,
        state=job.state,
        code=code,
        words=words,
        detail=detail,
        owner={"node": last.node} if own and last else None,
    )


def _standing(job: JobRow, last: AttemptRow | None) -> tuple[str, str]:
    if job.over:
        return job.code or f"job/{job.state}", job.reason or job.state
    if job.state == "waiting":
        return "job/next", "nothing stands in its way: it starts when places are next given out"
    words = {
        "starting": "it has its place and is being started",
        "running": "it runs",
        "stopping": f"it is being ended: {last.stop_reason if last else ''}",
    }
    return f"job/{job.state}", words[job.state]


def _told(
    connection: Connection, platform: Platform, actor: Actor, rows: Sequence[JobRow]
) -> list[JobTold]:
    offers = offers_by_id(connection, [row.offer for row in rows if row.offer])
    last = last_attempts(connection, [row.job for row in rows if row.attempts])
    names = {project: _project_name(connection, project) for project in {r.project for r in rows}}
    own = is_owner_side(actor)
    return [
        JobTold(
            job=row.job,
            code=code_of(row.job),
            name=row.name,
            org=row.org,
            project=row.project,
            project_name=names[row.project],
            user=row.user_id,
            offer=row.offer,
            offer_name=offers[row.offer].terms.name if row.offer else None,
            lease=row.lease,
            state=row.state,
            end_code=row.code,
            reason=row.reason,
            submitted_us=row.submitted_us,
            ended_us=row.ended_us,
            attempts=row.attempts,
            last=_attempt_told(platform, last[row.job], own) if row.job in last else None,
        )
        for row in rows
    ]


def _project_name(connection: Connection, project: str) -> str:
    found = project_of(connection, project)
    return found.name if found else project


def _attempt_told(platform: Platform, row: AttemptRow, own: bool) -> AttemptTold:
    progress = row.progress or {}
    used: Any = asdict(row.peaks) if row.peaks is not None else progress.get("used")
    log = place(platform.files_dir, row.attempt, limit=platform.limits.log_bytes)
    return AttemptTold(
        attempt=row.attempt,
        number=row.number,
        state=row.state,
        lease=row.lease,
        node=row.node if own else None,
        ordered_us=row.ordered_us,
        began_us=row.began_us,
        ended_us=row.ended_us,
        wall_us=row.wall_us,
        exit_code=row.exit_code,
        signal=row.signal,
        outcome=row.outcome,
        cause=row.cause,
        reason=row.reason,
        isolation=row.isolation,
        stop=row.stop,
        unit=progress.get("unit"),
        units=progress.get("units"),
        unit_us=progress.get("unit_us"),
        idle_us=None if row.over else progress.get("idle_us"),
        warned_us=None if row.over else progress.get("warned_us"),
        used=None if used is None else UsedTold(**used),
        scrub=row.scrub,
        log_bytes=log.bytes,
        log_cut=log.full,
    )
