"""Whom a committed change concerns: the engine, and every runner that now has something to do.

Decides nothing. It is called after the transaction, since a runner woken before it would find nothing.
"""

from __future__ import annotations

from ouvrage.server.context import Platform
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.work import attempts_of, open_attempts


def after_change(platform: Platform) -> None:
    """Places may be given out anew."""
    platform.wakes.tell(ENGINE)


def after_stopping(platform: Platform, *, job: str | None = None, lease: str | None = None) -> None:
    """Attempts of a job, or in a lease, were asked to stop: their runners are told at once."""
    with platform.reading() as connection:
        rows = (
            attempts_of(connection, job)
            if job is not None
            else open_attempts(connection, lease=lease)
        )
    nodes = {f"node:{row.node}" for row in rows if not row.over}
    platform.wakes.tell(ENGINE, *nodes)
