"""Whose turn it is when Slurm gives a project a place.

Decides that places of one shape serve a project's jobs by the tenant's own priorities. Slurm is told those as nice values, but a nice value can take
no more from a job than its weights gave it: where they are small, and for the first minutes of every new account, all jobs of a project rank alike
there. Nothing changes between projects, nor between jobs that ask for different things: that order is Slurm's.
"""

from __future__ import annotations

from dataclasses import replace

from ouvrage.store.platform.slurm_jobs import SlurmJobRow, change_slurm_job, rows_before
from ouvrage.store.platform.work import JobRow, jobs_by_id
from ouvrage.store.transaction import Connection


def in_turn(connection: Connection, row: SlurmJobRow, job: JobRow) -> list[SlurmJobRow]:
    """The row with the job whose turn it is, and the one that has changed its job with it; the row alone where its own comes first."""
    before = rows_before(connection, row, job)
    jobs = jobs_by_id(connection, [each.job for each in before])
    for other in before:
        if _shape(jobs[other.job]) == _shape(job):
            found = [
                replace(row, job=other.job, priority=other.priority),
                replace(other, job=row.job, priority=row.priority),
            ]
            for each in found:
                change_slurm_job(connection, each.attempt, job=each.job, priority=each.priority)
            return found
    return [row]


def _shape(job: JobRow) -> tuple[object, ...]:
    """What decides, under one offer, what is asked of Slurm: jobs that have it in common can use each other's places."""
    spec = job.spec
    return (spec.time_limit_us, spec.grace_us, spec.interruptible, spec.isolation, job.not_on)
