"""Why a job may not start yet, and why it never will: what it comes after, its files, its lease, its deadline.

Decides from the tables alone. Money has its own say (budgets, balances): ``money`` adds a function of the same form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ouvrage.placement.snapshot import Hold
from ouvrage.server.services.money import waits_for_money
from ouvrage.server.services.snapshots import Holds
from ouvrage.store.platform.selling import lease_of
from ouvrage.store.platform.tenancy import organisation_of, project_of
from ouvrage.store.platform.work import JobRow, files_of, jobs_by_id
from ouvrage.store.transaction import Connection


def waits_for_others(connection: Connection, waiting: Sequence[JobRow], now_us: int) -> Holds:
    """Jobs that come after others which are not done."""
    named = {other for job in waiting for other in job.spec.after}
    others = jobs_by_id(connection, named)
    found: dict[str, list[Hold]] = {}
    for job in waiting:
        left = [o for o in job.spec.after if o in others and others[o].state != "done"]
        if left:
            words = f"comes after {len(left)} of its jobs, the first of them {others[left[0]].name}"
            found[job.job] = [Hold(kind="dependency", words=words)]
    return found


def waits_for_files(connection: Connection, waiting: Sequence[JobRow], now_us: int) -> Holds:
    """Jobs whose inputs are not all here."""
    needing = [job for job in waiting if job.spec.inputs]
    here = {
        (f.job, f.name)
        for f in files_of(connection, [j.job for j in needing])
        if f.direction == "in"
    }
    found: dict[str, list[Hold]] = {}
    for job in needing:
        missing = sorted(
            {each.name for each in job.spec.inputs if (job.job, each.name) not in here}
        )
        if missing:
            words = f"waits for {len(missing)} of its input files, the first of them {missing[0]}"
            found[job.job] = [Hold(kind="held", words=words)]
    return found


def waits_for_a_closed_project(
    connection: Connection, waiting: Sequence[JobRow], now_us: int
) -> Holds:
    """Jobs of projects and organisations that were closed."""
    closed = {name for name in {job.project for job in waiting} if _is_closed(connection, name)}
    gone = {name for name in {job.org for job in waiting} if _is_gone(connection, name)}
    said = {
        job.job: "its organisation is closed" if job.org in gone else "its project is closed"
        for job in waiting
        if job.org in gone or job.project in closed
    }
    return {job: [Hold(kind="closed", words=words)] for job, words in said.items()}


def _is_gone(connection: Connection, org: str) -> bool:
    found = organisation_of(connection, org)
    return found is None or found.closed


def _is_closed(connection: Connection, project: str) -> bool:
    found = project_of(connection, project)
    return found is None or found.closed


ALWAYS = (waits_for_others, waits_for_files, waits_for_a_closed_project, waits_for_money)


def hopeless(
    connection: Connection, waiting: Sequence[JobRow], now_us: int
) -> Iterator[tuple[JobRow, str, str]]:
    """Jobs that can never start any more, with a stable code and words."""
    named = {other for job in waiting for other in job.spec.after}
    others = jobs_by_id(connection, named)
    leases = {job.lease for job in waiting if job.lease}
    standing = {lease: lease_of(connection, lease) for lease in leases}
    for job in waiting:
        lost = [
            o
            for o in job.spec.after
            if o in others and others[o].state in ("failed", "cancelled", "refused")
        ]
        lease = standing.get(job.lease or "")
        if lost:
            reason = f"{others[lost[0]].name}, which it comes after, has {_past(others[lost[0]])}"
            yield job, "job/dependency", reason
        elif job.spec.deadline_us is not None and job.spec.deadline_us <= now_us:
            yield job, "job/deadline", "its deadline passed while it waited"
        elif job.lease and (lease is None or lease.ended_us is not None or lease.ending):
            yield job, "job/lease-ended", "the lease that it was submitted into has ended"


def _past(job: JobRow) -> str:
    return {"failed": "failed", "cancelled": "been cancelled", "refused": "been refused"}[job.state]
