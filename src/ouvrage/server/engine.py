"""The engine: what stands between submitted jobs and the machines, as a port, and the one embedded here.

Decides nothing about order or places (``placement`` does); it carries plans out. A start is recorded, with its place, in the same
transaction as the plan that it follows from, before any runner can ask for it; so that whatever breaks afterwards, each attempt is
known and none is made twice. Slurm is a second engine behind the same port (``slurm.engine``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ouvrage.model.work import AttemptOrdered
from ouvrage.placement.decide import Plan, Preempt, Start, plan
from ouvrage.placement.why import Why
from ouvrage.server.context import Platform
from ouvrage.server.recording import stated
from ouvrage.server.services.attempts import End, end, end_job
from ouvrage.server.services.holds import ALWAYS, hopeless
from ouvrage.server.services.leasing import end_lease
from ouvrage.server.services.snapshots import Holding, snapshot_of, windows_ahead
from ouvrage.server.services.strangers import waits_for_proof
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.claims import take_claim
from ouvrage.store.platform.selling import change_lease, lease_of
from ouvrage.store.platform.work import (
    AttemptRow,
    JobRow,
    any_waiting,
    attempt_of,
    attempts_of,
    change_attempt,
    change_job,
    job_of,
    jobs_in,
    open_attempts,
    put_attempt,
)
from ouvrage.store.transaction import Connection, Transaction

PLACEMENT = "placement"
"""The claim under which one server process at a time gives out places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What an engine did when it looked: attempts ordered and told to stop, jobs refused, what waits and why."""

    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    waits: tuple[Why, ...] = ()


class Engine(Protocol):
    """What the platform asks of whatever runs jobs. Each may be asked again without harm.

    ``token`` names this process among several servers; ``holding`` says what may not start, money among it.
    """

    token: str
    holding: list[Holding]

    def submit(self, tx: Transaction, job: JobRow) -> None:
        """Take a job that was just recorded; it is placed when the engine next looks."""
        ...

    def cancel(self, tx: Transaction, job: JobRow, *, why: str, reason: str) -> None:
        """End a job: at once where it waits, after its grace where it runs. ``why`` as in ``wire.runner.Stop``."""
        ...

    def observe(self) -> Observed:
        """Look at what stands, start what can start, stop what must."""
        ...

    def withhold(self, tx: Transaction, node: str, device: str | None) -> None:
        """Something takes no new work from now on; what runs there goes on."""
        ...

    def explain(self, connection: Connection, job: JobRow) -> Why | None:
        """Why a job waits; None where it doesn't."""
        ...

    def close(self) -> None:
        """Let go of connections; it is not asked any more."""
        ...


@dataclass(slots=True)
class Embedded:
    """Jobs on this platform's own nodes, by their runners. ``holding`` says what may not start, money among it."""

    platform: Platform
    token: str
    holding: list[Holding] = field(default_factory=lambda: list(ALWAYS))

    def __post_init__(self) -> None:
        self.holding.append(waits_for_proof(self.platform))

    def submit(self, tx: Transaction, job: JobRow) -> None:
        """Nothing more than its row: every look sees it."""

    def withhold(self, tx: Transaction, node: str, device: str | None) -> None:
        """Nothing more than the fence's row: every look sees it."""

    def close(self) -> None:
        """It holds none."""

    def cancel(self, tx: Transaction, job: JobRow, *, why: str, reason: str) -> None:
        """End a job."""
        cancel_job(self.platform, tx, job, why=why, reason=reason)

    def observe(self) -> Observed:
        """One plan, carried out in one transaction, by one server process at a time."""
        platform = self.platform
        with platform.reading() as connection:
            if not any_waiting(connection):
                return Observed()
        with platform.writing() as tx:
            for_us = platform.limits.claim_us
            if not take_claim(
                tx.connection, PLACEMENT, self.token, now_us=tx.now_us, for_us=for_us
            ):
                return Observed()
            windows = windows_ahead(platform, tx.connection, tx.now_us)
            waiting = jobs_in(tx.connection, ("waiting",))
            refused = self._refuse(tx, waiting)
            left = [job for job in waiting if job.job not in refused]
            snapshot = snapshot_of(
                tx.connection, tx.now_us, platform.limits, self.holding, left, windows
            )
            made = plan(snapshot, tx.now_us) if snapshot.waiting else Plan()
            nodes = self._carry_out(tx, made)
            stopped = self._interrupt(tx, made.preempt)
        platform.wakes.tell(*(f"node:{node}" for node in nodes | set(stopped.values())))
        return Observed(
            started=tuple(start.job for start in made.starts),
            stopped=tuple(stopped),
            refused=tuple(sorted(refused)),
            waits=made.waits,
        )

    def explain(self, connection: Connection, job: JobRow) -> Why | None:
        """Why a job waits, as it would be decided now."""
        if job.state != "waiting":
            return None
        platform = self.platform
        now = platform.clock()
        windows = windows_ahead(platform, connection, now)
        stands = snapshot_of(connection, now, platform.limits, self.holding, windows=windows)
        made = plan(stands, now)
        return next((why for why in made.waits if why.job == job.job), None)

    def _refuse(self, tx: Transaction, waiting: Sequence[JobRow]) -> set[str]:
        found = list(hopeless(tx.connection, waiting, tx.now_us))
        for job, code, reason in found:
            end_job(self.platform, tx, job, "refused", code, reason)
        return {job.job for job, _, _ in found}

    def _carry_out(self, tx: Transaction, made: Plan) -> set[str]:
        facts = [self._order(tx, start) for start in made.starts]
        tx.note([fact for fact in facts if fact is not None])
        return {start.placed.node for start in made.starts}

    def _order(self, tx: Transaction, start: Start) -> Any:
        job = job_of(tx.connection, start.job)
        if job is None or job.state != "waiting":
            raise RuntimeError(f"a plan starts {start.job}, which does not wait")
        lease = start.lease or self.platform.ids()
        ordered = AttemptOrdered(
            attempt=self.platform.ids(), job=job.job, number=job.attempts + 1, lease=lease, placed=start.placed, why=start.why,
        )  # fmt: skip
        return order(self.platform, tx, job, ordered)

    def _interrupt(self, tx: Transaction, asked: Sequence[Preempt]) -> dict[str, str]:
        """Stop what makes room; by attempt, its node."""
        found: dict[str, str] = {}
        for each in asked:
            if each.attempt is None:
                change_lease(tx.connection, each.lease, ending="preempted")
            chosen = (
                open_attempts(tx.connection, lease=each.lease)
                if each.attempt is None
                else [a for a in [attempt_of(tx.connection, each.attempt)] if a is not None]
            )
            for attempt in chosen:
                stop(
                    self.platform,
                    tx,
                    attempt,
                    why="preempted",
                    reason=each.why,
                    grace_us=each.notice_us,
                )
                found[attempt.attempt] = attempt.node
        return found


def order(platform: Platform, tx: Transaction, job: JobRow, ordered: AttemptOrdered) -> Any:
    """Keep an attempt that is ordered now; the fact of it, to be noted."""
    put_attempt(tx.connection, ordered_row(ordered, job.org, tx.now_us))
    change_job(
        tx.connection, job.job, state="starting", attempts=job.attempts + 1, code=None, reason=None
    )
    return stated(
        platform,
        ordered,
        subject=ordered.attempt,
        natural=f"attempt/{ordered.attempt}/ordered",
        at_us=tx.now_us,
    )


def cancel_job(platform: Platform, tx: Transaction, job: JobRow, *, why: str, reason: str) -> None:
    """End a job: at once where it waits, after its grace where it runs."""
    if job.over:
        return
    for attempt in attempts_of(tx.connection, job.job):
        stop(platform, tx, attempt, why=why, reason=reason)
    left = job_of(tx.connection, job.job)
    if left is not None and left.state == "waiting":
        end_job(platform, tx, left, "cancelled", f"job/{why.replace(' ', '-')}", reason)


def ordered_row(ordered: AttemptOrdered, org: str, at_us: int) -> AttemptRow:
    """The row of an attempt of which nothing more is known than its order."""
    return AttemptRow(
        attempt=ordered.attempt, job=ordered.job, org=org, number=ordered.number,
        lease=ordered.lease, node=ordered.placed.node, placed=ordered.placed, ordered_us=at_us,
        state="ordered", began_us=None, ended_us=None, wall_us=None, exit_code=None, signal=None,
        outcome=None, cause=None, reason=None, isolation=None, peaks=None, scrub=None,
        scrub_detail=None, sent_us=None, known_us=None, missing_us=None, stop=None,
        stop_reason=None, stop_grace_us=None, progress=None, forgotten=False,
    )  # fmt: skip


def stop(
    platform: Platform,
    tx: Transaction,
    attempt: AttemptRow,
    *,
    why: str,
    reason: str,
    grace_us: int | None = None,
) -> None:
    """Ask for the end of an attempt; one that was never sent ends here and now. The first reason stands.

    ``grace_us`` None: the job's own.
    """
    if attempt.over or attempt.stop is not None:
        return
    job = job_of(tx.connection, attempt.job)
    own = job.spec.grace_us if job is not None else 0
    change_attempt(
        tx.connection,
        attempt.attempt,
        stop=why,
        stop_reason=reason,
        stop_grace_us=own if grace_us is None else grace_us,
        state="stopping",
    )
    change_job(tx.connection, attempt.job, state="stopping")
    if attempt.sent_us is None:
        asked = attempt_of(tx.connection, attempt.attempt)
        assert asked is not None
        never_sent(platform, tx, asked)


def never_sent(platform: Platform, tx: Transaction, attempt: AttemptRow) -> None:
    """An attempt that no runner has taken up ends as what it was asked to stop for."""
    how = End(
        began_us=None,
        ended_us=tx.now_us,
        wall_us=0,
        outcome=attempt.stop or "never started",
        cause="tenant" if attempt.stop == "cancelled" else "platform",
        reason=attempt.stop_reason or "it was never started",
    )
    end(platform, tx, attempt, how)


def release_if_idle(platform: Platform, tx: Transaction, lease: str) -> None:
    """End a lease that was asked to end and in which nothing runs any more."""
    row = lease_of(tx.connection, lease)
    if row is None or row.ended_us is not None or row.ending is None:
        return
    if not open_attempts(tx.connection, lease=lease):
        end_lease(platform, tx, row, at_us=tx.now_us, end=row.ending, why="its work has ended")


def wake_engine(platform: Platform) -> None:
    """Let the engine look: something waits, or came free."""
    platform.wakes.tell(ENGINE)
