"""What the beginning and the end of an attempt change: its lease, its job, its project's share, its node's fences.

Decides nothing about retrying (``placement.lifecycle`` does) and invents nothing: an end is what a supervisor recorded, or what is left to
say when nobody can. Each is recorded once; whoever comes second finds it done.
"""

from __future__ import annotations

from dataclasses import replace

from ouvrage.base.grades import Grade
from ouvrage.model.machines import FenceSet
from ouvrage.model.work import AttemptEnded, JobEnded
from ouvrage.placement.lifecycle import Next, Past, after, avoided, billed
from ouvrage.placement.order import Site, aged, spell
from ouvrage.placement.snapshot import Policy
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.recording import record, stated
from ouvrage.server.services.blaming import blame_now
from ouvrage.server.services.ended import End
from ouvrage.server.services.leasing import end_lease, end_with_attempt, grant
from ouvrage.server.services.snapshots import site_of
from ouvrage.store.platform.machines import node_called, set_fence
from ouvrage.store.platform.selling import LeaseRow, lease_of
from ouvrage.store.platform.work import (
    AttemptRow,
    JobRow,
    attempts_of,
    change_attempt,
    change_job,
    job_of,
    open_attempts,
    put_share,
    share_of,
)
from ouvrage.store.transaction import Transaction


def begin(platform: Platform, tx: Transaction, attempt: AttemptRow, began_us: int) -> None:
    """The command of an attempt runs since ``began_us``; a job under an offer has its lease from then on."""
    if attempt.over or attempt.began_us is not None:
        return
    stopping = attempt.stop is not None
    state = "stopping" if stopping else "running"
    change_attempt(
        tx.connection, attempt.attempt, state=state, began_us=began_us, known_us=tx.now_us
    )
    job = job_of(tx.connection, attempt.job)
    if job is None or job.over:
        return
    change_job(tx.connection, job.job, state=state)
    if job.offer is not None and lease_of(tx.connection, attempt.lease) is None:
        grant(platform, tx, _lease_of_job(attempt, job, job.offer, began_us))


def _lease_of_job(attempt: AttemptRow, job: JobRow, offer: str, began_us: int) -> LeaseRow:
    return LeaseRow(
        lease=attempt.lease,
        offer=offer,
        org=job.org,
        project=job.project,
        kind="job",
        attempt=attempt.attempt,
        node=attempt.node,
        placed=attempt.placed,
        from_us=began_us,
        until_us=None,
        ended_us=None,
        end=None,
        billable_us=None,
        ending=None,
    )


def end(platform: Platform, tx: Transaction, attempt: AttemptRow, how: End) -> bool:
    """Record the end of an attempt and all that follows from it; False where it had ended before."""
    if attempt.over:
        return False
    if how.began_us is None:
        how = replace(how, began_us=attempt.began_us)  # it was reported before
    else:
        begin(platform, tx, attempt, how.began_us)
    how = blame_now(platform, tx, attempt, how)
    job = job_of(tx.connection, attempt.job)
    _record(platform, tx, attempt, how)
    _end_lease(platform, tx, attempt, how)
    if job is not None:
        _count(tx, attempt, job, how)
        _go_on(platform, tx, job, attempt, how)
    if how.scrub == "failed":
        _fence(platform, tx, attempt, how)
    return True


def _record(platform: Platform, tx: Transaction, attempt: AttemptRow, how: End) -> None:
    ended_us = max(how.ended_us, how.began_us or 0)
    fact = AttemptEnded(
        attempt=attempt.attempt,
        job=attempt.job,
        wall_us=how.wall_us,
        exit_code=how.exit_code,
        signal=how.signal,
        outcome=how.outcome,
        cause=how.cause,
        reason=how.reason,
        isolation=how.isolation,
        peaks=how.peaks,
        scrub=how.scrub,
        scrub_detail=how.scrub_detail,
    )
    tx.note(
        [
            stated(
                platform,
                fact,
                subject=attempt.attempt,
                natural=f"attempt/{attempt.attempt}/ended",
                at_us=ended_us if how.began_us is None else how.began_us,
                until_us=ended_us,
                grade=Grade.MEASURED,
            )
        ]
    )
    change_attempt(
        tx.connection,
        attempt.attempt,
        state="ended",
        began_us=how.began_us,
        ended_us=ended_us,
        wall_us=how.wall_us,
        exit_code=how.exit_code,
        signal=how.signal,
        outcome=how.outcome,
        cause=how.cause,
        reason=how.reason,
        isolation=how.isolation,
        peaks=how.peaks,
        scrub=how.scrub,
        scrub_detail=how.scrub_detail,
    )


def _end_lease(platform: Platform, tx: Transaction, attempt: AttemptRow, how: End) -> None:
    lease = lease_of(tx.connection, attempt.lease)
    if lease is None or lease.ended_us is not None:
        return
    if lease.kind == "job":
        paid = billed(Past(node=attempt.node, outcome=how.outcome, cause=how.cause))
        end_with_attempt(
            platform,
            tx,
            lease,
            outcome=how.outcome,
            ended_us=how.ended_us,
            billable_us=how.wall_us if paid else 0,
        )
    elif lease.ending and not open_attempts(tx.connection, lease=lease.lease):
        end_lease(platform, tx, lease, at_us=tx.now_us, end=lease.ending, why="its work has ended")


def _count(tx: Transaction, attempt: AttemptRow, job: JobRow, how: End) -> None:
    """Count for the project what the attempt held, from its order to its end."""
    site: Site = tx.memo.get("site") or tx.memo.setdefault("site", site_of(tx.connection))
    life = Policy().half_life_us
    used, at_us = share_of(tx.connection, job.project)
    held = spell(site.size(attempt.placed), attempt.ordered_us, tx.now_us, tx.now_us, life)
    put_share(tx.connection, job.project, aged(used, at_us, tx.now_us, life) + held, tx.now_us)


def _go_on(platform: Platform, tx: Transaction, job: JobRow, attempt: AttemptRow, how: End) -> None:
    """The job goes back to wait, or comes to its end."""
    before = attempts_of(tx.connection, job.job) if job.attempts > 1 else []
    past = [
        Past(
            node=each.node,
            outcome=each.outcome or "",
            cause=each.cause or "",
            ran_us=each.wall_us or 0,
        )
        for each in before
        if each.over and each.attempt != attempt.attempt
    ]
    last = Past(node=attempt.node, outcome=how.outcome, cause=how.cause, ran_us=how.wall_us)
    past.append(last)
    following = after(
        past,
        retries=job.spec.retries,
        ended_us=tx.now_us,
        cancelled=attempt.stop == "cancelled",
        restart=job.spec.restart,
    )
    if how.given_up:
        following = _given_up(past, how)
    if following.state == "waiting":
        change_job(
            tx.connection,
            job.job,
            state="waiting",
            not_on=following.not_on,
            not_before_us=following.not_before_us,
            code=following.code,
            reason=following.words,
        )
        return
    end_job(platform, tx, job, following.state, following.code, following.words)


def _given_up(past: list[Past], how: End) -> Next:
    """Nobody knows whether it still runs, so that only a person may start it a second time."""
    return Next(
        state="failed",
        code="job/lost",
        words=f"{how.reason}; whether it still runs there is not known, so it isn't tried again by itself",
        billed=False,
        not_on=avoided(past),
    )


def end_job(
    platform: Platform, tx: Transaction, job: JobRow, state: str, code: str, reason: str
) -> None:
    """A job comes to its end for good."""
    ended = JobEnded(job=job.job, state=state, code=code, reason=reason)
    fact = stated(
        platform,
        ended,
        subject=f"job:{job.job}",
        natural=f"job/{job.job}/ended",
        at_us=job.submitted_us,
        until_us=max(tx.now_us, job.submitted_us),
    )
    tx.note([fact])
    change_job(tx.connection, job.job, state=state, code=code, reason=reason, ended_us=tx.now_us)


def _fence(platform: Platform, tx: Transaction, attempt: AttemptRow, how: End) -> None:
    """What could not be cleaned takes no new work: its GPUs, or the whole node where it had none."""
    devices: tuple[str | None, ...] = attempt.placed.devices or (None,)
    node = node_called(tx.connection, attempt.node)
    for device in devices:
        fence = FenceSet(
            node=attempt.node,
            device=device,
            holder="scrub",
            held=True,
            why=how.scrub_detail or "its scrubbing failed",
            by=attempt.attempt,
        )
        if set_fence(tx.connection, fence, tx.now_us):
            subject = f"node:{node.name if node else attempt.node}"
            fact = stated(platform, fence, subject=subject, at_us=tx.now_us)
            record(
                tx,
                platform,
                SERVER,
                "node.fence",
                org=None,
                target=attempt.node,
                detail=fence.why,
                facts=(fact,),
            )
