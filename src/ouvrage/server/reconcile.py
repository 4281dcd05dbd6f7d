"""What nobody asks for and must happen: leases that run out, runners that stay away, work that stands idle, money that ends.

Decides by what the tables say now, takes no input, and does the same thing twice without harm. One server process at a time does it, under a
claim; a look cut short by a crash is made again by whoever comes next.
"""

from __future__ import annotations

from ouvrage.base.time import SECOND
from ouvrage.model.occupancy import DeviceState
from ouvrage.placement.idle import Held, judge
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.engine import stop
from ouvrage.server.recording import record, stated
from ouvrage.server.services.attempts import End, end
from ouvrage.server.services.leasing import end_lease
from ouvrage.server.services.money import look
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.claims import take_claim
from ouvrage.store.platform.machines import RunnerRow, all_nodes, all_runners, put_runner
from ouvrage.store.platform.selling import LeaseRow, change_lease, lease_of, open_leases
from ouvrage.store.platform.work import AttemptRow, change_attempt, jobs_by_id, open_attempts
from ouvrage.store.transaction import Transaction

CLAIM = "reconcile"


def reconcile(platform: Platform, token: str) -> None:
    """Look once at everything."""
    with platform.writing() as tx:
        for_us = platform.limits.claim_us
        if not take_claim(tx.connection, CLAIM, token, now_us=tx.now_us, for_us=for_us):
            return
        running = open_attempts(tx.connection)
        touched = _leases(platform, tx, running)
        touched |= _runners(platform, tx, running)
        touched |= _idle(platform, tx, running)
        touched |= _unhealthy(platform, tx, running)
        touched |= _money(platform, tx)
    if touched:
        platform.wakes.tell(ENGINE, *(f"node:{node}" for node in touched))


def _leases(platform: Platform, tx: Transaction, running: list[AttemptRow]) -> set[str]:
    """End what has run out; warn the work in it before; end what was given back and is empty by now."""
    touched: set[str] = set()
    for lease in open_leases(tx.connection, kind="term"):
        inside = [each for each in running if each.lease == lease.lease]
        if lease.until_us is not None and lease.until_us <= tx.now_us:
            end_lease(
                platform, tx, lease, at_us=lease.until_us, end="expired", why="its time is over"
            )
            touched.add(lease.node)
        elif lease.ending is not None and not inside:
            end_lease(
                platform, tx, lease, at_us=tx.now_us, end=lease.ending, why="its work has ended"
            )
            touched.add(lease.node)
        touched |= _warned(platform, tx, lease, inside)
    return touched


def _warned(
    platform: Platform, tx: Transaction, lease: LeaseRow, inside: list[AttemptRow]
) -> set[str]:
    """Work whose grace would outlast its lease is told to end."""
    if lease.until_us is None:
        return set()
    jobs = jobs_by_id(tx.connection, [each.job for each in inside])
    told: set[str] = set()
    for attempt in inside:
        job = jobs.get(attempt.job)
        grace_us = job.spec.grace_us if job else 0
        if attempt.stop is None and lease.until_us - grace_us <= tx.now_us:
            stop(platform, tx, attempt, why="time limit", reason="its lease ends")
            told.add(attempt.node)
    return told


def _money(platform: Platform, tx: Transaction) -> set[str]:
    """End what no money is left for, each attempt after its checkpoint."""
    touched: set[str] = set()
    for step in look(platform, tx):
        for name in step.leases:
            lease = lease_of(tx.connection, name)
            if lease is None or lease.ended_us is not None:
                continue
            if lease.kind == "term" and lease.ending is None:
                change_lease(tx.connection, name, ending="budget")
            for attempt in open_attempts(tx.connection, lease=name):
                stop(platform, tx, attempt, why="budget", reason=step.words)
            touched.add(lease.node)
    return touched


def _runners(platform: Platform, tx: Transaction, running: list[AttemptRow]) -> set[str]:
    """Keep account of which runners are here; give up what ran where one has been away too long."""
    limits = platform.limits
    touched: set[str] = set()
    names = {row.node: row.name for row in all_nodes(tx.connection)}
    for node, runner in all_runners(tx.connection).items():
        _tell_presence(platform, tx, runner, names.get(node, node))
        if runner.seen_us > tx.now_us - limits.lost_us:
            platform.silence.heard(node)
            continue
        if platform.silence.lasted_us(node, platform.monotonic()) < limits.listened_us:
            continue
        for attempt in running:
            if attempt.node == node:
                _give_up(platform, tx, attempt, runner.seen_us)
                touched.add(node)
    return touched


def _give_up(platform: Platform, tx: Transaction, attempt: AttemptRow, seen_us: int) -> None:
    minutes = (tx.now_us - seen_us) // 60_000_000
    how = End(
        began_us=attempt.began_us,
        ended_us=max(seen_us, attempt.began_us or 0),
        wall_us=0,
        outcome="lost",
        cause="platform",
        reason=f"its node was not heard of for {minutes} minutes",
        given_up=True,
    )
    end(platform, tx, attempt, how)


def _tell_presence(platform: Platform, tx: Transaction, runner: RunnerRow, name: str) -> None:
    """State for which time a node was here: what is not leased of it then was free, and not unknown."""
    gone = runner.seen_us < tx.now_us - platform.limits.away_us
    until = runner.seen_us
    long_enough = until - runner.told_us >= platform.limits.free_us
    if until <= runner.told_us or not (gone or long_enough):
        return
    state = DeviceState(
        device=None, node=name, count=None, state="free", cause="its runner is here",
        channel=None, tenant=None, lease=None,
    )  # fmt: skip
    fact = stated(
        platform,
        state,
        subject=f"node:{name}",
        natural=f"node/{runner.node}/here/{runner.told_us}",
        at_us=runner.told_us,
        until_us=until,
    )
    tx.note([fact])
    put_runner(
        tx.connection,
        RunnerRow(
            node=runner.node,
            sequence=runner.sequence,
            seen_us=runner.seen_us,
            present_us=runner.present_us,
            told_us=until,
        ),
    )


def _idle(platform: Platform, tx: Transaction, running: list[AttemptRow]) -> set[str]:
    """Warn of GPUs that are held and stand idle; end the work where its tenant agreed to that and was warned."""
    jobs = jobs_by_id(tx.connection, [each.job for each in running])
    told: set[str] = set()
    for attempt in running:
        job = jobs.get(attempt.job)
        if job is None or attempt.stop is not None or not attempt.progress:
            continue
        held = Held(
            attempt=attempt.attempt,
            gpus=len(attempt.placed.devices),
            idle_us=attempt.progress.get("idle_us"),
            stop_idle_us=job.spec.stop_idle_us,
            warned_us=attempt.progress.get("warned_us"),
        )
        found = judge(held, platform.limits.idle, tx.now_us)
        if found.action == "warn":
            _warn(platform, tx, attempt, found.words)
        elif found.action == "stop":
            stop(platform, tx, attempt, why="idle", reason=found.words)
            told.add(attempt.node)
    return told


def _warn(platform: Platform, tx: Transaction, attempt: AttemptRow, words: str) -> None:
    """Tell the tenant: in its trail, and on the job itself for as long as that idleness lasts."""
    record(tx, platform, SERVER, "job.idle", org=attempt.org, target=attempt.job, detail=words)
    progress = {**(attempt.progress or {}), "warned_us": tx.now_us}
    change_attempt(tx.connection, attempt.attempt, progress=progress)


def _unhealthy(platform: Platform, tx: Transaction, running: list[AttemptRow]) -> set[str]:
    """End services whose health check has failed for too long; whether they start again is their own policy."""
    jobs = jobs_by_id(tx.connection, [each.job for each in running])
    told: set[str] = set()
    for attempt in running:
        job = jobs.get(attempt.job)
        ill_us = (attempt.progress or {}).get("ill_us", 0)
        if job is None or job.spec.health is None or attempt.stop is not None:
            continue
        if ill_us >= platform.limits.unhealthy_us:
            words = f"{job.spec.health} has not answered well for {ill_us // SECOND} s"
            stop(platform, tx, attempt, why="unhealthy", reason=words)
            told.add(attempt.node)
    return told
