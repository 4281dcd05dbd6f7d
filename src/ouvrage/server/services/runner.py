"""What the server answers a node's runner: what it is to do, and up to where its account is had.

Decides which orders a runner is given, from what stands in the tables and what the runner says it knows: a start until it is known there, a
stop until it shows, a word to forget once all is here. Events count once, by their place in the runner's sequence. An attempt that a runner
knew and, for a while, knows no more, is lost; one that the server does not expect is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ouvrage.model.machines import DeviceSeen, NodeEnrolled
from ouvrage.model.work import CAUSES, ISOLATIONS, OUTCOMES, Named, Peaks
from ouvrage.server.context import Actor, Platform
from ouvrage.server.engine import never_sent
from ouvrage.server.errors import conflict, unknown, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.attempts import End, begin, end
from ouvrage.server.services.logs import Place, append, keep
from ouvrage.server.services.snapshots import time_limit
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.machines import (
    NodeRow,
    RunnerRow,
    move_sequence,
    node_called,
    put_node,
    put_runner,
    runner_of,
)
from ouvrage.store.platform.selling import lease_of, offers_by_id
from ouvrage.store.platform.work import (
    AttemptRow,
    JobRow,
    attempt_of,
    change_attempt,
    jobs_by_id,
    node_attempts,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.runner import (
    Ask,
    Began,
    Ended,
    Event,
    File,
    Forget,
    Held,
    Inventory,
    Order,
    Pair,
    Progress,
    Received,
    Standing,
    Start,
    Stop,
    Used,
)

_FAR = {"ordered": 0, "starting": 1, "running": 2, "stopping": 3, "scrubbing": 4, "ended": 5}
UNEXPECTED = "the server does not expect this attempt here"


def seen_of(node: str, inventory: Inventory) -> NodeEnrolled:
    """An inventory as the fact about a node."""
    return NodeEnrolled(
        node=node,
        name=inventory.name,
        cpus=tuple(sorted(set(inventory.cpus))),
        memory_mib=inventory.memory_mib,
        disk_mib=inventory.disk_mib,
        devices=tuple(
            DeviceSeen(device=d.device, slot=d.slot, model=d.model, memory_mib=d.memory_mib)
            for d in inventory.devices
        ),
        isolations=tuple(name for name in ISOLATIONS if name in inventory.isolations),
        cgroup=inventory.cgroup,
        boot=inventory.boot,
        version=inventory.version,
    )


def hear(tx: Transaction, platform: Platform, node: str, ask: Ask) -> bool:
    """Take note of what a runner says of itself when it asks: that it is here, what it has, how far it is.

    Whether something ended by that.
    """
    _note_presence(tx, platform, node)
    if ask.inventory is not None:
        _note_inventory(tx, platform, node, ask.inventory)
    ours = node_attempts(tx.connection, node)
    known = {each.attempt: each for each in ask.known}
    ended = [_note_standing(tx, platform, row, known.get(row.attempt)) for row in ours.values()]
    return any(ended)


def tell_ended(platform: Platform) -> None:
    """Let the engine look: something came free."""
    platform.wakes.tell(ENGINE)


def _note_presence(tx: Transaction, platform: Platform, node: str) -> None:
    before = runner_of(tx.connection, node)
    now = tx.now_us
    here = before is not None and before.seen_us >= now - platform.limits.away_us
    put_runner(
        tx.connection,
        RunnerRow(
            node=node,
            sequence=before.sequence if before else 0,
            seen_us=now,
            present_us=before.present_us if before and here else now,
            told_us=before.told_us if before and here else now,
        ),
    )


def _note_inventory(tx: Transaction, platform: Platform, node: str, inventory: Inventory) -> None:
    row = node_called(tx.connection, node)
    if row is None:
        return
    seen = seen_of(node, inventory)
    if seen.name != row.name:
        raise conflict(
            "node/name",
            f"this node enrolled as {row.name} and now calls itself {seen.name}",
            hint="keep the name, or enrol it anew",
            field="inventory.name",
        )
    if seen != row.seen:
        put_node(tx.connection, NodeRow(seen=seen, listed=row.listed, enrolled_us=row.enrolled_us))
        tx.note([stated(platform, seen, subject=f"node:{seen.name}", at_us=tx.now_us)])


def _note_standing(
    tx: Transaction, platform: Platform, attempt: AttemptRow, known: Standing | None
) -> bool:
    if known is None:
        return _note_absence(tx, platform, attempt)
    changed: dict[str, object] = {}
    if attempt.known_us is None:
        changed["known_us"] = tx.now_us
    if attempt.missing_us is not None:
        changed["missing_us"] = None
    # How far it is goes forward only, and its beginning and end come as events with their times.
    if known.state in ("starting", "scrubbing") and _FAR[known.state] > _FAR[attempt.state]:
        changed["state"] = known.state
    if changed:
        change_attempt(tx.connection, attempt.attempt, **changed)
    return False


def _note_absence(tx: Transaction, platform: Platform, attempt: AttemptRow) -> bool:
    """The runner does not know it: not yet, not any more, or it was told to forget."""
    if attempt.over:
        change_attempt(tx.connection, attempt.attempt, forgotten=1)
    elif attempt.known_us is None:
        if attempt.stop is not None:
            never_sent(platform, tx, attempt)
            return True
    elif attempt.missing_us is None:
        change_attempt(tx.connection, attempt.attempt, missing_us=tx.now_us)
    elif attempt.missing_us <= tx.now_us - platform.limits.missing_us:
        how = End(
            began_us=attempt.began_us,
            ended_us=tx.now_us,
            wall_us=0,
            outcome="lost",
            cause="platform",
            reason="its runner knew it and knows it no more",
        )
        return end(platform, tx, attempt, how)
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """What a runner said that it knows, by attempt."""

    known: Mapping[str, Standing]

    @staticmethod
    def of(known: Sequence[Standing]) -> Standings:
        """From its question."""
        return Standings(known={each.attempt: each for each in known})


def orders(connection: Connection, platform: Platform, node: str, told: Standings) -> list[Order]:
    """What a runner is to do now."""
    ours = node_attempts(connection, node)
    jobs = jobs_by_id(connection, [each.job for each in ours.values()])
    found: list[Order] = []
    for attempt in ours.values():
        job = jobs.get(attempt.job)
        known = told.known.get(attempt.attempt)
        if job is not None:
            found += _orders_of(connection, platform, attempt, job, known)
    for known in told.known.values():
        if known.attempt not in ours:
            found.append(_unexpected(known))
    return found


def _orders_of(
    connection: Connection,
    platform: Platform,
    attempt: AttemptRow,
    job: JobRow,
    known: Standing | None,
) -> list[Order]:
    if attempt.over:
        return [] if known is None else [_unexpected(known)]
    if known is None:
        fresh = attempt.known_us is None and attempt.stop is None
        return [start_order(connection, platform, attempt, job)] if fresh else []
    if attempt.stop is not None and known.state in ("starting", "running"):
        return [_stop_order(attempt)]
    return []


def _stop_order(attempt: AttemptRow) -> Stop:
    return Stop.model_validate(
        {
            "attempt": attempt.attempt,
            "why": attempt.stop,
            "reason": attempt.stop_reason or "",
            "grace_us": attempt.stop_grace_us or 0,
        }
    )


def _unexpected(known: Standing) -> Order:
    """It is over here, or was never ours: it ends there too, and is forgotten then."""
    if known.state == "ended":
        return Forget(attempt=known.attempt)
    return Stop(attempt=known.attempt, why="cancelled", reason=UNEXPECTED, grace_us=0)


def start_order(
    connection: Connection, platform: Platform, attempt: AttemptRow, job: JobRow
) -> Start:
    """The order to execute an attempt: what its job asks, where it was placed, as long as it may last."""
    spec = job.spec
    lease = lease_of(connection, attempt.lease)
    offer_id = job.offer or (lease.offer if lease else "")
    offer = offers_by_id(connection, [offer_id]).get(offer_id)
    terms = None if offer is None else offer.terms
    return Start.model_validate(
        {
            "attempt": attempt.attempt,
            "job": job.job,
            "project": job.project,
            "lease": attempt.lease,
            "label": job.name,
            "isolation": spec.isolation,
            "command": list(spec.command),
            "image": spec.image,
            "workdir": spec.workdir,
            "environment": _pairs(spec.environment),
            "secrets": _pairs(spec.secrets),
            "inputs": [File(path=f.path, name=f.name) for f in spec.inputs],
            "outputs": [File(path=f.path, name=f.name) for f in spec.outputs],
            "volumes": [File(path=f.path, name=f.name) for f in spec.volumes],
            "checkpoint": spec.checkpoint,
            "devices": list(attempt.placed.devices),
            "cpus": list(attempt.placed.cpus),
            "memory_mib": attempt.placed.memory_mib,
            "disk_mib": attempt.placed.disk_mib,
            "pids": platform.limits.processes,
            "network": spec.network,
            "egress": list(spec.egress),
            "port": spec.port,
            "health": spec.health,
            "unit": spec.unit,
            "unit_regex": spec.unit_regex,
            "price": None
            if terms is None or terms.rate is None
            else f"{terms.rate} {terms.currency}/h",
            "time_limit_us": _left(job, time_limit(job, terms), lease and lease.until_us, platform),
            "grace_us": spec.grace_us,
            "log_limit_bytes": platform.limits.log_bytes,
            "not_before": attempt.ordered_us,
        }
    )


def _left(
    job: JobRow, limit_us: int | None, until_us: int | None, platform: Platform
) -> int | None:
    """How long it may last: its own limit, and no longer than its lease."""
    if until_us is None:
        return limit_us
    left = max(0, until_us - job.spec.grace_us - platform.clock())
    return left if limit_us is None else min(left, limit_us)


def _pairs(named: Sequence[Named]) -> list[Pair]:
    return [Pair(name=each.name, value=each.value) for each in named]


def unsent(given: Sequence[Order]) -> bool:
    """Whether there is anything in these orders to note."""
    return any(isinstance(order, Start) for order in given)


def sent(tx: Transaction, given: Sequence[Order]) -> None:
    """Note which attempts go out to their runner, before they do."""
    for order in given:
        if isinstance(order, Start):
            attempt = attempt_of(tx.connection, order.attempt)
            if attempt is not None and attempt.sent_us is None:
                change_attempt(tx.connection, order.attempt, sent_us=tx.now_us)


def receive(platform: Platform, node: str, events: Sequence[Event]) -> Received:
    """Take a runner's events, each once and in their order; answer with the last one that is had."""
    with platform.writing() as tx:
        runner = runner_of(tx.connection, node)
        if runner is None:
            raise conflict("node/unknown", "this node has not enrolled", hint="ouvrage node enrol")
        last, told = runner.sequence, set[str]()
        for event in events:
            if event.sequence <= last:
                continue
            if event.sequence != last + 1:
                raise _gap(last, event.sequence)
            _take(tx, platform, node, event, told)
            last = event.sequence
        if last != runner.sequence:
            move_sequence(tx.connection, node, last)
    if told:
        platform.wakes.tell(ENGINE, f"node:{node}", *told)
    return Received(sequence=last)


def _gap(last: int, found: int) -> Exception:
    return conflict(
        "runner/gap",
        f"event {last + 1} is due, and {found} came",
        hint=f"send everything after {last}, in order",
        field="sequence",
    )


def _take(tx: Transaction, platform: Platform, node: str, event: Event, told: set[str]) -> None:
    if isinstance(event, Held):  # whose place it is, and whether it is one, Slurm will say
        told.add(f"place:{event.attempt}")
        return
    attempt = attempt_of(tx.connection, event.attempt)
    if attempt is None or attempt.node != node:
        detail = f"a runner reported {event.event} of an attempt that is not its own"
        actor = Actor(kind="node", id=node, login=f"node:{node}")
        record(
            tx, platform, actor, "attempt.strange", org=None, target=event.attempt, detail=detail
        )
        return
    if isinstance(event, Began):
        begin(platform, tx, attempt, event.at)
    elif isinstance(event, Progress):
        _progress(tx, attempt, event)
    else:
        _ended(tx, platform, attempt, event)
    told.update((f"log:{attempt.attempt}", f"job:{attempt.job}"))


def _progress(tx: Transaction, attempt: AttemptRow, event: Progress) -> None:
    if attempt.over:
        return
    said = event.model_dump(mode="json", exclude={"event", "sequence", "attempt"})
    before = attempt.progress or {}
    if "warned_us" in before and event.idle_us >= before.get("idle_us", 0):
        said["warned_us"] = before["warned_us"]  # of the same idleness, which goes on
    change_attempt(tx.connection, attempt.attempt, progress=said)


def _ended(tx: Transaction, platform: Platform, attempt: AttemptRow, event: Ended) -> None:
    if event.outcome not in OUTCOMES or event.cause not in CAUSES:
        raise unreadable(
            "runner/outcome",
            f"{event.outcome!r} because of {event.cause!r} is no known end of an attempt",
            hint=f"outcomes are {', '.join(OUTCOMES)}; causes {', '.join(CAUSES)}",
            field="outcome",
        )
    how = End(
        began_us=event.began,
        ended_us=event.ended,
        wall_us=event.wall_us,
        outcome=event.outcome,
        cause=event.cause,
        reason=event.reason,
        exit_code=event.exit_code,
        signal=event.signal,
        isolation=event.isolation,
        peaks=_peaks(event.used),
        scrub=event.scrub,
        scrub_detail=event.scrub_detail,
    )
    keep(platform.files_dir, attempt.attempt)
    if not end(platform, tx, attempt, how):
        _too_late(tx, platform, attempt, event)


def _too_late(tx: Transaction, platform: Platform, attempt: AttemptRow, event: Ended) -> None:
    """It had been given up. What really came of it is kept beside, and changes no bill."""
    detail = f"ended as {attempt.outcome}; its runner says later: {event.outcome}, {event.reason}"
    actor = Actor(kind="node", id=attempt.node, login=f"node:{attempt.node}")
    record(
        tx, platform, actor, "attempt.late", org=attempt.org, target=attempt.attempt, detail=detail
    )


def _peaks(used: Used) -> Peaks:
    return Peaks(**used.model_dump())


def take_log(platform: Platform, node: str, attempt: str, offset: int, content: bytes) -> Place:
    """Append to the log of a node's own attempt, and wake whoever reads it."""
    with platform.reading() as connection:
        row = attempt_of(connection, attempt)
    if row is None or row.node != node:
        raise unknown("attempt", attempt)
    limit = platform.limits.log_bytes
    place = append(platform.files_dir, attempt, offset, content, limit=limit)
    platform.wakes.tell(f"log:{attempt}")
    return place
