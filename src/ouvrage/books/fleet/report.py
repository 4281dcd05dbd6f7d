"""Everything that is asked about a cluster's period, together, so that text, JSON and page tell one and the same.

Decides nothing of its own but how GPU time of jobs and of the calendars are reconciled: what jobs had and no calendar shows is named by
why, until nothing is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import HOUR
from ouvrage.books.cluster_jobs import Attempt, gpus_per_node
from ouvrage.books.fleet.bill import Billed, billed
from ouvrage.books.fleet.efficiency import Efficiency, efficiencies
from ouvrage.books.fleet.record import Fleet
from ouvrage.books.fleet.time import FleetTime, fleet_time
from ouvrage.books.fleet.weights import Weighed, weighed
from ouvrage.books.fleet.work import (
    Had,
    Hollow,
    Lost,
    Waited,
    family,
    had_by,
    hollow,
    lost,
    waited,
    within,
)
from ouvrage.books.goodput import Goodput, cluster_goodput, hours_in
from ouvrage.books.known import Known
from ouvrage.books.period import Period
from ouvrage.model.sites import Term

NOT_PLACED = "jobs without a node list, or with GPUs that their nodes do not share evenly"
NOT_LISTED = "jobs on nodes that the cluster does not list"
OVERRULED = "jobs while their node was down, or that had more GPUs than their node has"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """The answers about a period of a cluster, of all accounts or (``account``) of one and those below it.

    ``time`` is of the whole cluster in any case. ``beside`` is GPU-hours of jobs that no calendar shows, by why.
    """

    fleet: Fleet
    period: Period
    account: str | None
    time: FleetTime
    attempts: tuple[Attempt, ...]
    goodput: Goodput
    accounts: tuple[Had, ...]
    users: tuple[Had, ...]
    waits: tuple[Waited, ...]
    lost: tuple[Lost, ...]
    hollow: tuple[Hollow, ...]
    efficiency: tuple[Efficiency, ...]
    billed: Billed
    weighed: Weighed | None
    beside: tuple[tuple[str, Fraction], ...]


def fleet_report(
    fleet: Fleet, period: Period, account: str | None, terms: Sequence[Known[Term]]
) -> FleetReport:
    """The report. Raises ``OuvrageError`` ``fleet/account`` for an account that is not known."""
    known = {each.account for each in fleet.attempts} | fleet.accounts.keys()
    if account is not None and account not in known:
        names = sorted(name for name in known if name)
        raise OuvrageError(
            "fleet/account", f"{fleet.cluster} has no account {account!r}", where=tuple(names[:20]),
            hint=f"it has {', '.join(names[:8])}",
        )  # fmt: skip
    every = within(fleet, period)
    wanted = None if account is None else family(fleet, account)
    attempts = tuple(each for each in every if wanted is None or each.account in wanted)
    time = fleet_time(fleet, period)
    bills = billed(fleet, attempts, period, period.to_us, terms)
    return FleetReport(
        fleet=fleet, period=period, account=account, time=time, attempts=attempts,
        goodput=cluster_goodput(attempts, period), accounts=tuple(had_by(fleet, attempts, period, users=False)),
        users=tuple(had_by(fleet, attempts, period, users=True)), waits=tuple(waited(fleet, attempts, period)),
        lost=tuple(lost(attempts, period)), hollow=tuple(hollow(fleet, attempts, period)),
        efficiency=tuple(efficiencies(fleet, attempts)), billed=bills, weighed=weighed(fleet, attempts, bills),
        beside=tuple(_beside(fleet, period, every, time)),
    )  # fmt: skip


def _beside(
    fleet: Fleet, period: Period, attempts: Sequence[Attempt], time: FleetTime
) -> list[tuple[str, Fraction]]:
    """GPU-hours that jobs had and no calendar shows as work; together with what is shown they are the jobs' own."""
    found = dict.fromkeys((NOT_PLACED, NOT_LISTED, OVERRULED), Fraction(0))
    total = Fraction(0)
    for each in attempts:
        hours = hours_in(each, period) or Fraction(0)
        total += hours
        if not gpus_per_node(each):
            found[NOT_PLACED] += hours
            continue
        strange = sum(node not in fleet.nodes for node in each.nodes)
        found[NOT_LISTED] += hours * strange / len(each.nodes)
    shown = Fraction(time.by_state().get("working", 0), HOUR)
    found[OVERRULED] = total - shown - found[NOT_PLACED] - found[NOT_LISTED]
    return [(why, hours) for why, hours in found.items() if hours]
