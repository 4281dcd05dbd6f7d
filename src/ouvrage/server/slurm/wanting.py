"""Which jobs are to be asked for at Slurm, and which not any more.

Decides from our own tables alone: what waits and is held by nothing of ours gets a row, what came to its end or may not start for now loses it.
Dependencies, budgets and files are held here and not at Slurm, which would drop a job when what it depends on was tried again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.placement.decide import Planning, kept_back
from ouvrage.placement.slurm_words import why_it_waits
from ouvrage.placement.snapshot import Waiting
from ouvrage.placement.why import Why
from ouvrage.server.context import Platform
from ouvrage.server.services.attempts import end_job
from ouvrage.server.services.holds import hopeless
from ouvrage.server.services.snapshots import Holding, snapshot_of
from ouvrage.store.platform.slurm_jobs import (
    SlurmJobRow,
    change_slurm_job,
    needless_rows,
    open_slurm_jobs,
    put_slurm_job,
    unasked_jobs,
)
from ouvrage.store.platform.work import JobRow, jobs_in
from ouvrage.store.transaction import Connection, Transaction


def intend(
    platform: Platform, tx: Transaction, holding: Sequence[Holding], *, every: bool
) -> set[str]:
    """Bring the rows in line with the jobs that wait, those that Slurm has already with ``every``; the jobs that were refused."""
    unasked = unasked_jobs(tx.connection)
    looked = jobs_in(tx.connection, ("waiting",)) if every else unasked
    refused = _refuse(platform, tx, looked)
    left = [job for job in looked if job.job not in refused]
    held = _held(planning_of(platform, tx.connection, tx.now_us, holding, left))
    for job in unasked:
        if job.job not in refused and job.job not in held:
            row = SlurmJobRow(
                attempt=platform.ids(), job=job.job, state="wanted", made_us=tx.now_us,
                priority=job.spec.priority,
            )  # fmt: skip
            put_slurm_job(tx.connection, row)
    for row in needless_rows(tx.connection):
        _withdraw(tx, row, "its job waits no more")
    for name in [name for name, back in held.items() if back]:
        for row in open_slurm_jobs(tx.connection, name):
            if row.state != "placed" and row.withdrawn is None:
                _withdraw(tx, row, "its job may not start for now")
    return refused


def _refuse(platform: Platform, tx: Transaction, waiting: Sequence[JobRow]) -> set[str]:
    found = list(hopeless(tx.connection, waiting, tx.now_us))
    for job, code, reason in found:
        end_job(platform, tx, job, "refused", code, reason)
    return {job.job for job, _, _ in found}


def _held(planning: Planning) -> dict[str, bool]:
    """The jobs that may not be asked for now; True: nor may they stay at Slurm, if they are there already."""
    found: dict[str, bool] = {}
    for job in planning.snapshot.waiting:
        if kept_back(job, planning.now_us) is not None:
            found[job.job] = bool(job.holds)
        elif isinstance(able(planning, job), Why):
            found[job.job] = False
    return found


def _withdraw(tx: Transaction, row: SlurmJobRow, why: str) -> None:
    values = {"state": "over"} if row.state == "wanted" else {"withdrawn": why}
    change_slurm_job(tx.connection, row.attempt, **values)


def planning_of(
    platform: Platform, connection: Connection, now_us: int, holding: Sequence[Holding], jobs: Sequence[JobRow]
) -> Planning:  # fmt: skip
    """The site as it stands, with these jobs waiting: what says where one could ever be."""
    stands = snapshot_of(connection, now_us, platform.limits, holding, jobs)
    return Planning(stands, now_us)


def able(planning: Planning, job: Waiting) -> frozenset[str] | Why:
    """The names of the nodes where a job may be, or why there are none.

    Slurm chooses the GPUs of a node, and cannot be told to pass one over: where one is withheld, no job of ours that needs GPUs goes.
    """
    reach = planning.reach(job)
    if reach.code is not None:
        return Why(job=job.job, code=reach.code, detail=reach.detail)
    whole = [room.node for room in reach.rooms]
    if job.needs.gpus:
        whole = [node for node in whole if not any(device.fenced for device in node.devices)]
    if not whole:
        return Why(job=job.job, code="placement/fenced")
    return frozenset(node.name for node in whole)


def why_waiting(planning: Planning, job: JobRow, row: SlurmJobRow | None) -> Why:
    """Why a job waits: our own reason where there is one, else what Slurm says."""
    waiting = planning.snapshot.waiting[0]
    own = kept_back(waiting, planning.now_us)
    if own is not None:
        return own
    where = able(planning, waiting)
    if isinstance(where, Why):
        return where
    if row is not None and row.word == "refused":
        words = f"Slurm does not take it: {row.reason}; it is asked again"
        return Why(job=job.job, code="slurm/refused", detail={"words": words})
    if row is not None and row.state == "asked":
        words = "was handed to Slurm, whose answer was lost; it is looked for there before it is handed on again"
        return Why(job=job.job, code="slurm/away", detail={"words": words})
    return why_it_waits(job.job, (row and row.reason) or "None")
