"""The end of everything that a tenant has under way, in one stroke: jobs that wait and run, services, leases.

Decides that nothing is asked of the tenant and nothing of the evidence goes: logs, outputs, facts and charges stay. What runs is told to
stop and has its own grace, so that a checkpoint may still be written; a lease ends with the last work in it, and is billed until then.
"""

from __future__ import annotations

from ouvrage.model.tenancy import Organisation
from ouvrage.model.work import UNDER_WAY
from ouvrage.server.context import Platform
from ouvrage.server.engine import Engine, stop
from ouvrage.server.services.leasing import end_lease
from ouvrage.store.platform.selling import change_lease, open_leases
from ouvrage.store.platform.work import job_page, open_attempts
from ouvrage.store.transaction import Transaction

_EVERY = 1_000_000


def end_work_of(
    tx: Transaction, platform: Platform, engine: Engine, org: Organisation, why: str
) -> tuple[int, int]:
    """End all jobs and leases of an organisation; how many of each."""
    jobs = job_page(tx.connection, orgs=[org.org], states=UNDER_WAY, limit=_EVERY, cursor=None)
    for job in jobs:
        engine.cancel(tx, job, why="cancelled", reason=why)
    leases = [row for row in open_leases(tx.connection, kind="term") if row.org == org.org]
    for row in leases:
        running = open_attempts(tx.connection, lease=row.lease)
        for attempt in running:
            stop(platform, tx, attempt, why="cancelled", reason=why)
        if open_attempts(tx.connection, lease=row.lease):
            change_lease(tx.connection, row.lease, ending="released")
        else:
            end_lease(platform, tx, row, at_us=tx.now_us, end="released", why=why)
    return len(jobs), len(leases)
