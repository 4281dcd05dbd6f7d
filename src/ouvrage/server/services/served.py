"""A job that is a service, as it is shown: where it is reached, how it does, what it did and what that cost.

Decides that its units are tokens where it told those of every answer, else requests that went well, and that its cost per unit is the
running cost of its own leases over them; in a lease that was taken for a time, the lease is billed and the job has no cost of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ouvrage.base.numbers import significant
from ouvrage.books.dues.budgets import spent_between
from ouvrage.metering.service_use import Tally
from ouvrage.server.context import Platform
from ouvrage.server.services.billing import billed
from ouvrage.server.services.uses import Uses
from ouvrage.store.platform.dues import leases_called
from ouvrage.store.platform.work import AttemptRow, JobRow
from ouvrage.store.transaction import Connection
from ouvrage.wire.work import ServiceTold, TimesTold

_NANO = 10**9


def service_told(
    connection: Connection,
    platform: Platform,
    uses: Uses,
    job: JobRow,
    attempts: Sequence[AttemptRow],
) -> ServiceTold | None:
    """What there is to tell of a job's service; None of a job that is none."""
    if job.spec.port is None:
        return None
    total = Tally()
    for each in attempts:
        total.add(uses.total(each.attempt))
    unit, units = total.unit
    cost, currency = _cost(connection, attempts, platform.clock())
    per_unit = None if cost is None or not units else significant(Fraction(cost, _NANO * units), 3)
    running = [each for each in attempts if not each.over]
    return ServiceTold(
        address=f"/v1/services/{job.job}/",
        port=job.spec.port,
        well=(running[-1].progress or {}).get("well") if running else None,
        restarts=max(0, len(attempts) - 1),
        requests=total.requests,
        failed=total.failed,
        counted=total.counted,
        tokens_in=total.tokens_in if total.counted else None,
        tokens_out=total.tokens_out if total.counted else None,
        pieces=total.pieces,
        bytes_in=total.bytes_in,
        bytes_out=total.bytes_out,
        first=_times(total, "first"),
        token=_times(total, "token"),
        took=_times(total, "took"),
        unit=unit,
        units=units,
        cost_per_unit=per_unit,
        currency=currency,
    )


def _times(total: Tally, name: str) -> TimesTold:
    middle, most = total.times_us(name)
    return TimesTold(p50_us=middle, p95_us=most)


def _cost(
    connection: Connection, attempts: Sequence[AttemptRow], now_us: int
) -> tuple[int | None, str | None]:
    """What the leases of these attempts alone cost up to now, in nano-units; None where one is not theirs alone."""
    rows = leases_called(connection, {each.lease for each in attempts})
    if not rows or any(row.kind != "job" for row in rows):
        return None, None
    leases = billed(connection, rows)
    began = min(each.from_us for each in leases)
    return spent_between(leases, began, max(now_us, began)), leases[0].offer.currency
