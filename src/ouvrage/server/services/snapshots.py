"""What stands in the tables, as placement is told it.

Decides how rows become a snapshot: a node whose runner is not heard takes nothing new, an attempt holds its place from its order on, a job
under an offer takes the offer's whole configuration. It makes no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.model.selling import OwnOffer
from ouvrage.placement.order import Site, aged, standing_of
from ouvrage.placement.snapshot import (
    Device,
    Hold,
    Lease,
    Needs,
    Node,
    Policy,
    Running,
    Share,
    Snapshot,
    Waiting,
)
from ouvrage.placement.spec import needs_of, needs_of_offer
from ouvrage.server.context import Platform
from ouvrage.server.work_limits import WorkLimits
from ouvrage.store.platform.machines import (
    NodeRow,
    RunnerRow,
    all_nodes,
    all_runners,
    fenced_devices,
    fences_held,
)
from ouvrage.store.platform.selling import LeaseRow, offers_by_id, open_leases
from ouvrage.store.platform.tenancy import list_projects
from ouvrage.store.platform.work import (
    AttemptRow,
    JobRow,
    all_shares,
    jobs_by_id,
    jobs_in,
    open_attempts,
)
from ouvrage.store.transaction import Connection

Holds = Mapping[str, Sequence[Hold]]
"""By job, why it may not start."""
Holding = Callable[[Connection, Sequence[JobRow], int], Holds]
"""Says at a moment which of some jobs may not start, and why."""
Windows = Mapping[str, tuple[tuple[int, int], ...]]
"""By node, from and to of maintenance to come, soonest first."""
POLICY = Policy()
_MOST = 1_000_000


def site_of(connection: Connection) -> Site:
    """How large the site is, to say which share of it something takes."""
    nodes = tuple(_node(row, False, set(), {}) for row in all_nodes(connection))
    return Site(Snapshot(nodes=nodes))


def snapshot_of(
    connection: Connection,
    now_us: int,
    limits: WorkLimits,
    holding: Sequence[Holding],
    waiting: Sequence[JobRow] | None = None,
    windows: Windows | None = None,
) -> Snapshot:
    """All that placement may know now; ``waiting`` where somebody has read those jobs already, ``windows`` of maintenance."""
    waiting = jobs_in(connection, ("waiting",)) if waiting is None else waiting
    under = _under(connection, waiting)
    holds = _all_holds(connection, waiting, now_us, holding)
    return Snapshot(
        nodes=nodes_of(connection, now_us, limits, windows or {}),
        leases=under.leases,
        running=under.running,
        waiting=tuple(_waiting(job, under.of(job), holds.get(job.job, ())) for job in waiting),
        shares=shares_of(connection, now_us),
        policy=POLICY,
    )


def under_way(connection: Connection) -> tuple[tuple[Lease, ...], tuple[Running, ...]]:
    """The leases of a term and the attempts that hold places now."""
    under = _under(connection, ())
    return under.leases, under.running


@dataclass(frozen=True, slots=True, kw_only=True)
class _Under:
    """What holds places, with the ``terms`` of each offer and of each lease that is ``leased``."""

    terms: Mapping[str, OwnOffer]
    leased: Mapping[str, OwnOffer]
    leases: tuple[Lease, ...]
    running: tuple[Running, ...]

    def of(self, job: JobRow) -> OwnOffer | None:
        return _terms(job, self.terms, self.leased)


def _under(connection: Connection, waiting: Sequence[JobRow]) -> _Under:
    running = open_attempts(connection)
    leases = open_leases(connection, kind="term")
    jobs = jobs_by_id(connection, [each.job for each in running])
    wanted = {job.offer for job in (*waiting, *jobs.values()) if job.offer}
    offers = offers_by_id(connection, wanted | {lease.offer for lease in leases})
    terms = {offer: row.terms for offer, row in offers.items()}
    leased = {lease.lease: terms[lease.offer] for lease in leases}
    return _Under(
        terms=terms,
        leased=leased,
        leases=tuple(_lease(row, terms[row.offer]) for row in leases),
        running=tuple(
            _running(each, jobs[each.job], _terms(jobs[each.job], terms, leased))
            for each in running
            if each.job in jobs
        ),
    )


def windows_ahead(platform: Platform, connection: Connection, now_us: int) -> Windows:
    """By node, the windows of maintenance that are not over. Ask before anything is appended in a transaction."""
    found: dict[str, list[tuple[int, int]]] = {}
    with platform.health.at(connection) as record:
        for window in record.windows.values():
            if not window.cancelled and window.to_us > now_us:
                found.setdefault(window.node, []).append((window.from_us, window.to_us))
    return {node: tuple(sorted(each)) for node, each in found.items()}


def nodes_of(
    connection: Connection, now_us: int, limits: WorkLimits, windows: Windows
) -> tuple[Node, ...]:
    """The nodes, with what is withheld of them."""
    runners, held = all_runners(connection), fences_held(connection)
    fenced = fenced_devices(held)
    return tuple(
        _node(row, is_away(runners.get(row.node), now_us, limits), fenced, windows)
        for row in all_nodes(connection)
    )


def is_away(runner: RunnerRow | None, now_us: int, limits: WorkLimits) -> bool:
    """Whether a node's runner has not been heard for too long."""
    return runner is None or runner.seen_us < now_us - limits.away_us


def _node(row: NodeRow, away: bool, fenced: set[tuple[str, str | None]], windows: Windows) -> Node:
    seen = row.seen
    return Node(
        node=seen.node,
        name=seen.name,
        devices=tuple(
            Device(
                device=d.device,
                model=d.model,
                memory_mib=d.memory_mib,
                fenced=(seen.node, d.device) in fenced,
            )
            for d in seen.devices
        ),
        cpus=seen.cpus,
        memory_mib=seen.memory_mib,
        disk_mib=seen.disk_mib,
        listed=row.listed,
        fenced=away or (seen.node, None) in fenced,
        isolations=seen.isolations,
        windows=windows.get(seen.node, ()),
    )


def shares_of(connection: Connection, now_us: int) -> tuple[Share, ...]:
    """Each project's weight and what it has used, as that counts now."""
    used = all_shares(connection)
    found = list_projects(connection, orgs=None, within=None, after="", limit=_MOST)
    return tuple(
        Share(
            project=project.project,
            weight=Fraction(project.weight),
            used_us=aged(*used.get(project.project, (0, 0)), now_us, POLICY.half_life_us),
        )
        for project in found
    )


def _all_holds(
    connection: Connection, waiting: Sequence[JobRow], now_us: int, holding: Sequence[Holding]
) -> dict[str, list[Hold]]:
    found: dict[str, list[Hold]] = {}
    for ask in holding:
        for job, holds in ask(connection, waiting, now_us).items():
            found.setdefault(job, []).extend(holds)
    return found


def _terms(
    job: JobRow, offers: Mapping[str, OwnOffer], leased: Mapping[str, OwnOffer]
) -> OwnOffer | None:
    """Under which terms a job runs: its offer's, or its lease's; None where the lease has ended."""
    return offers.get(job.offer) if job.offer else leased.get(job.lease or "")


def placed_needs(job: JobRow, terms: OwnOffer | None) -> Needs:
    """What is placed: the offer's configuration, or what the job asks of its lease."""
    if job.offer is None or terms is None:
        return needs_of(job.spec)
    return needs_of_offer(terms, job.spec.isolation)


def time_limit(job: JobRow, terms: OwnOffer | None) -> int | None:
    """How long an attempt may last: what the job asks, or the most that its offer sells."""
    most = terms.most_us if terms is not None and job.offer else None
    limits = [us for us in (job.spec.time_limit_us, most) if us is not None]
    return min(limits, default=None)


def _lease(row: LeaseRow, terms: OwnOffer) -> Lease:
    return Lease(
        lease=row.lease,
        kind=row.kind,
        project=row.project,
        placed=row.placed,
        until_us=row.until_us,
        started_us=row.from_us,
        standing=standing_of(interruptible=terms.interruptible),
        interruptible=terms.interruptible and row.ending is None,
        notice_us=terms.notice_us,
    )


def _running(row: AttemptRow, job: JobRow, terms: OwnOffer | None) -> Running:
    begun = row.ordered_us if row.began_us is None else row.began_us
    limit, slack = time_limit(job, terms), job.spec.grace_us + POLICY.turnover_us
    interruptible = terms is not None and terms.interruptible
    return Running(
        attempt=row.attempt,
        job=row.job,
        project=job.project,
        lease=row.lease,
        placed=row.placed,
        started_us=begun,
        ends_by_us=None if limit is None else begun + limit + slack,
        standing=standing_of(interruptible=interruptible),
        priority=job.spec.priority,
        interruptible=interruptible or job.spec.interruptible,
        notice_us=terms.notice_us if terms is not None and interruptible else job.spec.grace_us,
        stopping=row.stop is not None,
    )


def _waiting(job: JobRow, terms: OwnOffer | None, holds: Sequence[Hold]) -> Waiting:
    interruptible = terms is not None and terms.interruptible
    return Waiting(
        job=job.job,
        project=job.project,
        org=job.org,
        needs=placed_needs(job, terms),
        submitted_us=job.submitted_us,
        lease=job.lease,
        standing=standing_of(interruptible=interruptible),
        priority=job.spec.priority,
        not_on=job.not_on,
        interruptible=interruptible or job.spec.interruptible,
        time_limit_us=time_limit(job, terms),
        grace_us=job.spec.grace_us,
        not_before_us=job.not_before_us,
        holds=tuple(holds),
    )
