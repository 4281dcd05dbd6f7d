"""How leases begin and end, whoever causes it: an attempt, a tenant, a clock.

Decides which facts and rows a lease's beginning and end make, so that there is one way for each. What it costs is decided from these facts
by ``billing``, and recorded with its end.
"""

from __future__ import annotations

from ouvrage.model.selling import LeaseEnded, LeaseGranted
from ouvrage.model.work import UNBILLED
from ouvrage.server.context import Platform
from ouvrage.server.recording import stated
from ouvrage.server.services.billing import charge
from ouvrage.store.platform.selling import LeaseRow, change_lease, put_lease
from ouvrage.store.transaction import Transaction

_ENDS = {"preempted": "preempted", "budget": "budget", **dict.fromkeys(UNBILLED, "fault")}


def grant(platform: Platform, tx: Transaction, row: LeaseRow) -> None:
    """A lease begins at ``row.from_us``."""
    granted = LeaseGranted(
        lease=row.lease,
        offer=row.offer,
        org=row.org,
        project=row.project,
        kind=row.kind,
        attempt=row.attempt,
        placed=row.placed,
        until_us=row.until_us,
    )
    fact = stated(
        platform,
        granted,
        subject=f"lease:{row.lease}",
        natural=f"lease/{row.lease}/started",
        at_us=row.from_us,
        until_us=row.until_us,
    )
    tx.note([fact])
    put_lease(tx.connection, row)


def end_lease(
    platform: Platform,
    tx: Transaction,
    lease: LeaseRow,
    *,
    at_us: int,
    end: str,
    why: str,
    billable_us: int | None = None,
) -> None:
    """A lease ends at ``at_us``, no earlier than it began; what is billable is all of it unless said."""
    at_us = max(at_us, lease.from_us)
    billable = at_us - lease.from_us if billable_us is None else billable_us
    ended = LeaseEnded(lease=lease.lease, at_us=at_us, end=end, why=why, billable_us=billable)
    fact = stated(
        platform,
        ended,
        subject=f"lease:{lease.lease}",
        natural=f"lease/{lease.lease}/ended",
        at_us=lease.from_us,
        until_us=at_us,
    )
    tx.note([fact])
    change_lease(tx.connection, lease.lease, ended_us=at_us, end=end, billable_us=billable)
    charge(platform, tx, [lease.lease])


def end_with_attempt(
    platform: Platform,
    tx: Transaction,
    lease: LeaseRow,
    *,
    outcome: str,
    ended_us: int,
    billable_us: int,
) -> None:
    """The lease of one attempt ends with it."""
    end_lease(
        platform,
        tx,
        lease,
        at_us=ended_us,
        end=_ENDS.get(outcome, "attempt ended"),
        why=outcome,
        billable_us=billable_us,
    )
