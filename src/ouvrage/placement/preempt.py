"""Which interruptible work makes room for a job that ranks before it, and what it is owed.

Decides the least that has to end on one node so that the job can start there, and asks for nothing where that is not
enough, where the work ranks as high, or where the job can start as soon without it. Everything interrupted gets the
notice its own terms promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.model.selling import Placed
from ouvrage.placement.places import Amounts, Room, amounts_of, model_name
from ouvrage.placement.snapshot import Lease, Running, Snapshot, Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """Something that may be interrupted: an attempt, or (``attempt`` None) a whole term lease."""

    attempt: str | None
    lease: str
    project: str
    placed: Placed
    started_us: int
    standing: int
    priority: int
    notice_us: int

    def ranks_below(self, job: Waiting) -> bool:
        """Whether the job goes before it: by standing, or within one project by priority."""
        own = self.project == job.project and self.attempt is not None
        return self.standing < job.standing or (
            own and self.standing == job.standing and self.priority < job.priority
        )

    @property
    def cost(self) -> tuple[int, int, int, str]:
        """The order in which work is interrupted: the lowest rank first, of equals what began last."""
        return (self.standing, self.priority, -self.started_us, self.attempt or self.lease)


def victims_of(snapshot: Snapshot) -> dict[str, list[Victim]]:
    """What may be interrupted at all, by node, in the order in which it would be."""
    terms = {lease.lease for lease in snapshot.leases if lease.kind == "term"}
    found: dict[str, list[Victim]] = {}
    for running in snapshot.running:
        if running.interruptible and not running.stopping and running.lease not in terms:
            found.setdefault(running.placed.node, []).append(_attempt(running))
    for lease in snapshot.leases:
        if lease.interruptible and not lease.stopping and lease.kind == "term":
            found.setdefault(lease.placed.node, []).append(_lease(lease))
    return {node: sorted(all_of, key=lambda victim: victim.cost) for node, all_of in found.items()}


def _attempt(running: Running) -> Victim:
    return Victim(
        attempt=running.attempt,
        lease=running.lease,
        project=running.project,
        placed=running.placed,
        started_us=running.started_us,
        standing=running.standing,
        priority=running.priority,
        notice_us=running.notice_us,
    )


def _lease(lease: Lease) -> Victim:
    return Victim(
        attempt=None,
        lease=lease.lease,
        project=lease.project,
        placed=lease.placed,
        started_us=lease.started_us,
        standing=lease.standing,
        priority=0,
        notice_us=lease.notice_us,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What has to end on a node for a job, by when it has at the latest, and what is spare there then."""

    victims: tuple[Victim, ...]
    at_us: int
    spare: Amounts

    @property
    def cost(self) -> tuple[int, int, int]:
        """Which of several nodes to choose: the lowest rank interrupted, the fewest, the soonest."""
        return (max(v.standing for v in self.victims), len(self.victims), self.at_us)


def make_room(job: Waiting, room: Room, victims: Sequence[Victim], from_us: int) -> Making | None:
    """The least of ``victims`` (in the order of their cost) whose end lets a job start in a room.

    ``from_us`` is when all could have gone if none were owed notice. None where not even all of them are enough.
    """
    free = room.free.copy()
    chosen: list[Victim] = []
    for victim in (victim for victim in victims if victim.ranks_below(job)):
        if free.model_for(job.needs) is not None:
            break
        free.add(_given_back(victim, room))
        chosen.append(victim)
    for victim in reversed(chosen.copy()):  # the dearest first: spare what is not needed
        without = free.copy()
        without.add(_given_back(victim, room), -1)
        if without.model_for(job.needs) is not None:
            free = without
            chosen.remove(victim)
    model = free.model_for(job.needs)
    if model is None or not chosen:
        return None
    free.add(amounts_of(job.needs, model), -1)
    at = from_us + max(victim.notice_us for victim in chosen)
    return Making(victims=tuple(chosen), at_us=at, spare=free)


def _given_back(victim: Victim, room: Room) -> Amounts:
    fenced = {d.device for d in room.node.devices if d.fenced}
    models = {d.device: model_name(d.model, d.memory_mib) for d in room.node.devices}
    gpus: dict[str, int] = {}
    for device in victim.placed.devices:
        if device in models and device not in fenced:
            gpus[models[device]] = gpus.get(models[device], 0) + 1
    return Amounts(
        gpus=gpus,
        cpus=len(set(victim.placed.cpus) & set(room.node.cpus)),
        memory_mib=victim.placed.memory_mib,
        disk_mib=victim.placed.disk_mib,
    )
