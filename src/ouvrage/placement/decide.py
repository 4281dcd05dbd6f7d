"""The plan: what starts now and where, what is interrupted for whom, and why each other job waits.

Decides by asking the parts in turn: leases' own queues first (they use only what their tenant holds already), then the
open queue in order, keeping a node for each of the first jobs that cannot start. The same snapshot and moment give the
same plan, whatever the order of its tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ouvrage.model.selling import Placed
from ouvrage.placement.backfill import Promise, promise
from ouvrage.placement.order import Queue, lease_lines
from ouvrage.placement.places import Changes, Room, groups_of, lack, lease_room, rooms_of
from ouvrage.placement.preempt import Making, Victim, make_room, victims_of
from ouvrage.placement.reach import Reach, reach
from ouvrage.placement.snapshot import HOLDS, Lease, Needs, Snapshot, Waiting
from ouvrage.placement.why import Why

_MAINTAINED = "placement/maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a job here and now; ``lease`` is its own (None: open one of kind ``job``). ``by_us`` is when it has gone."""

    job: str
    placed: Placed
    lease: str | None
    by_us: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Interrupt an attempt, or (``attempt`` None) end a term lease, after its notice, so that ``for_job`` can start."""

    attempt: str | None
    lease: str
    for_job: str
    notice_us: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now. Every waiting job is in ``starts`` or in ``waits``, once."""

    starts: tuple[Start, ...] = ()
    preempt: tuple[Preempt, ...] = ()
    waits: tuple[Why, ...] = ()


def plan(snapshot: Snapshot, now_us: int) -> Plan:
    """Decide for every waiting job of a snapshot."""
    return Planning(snapshot, now_us).plan()


def grant(snapshot: Snapshot, needs: Needs, until_us: int | None, now_us: int) -> Placed | Why:
    """A place for a term lease until a moment (None: until it is ended), or why there is none."""
    planning = Planning(snapshot, now_us)
    planning.plan()
    return planning.grant(needs, until_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A job of the open queue that does not start, and how many before it do not either."""

    job: Waiting
    ahead: int
    ahead_own: int


class Kind:
    """What jobs of the same needs share in one plan: where they could run, by when it is known not to fit, what lacks."""

    __slots__ = ("hopeless", "lacks", "reach")

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.hopeless: set[int | None] = set()
        self.lacks: dict[int | None, tuple[str, dict[str, Any]]] = {}


class Planning:
    """One plan in the making; ``explain`` reads what led to it."""

    def __init__(self, snapshot: Snapshot, now_us: int) -> None:
        self.snapshot = snapshot
        self.now_us = now_us
        self._changes = Changes()
        self.rooms = rooms_of(snapshot, now_us, self._changes)
        self._groups = groups_of(self.rooms, self._changes)
        self.promises: dict[str, Promise] = {}
        self.blocked: list[Blocked] = []
        self._promised: dict[str, Promise] = {}
        self._kinds: dict[tuple[Needs, tuple[str, ...]], Kind] = {}
        self._kind_of: dict[str, Kind] = {}
        self._starts: list[Start] = []
        self._preempt: list[Preempt] = []
        self._waits: list[Why] = []
        self._noticed: set[str] = set()
        self._maintained = any(node.windows for node in snapshot.nodes)
        self._turned_over = now_us + snapshot.policy.turnover_us

    def plan(self) -> Plan:
        """Make it."""
        ready: list[Waiting] = []
        for job in sorted(self.snapshot.waiting, key=lambda job: job.job):
            kept = kept_back(job, self.now_us)
            if kept is None:
                ready.append(job)
            else:
                self._waits.append(kept)
        for lease, line in lease_lines(ready).items():
            self._lease(lease, line)
        self._open([job for job in ready if job.lease is None])
        self._tell()
        return Plan(
            starts=tuple(self._starts), preempt=tuple(self._preempt), waits=tuple(self._waits)
        )

    def by_us(self, job: Waiting, until_us: int | None = None) -> int | None:
        """When a job that starts now has gone at the latest, its grace and the cleaning counted."""
        if job.time_limit_us is None:
            return until_us
        policy = self.snapshot.policy
        by = self.now_us + job.time_limit_us + job.grace_us + policy.turnover_us
        return by if until_us is None else min(by, until_us)

    def lasts_us(self, job: Waiting) -> int | None:
        """How long a job of the open queue keeps its place at most; None where nothing says so."""
        by = self.by_us(job)
        return None if by is None else by - self.now_us

    def _clear(self, room: Room, by: int | None) -> bool:
        """Whether what begins now and has gone by a moment is over before the node's next maintenance."""
        lasts = None if by is None else by - self.now_us
        return room.node.clear_from(self.now_us, lasts) == self.now_us

    def grant(self, needs: Needs, until_us: int | None) -> Placed | Why:
        """A place for a term lease, once ``plan`` was made: it takes nothing from jobs that wait before it."""
        asking = Waiting(job="", project="", org="", needs=needs, submitted_us=self.now_us)
        able = self.reach(asking)
        if able.code is not None:
            return Why(job="", code=able.code, detail=able.detail)
        by = None if until_us is None else until_us + self.snapshot.policy.turnover_us
        # A lease without an end promises none: it may stand when a window begins, and what would run in it waits.
        found = self._find(asking, by, whole=by is None)
        if found is not None:
            return self._take(needs, *found, by)
        code, detail = self._lack(asking, by)
        if code == "placement/behind":
            detail = {"ahead": len(self.blocked)}
        return Why(job="", code=code, detail=detail)

    def reach(self, job: Waiting) -> Reach:
        """Where a job could ever run, or why nowhere."""
        return self._kind(job).reach

    def _kind(self, job: Waiting) -> Kind:
        """What jobs that need the same have in common; asked by id, since comparing needs takes longer."""
        kind = self._kind_of.get(job.job)
        if kind is None:
            key = (job.needs, job.not_on)
            kind = self._kinds.get(key)
            if kind is None:
                kind = Kind(reach(job.needs, job.not_on, self._groups, self._changes))
                self._kinds[key] = kind
            self._kind_of[job.job] = kind
        return kind

    def kept_for_another(self, node: str, job: str) -> bool:
        """Whether a node is kept for another job than this."""
        kept = self._promised.get(node)
        return kept is not None and kept.job.job != job

    def closed(self, room: Room, job: Waiting) -> tuple[int, int] | None:
        """The next window of a node that a job would run into, None where it would not."""
        if self._clear(room, self.by_us(job)):
            return None
        return next(each for each in room.node.windows if each[1] > self.now_us)

    # A lease's own queue

    def _lease(self, name: str, line: list[Waiting]) -> None:
        lease = self._standing_lease(name)
        node = next((n for n in self.snapshot.nodes if lease and n.node == lease.placed.node), None)
        if lease is None or node is None:
            code = "placement/lease-gone" if lease is None else "placement/fenced"
            self._waits += [Why(job=job.job, code=code) for job in line]
            return
        room = lease_room(self.snapshot, lease, node, self.now_us)
        ahead = 0
        for job in line:
            why = self._in_lease(job, lease, room, ahead)
            if why is not None:
                self._waits.append(why)
                ahead += why.code in ("placement/lease-busy", "placement/lease-behind")

    def _standing_lease(self, name: str) -> Lease | None:
        for lease in self.snapshot.leases:
            if lease.lease == name and lease.kind == "term":
                over = lease.until_us is not None and lease.until_us <= self.now_us
                return None if over else lease
        return None

    def _in_lease(self, job: Waiting, lease: Lease, room: Room, ahead: int) -> Why | None:
        """Start a job in its lease, or say why not; a job that can never fit holds nobody up."""
        if job.needs.isolation not in room.node.isolations:
            return Why(
                job=job.job,
                code="placement/isolation",
                detail={"isolation": job.needs.isolation},
            )
        short = lack(job.needs, [room.built])
        if short is not None:
            return Why(
                job=job.job,
                code="placement/lease-small",
                detail=_lacking(short.resource, short.needed, job.needs, most=short.most),
            )
        if room.node.fenced or room.whole.model_for(job.needs) is None:
            return Why(job=job.job, code="placement/fenced")
        if room.node.node in job.not_on:
            return Why(job=job.job, code="placement/failed-everywhere")
        if ahead:
            return Why(job=job.job, code="placement/lease-behind", detail={"ahead": ahead})
        model = room.free.model_for(job.needs)
        if model is None:
            return self._lease_busy(job, room)
        by = self.by_us(job, lease.until_us)
        if not self._clear(room, by):
            return Why(job=job.job, code=_MAINTAINED, detail=self._window([room], job, by))
        placed = room.place(job.needs, model, by)
        self._start(job, placed, lease.lease, by, "first in its lease's own queue")
        return None

    def _lease_busy(self, job: Waiting, room: Room) -> Why:
        short = lack(job.needs, [room.free])
        assert short is not None  # one stock that has enough of each fits
        by = next(
            (at for at, free in room.later(self.now_us) if free.model_for(job.needs) is not None),
            None,
        )
        detail = _lacking(short.resource, short.needed, job.needs, free=short.most, by=by)
        return Why(job=job.job, code="placement/lease-busy", detail=detail)

    # The open queue

    def _open(self, jobs: list[Waiting]) -> None:
        able: list[Waiting] = []
        for job in jobs:
            found = self.reach(job)
            if found.code is None:
                able.append(job)
            else:
                self._waits.append(Why(job=job.job, code=found.code, detail=found.detail))
        victims = victims_of(self.snapshot) if self.snapshot.policy.preemption else {}
        queue = Queue(self.snapshot, able, self.now_us)
        own: dict[str, int] = {}
        while (job := queue.take()) is not None:
            if self._try(job):
                queue.started(job)
                continue
            mine = own.get(job.project, 0)
            self.blocked.append(Blocked(job=job, ahead=len(self.blocked), ahead_own=mine))
            own[job.project] = mine + 1
            if len(self.blocked) <= self.snapshot.policy.promises:
                self._promise(job, victims)

    def _try(self, job: Waiting) -> bool:
        by = self.by_us(job)
        hopeless = self._kind(job).hopeless
        if by in hopeless:  # what is free only shrinks while a plan is made
            return False
        found = self._find(job, by)
        if found is None:
            hopeless.add(by)
            return False
        why = _out_of_turn(len(self.blocked)) if self.blocked else "next in order, and it fits"
        self._start(job, self._take(job.needs, *found, by), None, by, why)
        return True

    def _find(
        self, job: Waiting, by: int | None, *, whole: bool = False
    ) -> tuple[Room, str] | None:
        """The room to use for something that has gone by a moment, and which GPUs; no promise is made worse.

        ``whole``: it may stand through maintenance.
        """
        best: tuple[tuple[int, int, int, str], Room, str] | None = None
        for group in self.reach(job).groups:
            if group.best.model_for(job.needs) is None:
                continue
            for room in group.rooms:
                model = room.free.model_for(job.needs)
                if model is None:
                    continue
                kept = self._promised.get(room.node.node)
                if kept is not None and not kept.allows(job.needs, model, by):
                    continue
                if not whole and not self._clear(room, by):
                    continue
                rank = _tightness(room)
                if best is None or rank < best[0]:
                    best = (rank, room, model)
        return best and best[1:]

    def _take(self, needs: Needs, room: Room, model: str, by: int | None) -> Placed:
        kept = self._promised.get(room.node.node)
        if kept is not None:
            kept.taken(needs, model, by)
        return room.place(needs, model, by)

    def _start(
        self, job: Waiting, placed: Placed, lease: str | None, by: int | None, why: str
    ) -> None:
        self._starts.append(Start(job=job.job, placed=placed, lease=lease, by_us=by, why=why))

    def _promise(self, job: Waiting, victims: dict[str, list[Victim]]) -> None:
        open_rooms = [r for r in self.reach(job).rooms if r.node.node not in self._promised]
        made = promise(job, open_rooms, self.now_us, self.lasts_us(job))
        if made is None:
            return
        made = self._interrupt(job, open_rooms, victims, made)
        self.promises[job.job] = made
        self._promised[made.room.node.node] = made

    def _interrupt(
        self, job: Waiting, rooms: list[Room], victims: dict[str, list[Victim]], made: Promise
    ) -> Promise:
        """Where interrupting work gets the job a place sooner, do it on the node where it costs least."""
        options: list[tuple[tuple[int, int, int], str, Room, Making]] = []
        worth = self.snapshot.policy.worth_us
        for room in rooms:
            node = room.node.node
            making = make_room(job, room, victims.get(node, []), self._turned_over)
            if making and room.node.clear_from(making.at_us, self.lasts_us(job)) > making.at_us:
                continue  # nobody is interrupted for what could not start then
            if making and (made.at_us is None or making.at_us + worth <= made.at_us):
                options.append((making.cost, node, room, making))
        if not options:
            return made
        _, node, room, making = min(options, key=lambda option: option[:2])
        for victim in making.victims:
            victims[node].remove(victim)
            self._preempt.append(_preempted(victim, job))
        self._noticed.add(job.job)
        return Promise(job=job, room=room, at_us=making.at_us, spare=making.spare)

    # Reasons

    def _tell(self) -> None:
        """One reason for each job that is blocked, by what is free once everything has started."""
        for blocked in self.blocked:
            job = blocked.job
            kind, by = self._kind(job), self.by_us(job) if self._maintained else None
            if by not in kind.lacks:
                kind.lacks[by] = self._lack(job, by)
            code, detail = kind.lacks[by]
            told = {**detail, "ahead": blocked.ahead, "ahead_own": blocked.ahead_own, "by": None}
            kept = self.promises.get(job.job)
            if kept is None:
                self._waits.append(Why(job=job.job, code=code, detail=told))
                continue
            told["by"] = kept.at_us
            code = "placement/notice" if job.job in self._noticed else code
            owner = {"node": kept.room.node.node}
            self._waits.append(Why(job=job.job, code=code, detail=told, owner=owner))

    def _lack(self, job: Waiting, by: int | None) -> tuple[str, dict[str, Any]]:
        groups = self.reach(job).groups
        short = lack(job.needs, [group.best for group in groups])
        if short is not None:
            detail = _lacking(short.resource, short.needed, job.needs, free=short.most)
            return f"placement/waits-{short.resource}", detail
        fits = [
            room
            for group in groups
            if group.best.model_for(job.needs) is not None
            for room in group.rooms
            if room.free.model_for(job.needs) is not None
        ]
        if not fits:
            return "placement/waits-together", {}
        if any(self._clear(room, by) for room in fits):
            return "placement/behind", {}
        return _MAINTAINED, self._window(fits, job, by)

    def _window(self, rooms: list[Room], job: Waiting, by: int | None) -> dict[str, Any]:
        """What keeps a job back from rooms where it fits: the last moment by which it had to be gone, when one of them is open again."""
        now, lasts = self.now_us, None if by is None else by - self.now_us
        begin = [
            next(from_us for from_us, to_us in room.node.windows if to_us > now) for room in rooms
        ]
        over = min(room.node.clear_from(now, lasts) for room in rooms)
        return {"from": max(begin), "to": over, "limit_us": job.time_limit_us}


def _preempted(victim: Victim, job: Waiting) -> Preempt:
    return Preempt(
        attempt=victim.attempt,
        lease=victim.lease,
        for_job=job.job,
        notice_us=victim.notice_us,
        why="its terms let work that ranks before it have its place",
    )


def _tightness(room: Room) -> tuple[int, int, int, str]:
    """Which of several rooms to fill first: the one with fewest GPUs free, then cores, then memory."""
    free = room.free
    return (sum(free.gpus.values()), free.cpus, free.memory_mib, room.node.node)


def _out_of_turn(count: int) -> str:
    return f"{count} before it do not fit yet, and it makes no place that is kept for them later"


def _lacking(resource: str, needed: int, needs: Needs, **more: int | None) -> dict[str, Any]:
    gpu = {"gpu": needs.gpu} if resource == "gpu" and needs.gpu else {}
    return {"resource": resource, "needed": needed, **gpu, **more}


def kept_back(job: Waiting, now_us: int) -> Why | None:
    """Why a job may not even be tried; of several reasons the first in the order of ``HOLDS``."""
    if job.holds:
        hold = min(job.holds, key=lambda hold: (HOLDS.index(hold.kind), hold.words))
        detail: Mapping[str, Any] = {"words": hold.words}
        return Why(job=job.job, code=f"placement/{hold.kind}", detail=detail)
    if job.not_before_us > now_us:
        return Why(job=job.job, code="placement/paused", detail={"at": job.not_before_us})
    return None
