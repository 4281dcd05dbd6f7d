"""Where somebody reaches into running work: the attempt, its node, and that they may.

Decides that only an attempt that runs is reached, and only by those to whom its organisation belongs: whoever owns the machines stays
outside of a tenant's work (``authorise.authorise_inside``). What has not started yet, and what has ended, are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.base.ids import code_of
from ouvrage.server.authorise import authorise_inside
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import Refused, conflict
from ouvrage.server.services.meant import job_meant
from ouvrage.store.platform.work import JobRow, attempts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A running attempt of a job; ``port`` is its service's, None where it is none."""

    job: JobRow
    attempt: str
    node: str
    port: int | None


def reached(platform: Platform, actor: Actor, name: str, action: str) -> Reached:
    """The running attempt of the job that a text means. ``Refused`` 409 where it has ended, 503 where it will run."""
    with platform.reading() as connection:
        job = job_meant(connection, actor, name)
        authorise_inside(actor, action, org=job.org, project=job.project)
        running = [
            each
            for each in attempts_of(connection, job.job)
            if not each.over and each.began_us is not None
        ]
    if running:
        last = running[-1]
        return Reached(job=job, attempt=last.attempt, node=last.node, port=job.spec.port)
    if job.over:
        raise conflict(
            "job/ended",
            f"{job.name} has ended: {job.reason or job.state}",
            hint=f"ouvrage job retry {code_of(job.job)}",
        )
    raise Refused(
        "job/not-running",
        f"{job.name} does not run now: it is {job.state}",
        status=503,
        hint=f"ouvrage job explain {code_of(job.job)}",
        retry_after=5,
    )


def service(platform: Platform, actor: Actor, name: str) -> Reached:
    """The running service that a text means. ``Refused`` 409 where the job is none."""
    found = reached(platform, actor, name, "service.use")
    if found.port is None:
        raise conflict(
            "service/no-port",
            f"{found.job.name} is no service: it was submitted without a port",
            hint="ouvrage job submit --port 8000 …",
        )
    return found
