"""What fits where: whole GPUs of one model, whole cores by number, memory and scratch, on one node.

Decides whether something fits, what is missing, and which devices and cores it gets. Nothing is ever given out twice:
what is held is taken out of what is free, and a fenced device is never free. Who may have it is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ouvrage.model.selling import Placed
from ouvrage.placement.snapshot import Device, Lease, Needs, Node, Running, Snapshot
from ouvrage.pricing.market.gpus import model_of

NO_GPU = ""
"""The model of what takes no GPU."""


@lru_cache(maxsize=4096)
def model_name(text: str, memory_mib: int | None = None) -> str:
    """The one name of a GPU model, however a node or an offer spells it."""
    return model_of(text, memory_mib)


@dataclass(slots=True, kw_only=True)
class Amounts:
    """How much of each thing: GPUs by model, cores, MiB of memory and of scratch."""

    gpus: dict[str, int] = field(default_factory=dict)
    cpus: int = 0
    memory_mib: int = 0
    disk_mib: int = 0

    def copy(self) -> Amounts:
        """The same amounts, changed apart from these."""
        return Amounts(
            gpus=dict(self.gpus),
            cpus=self.cpus,
            memory_mib=self.memory_mib,
            disk_mib=self.disk_mib,
        )

    def add(self, other: Amounts, sign: int = 1) -> None:
        """Add (or with ``sign`` -1 take away) other amounts."""
        for model, count in other.gpus.items():
            self.gpus[model] = self.gpus.get(model, 0) + sign * count
        self.cpus += sign * other.cpus
        self.memory_mib += sign * other.memory_mib
        self.disk_mib += sign * other.disk_mib

    def model_for(self, needs: Needs) -> str | None:
        """The model that these amounts can meet ``needs`` with, ``NO_GPU`` where none is asked for; None: they cannot.

        Of several, the one of which fewest would be left, so that the larger stock stays whole.
        """
        if (
            self.cpus < needs.cpus
            or self.memory_mib < needs.memory_mib
            or self.disk_mib < needs.disk_mib
        ):
            return None
        if not needs.gpus:
            return NO_GPU
        if needs.gpu is not None:
            model = model_name(needs.gpu)
            return model if self.gpus.get(model, 0) >= needs.gpus else None
        able = [(n, model) for model, n in self.gpus.items() if n >= needs.gpus]
        return min(able)[1] if able else None

    def of(self, resource: str, gpu: str | None) -> int:
        """How much of ``gpu``, ``cpu``, ``memory`` or ``disk``; of GPUs those of one model, the best one if none is named."""
        if resource == "gpu":
            if gpu is not None:
                return self.gpus.get(model_name(gpu), 0)
            return max(self.gpus.values(), default=0)
        return {"cpu": self.cpus, "memory": self.memory_mib, "disk": self.disk_mib}[resource]


def asked(needs: Needs) -> dict[str, int]:
    """What is asked for, by resource, in the order in which a lack is told."""
    return {
        "gpu": needs.gpus,
        "cpu": needs.cpus,
        "memory": needs.memory_mib,
        "disk": needs.disk_mib,
    }


def amounts_of(needs: Needs, model: str) -> Amounts:
    """``needs`` as amounts, its GPUs of this model."""
    return Amounts(
        gpus={model: needs.gpus} if needs.gpus else {},
        cpus=needs.cpus,
        memory_mib=needs.memory_mib,
        disk_mib=needs.disk_mib,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """One thing of which there is too little: what is needed, and the most that there is."""

    resource: str
    needed: int
    most: int


def lack(needs: Needs, stocks: Iterable[Amounts]) -> Lack | None:
    """The first thing of which no stock has enough by itself; None where each thing is enough somewhere."""
    held = list(stocks)
    for resource, needed in asked(needs).items():
        most = max((stock.of(resource, needs.gpu) for stock in held), default=0)
        if most < needed:
            return Lack(resource=resource, needed=needed, most=max(most, 0))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Something that ends: by when (None: nothing says) and what is free then."""

    by_us: int | None
    amounts: Amounts


@dataclass(slots=True)
class Changes:
    """How often anything was given out in some rooms, so that a sum over them is made again only then."""

    count: int = 0


class Room:
    """What is free on a node, or inside a lease, and what will be when.

    ``whole`` is what it has when nothing runs, fenced devices left out; ``built`` with them.
    """

    __slots__ = (
        "_changes",
        "_cpus",
        "_devices",
        "_models",
        "_releases",
        "_sorted",
        "built",
        "free",
        "node",
        "whole",
    )

    def __init__(
        self,
        node: Node,
        devices: Iterable[Device],
        cpus: Iterable[int],
        memory_mib: int,
        disk_mib: int,
        changes: Changes | None = None,
    ) -> None:
        self.node = node
        self._changes = changes or Changes()
        self._models = {d.device: model_name(d.model, d.memory_mib) for d in devices}
        fenced = {d.device for d in devices if d.fenced}
        self._devices = sorted(d for d in self._models if d not in fenced)
        self._cpus = sorted(set(cpus))
        self.built = Amounts(
            gpus=_counted(self._models.values()),
            cpus=len(self._cpus),
            memory_mib=memory_mib,
            disk_mib=disk_mib,
        )
        self.whole = self.built.copy()
        self.whole.gpus = _counted(self._models[d] for d in self._devices)
        self.free = self.whole.copy()
        self._releases: list[Release] = []
        self._sorted = True

    def hold(self, placed: Placed, by_us: int | None) -> Release:
        """Take what something holds out of what is free; what it gives back, and by when."""
        devices = set(placed.devices) & set(self._devices)
        cpus = set(placed.cpus) & set(self._cpus)
        self._devices = [d for d in self._devices if d not in devices]
        self._cpus = [c for c in self._cpus if c not in cpus]
        amounts = Amounts(
            gpus=_counted(self._models[d] for d in devices),
            cpus=len(cpus),
            memory_mib=placed.memory_mib,
            disk_mib=placed.disk_mib,
        )
        self.free.add(amounts, -1)
        self._changes.count += 1
        release = Release(by_us=by_us, amounts=amounts)
        self._releases.append(release)
        self._sorted = False
        return release

    def place(self, needs: Needs, model: str, by_us: int | None) -> Placed:
        """Give ``needs`` its devices and cores, the lowest numbers; it must fit."""
        devices = [d for d in self._devices if self._models[d] == model][: needs.gpus]
        placed = Placed(
            node=self.node.node,
            devices=tuple(devices),
            cpus=tuple(self._cpus[: needs.cpus]),
            memory_mib=needs.memory_mib,
            disk_mib=needs.disk_mib,
        )
        assert len(placed.devices) == needs.gpus
        assert len(placed.cpus) == needs.cpus
        self.hold(placed, by_us)
        return placed

    def ends(self) -> list[Release]:
        """Everything with a known end, soonest first."""
        if not self._sorted:
            self._releases.sort(key=lambda r: (r.by_us is None, r.by_us or 0))
            self._sorted = True
        return [release for release in self._releases if release.by_us is not None]

    def later(self, now_us: int) -> Iterator[tuple[int, Amounts]]:
        """What is free now, and after each moment at which something ends at the latest."""
        free = self.free.copy()
        at = now_us
        for release in self.ends():
            by = release.by_us or now_us
            if by > at:
                yield at, free
                at = by
            free.add(release.amounts)
        yield at, free


def _counted(models: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for model in models:
        counts[model] = counts.get(model, 0) + 1
    return counts


class Group:
    """Rooms that are alike when nothing runs in them, and the most that is free of each thing in any of them."""

    __slots__ = ("_best", "_changes", "_seen", "rooms")

    def __init__(self, rooms: Sequence[Room], changes: Changes) -> None:
        self.rooms = tuple(rooms)
        self._changes = changes
        self._seen = -1
        self._best = Amounts()

    @property
    def best(self) -> Amounts:
        """What does not fit into this fits into none of the rooms."""
        if self._seen != self._changes.count:
            self._best = _most(room.free for room in self.rooms)
            self._seen = self._changes.count
        return self._best


def _most(stocks: Iterable[Amounts]) -> Amounts:
    most = Amounts()
    for stock in stocks:
        for model, count in stock.gpus.items():
            most.gpus[model] = max(count, most.gpus.get(model, 0))
        most.cpus = max(most.cpus, stock.cpus)
        most.memory_mib = max(most.memory_mib, stock.memory_mib)
        most.disk_mib = max(most.disk_mib, stock.disk_mib)
    return most


def groups_of(rooms: Mapping[str, Room], changes: Changes) -> list[Group]:
    """The rooms by how they are built, so that what can run where is asked once for all that are alike."""
    alike: dict[object, list[Room]] = {}
    for room in rooms.values():
        node = room.node
        key = (_key(room.built), _key(room.whole), node.fenced, node.listed, node.isolations)
        alike.setdefault(key, []).append(room)
    return [Group(rooms, changes) for rooms in alike.values()]


def _key(amounts: Amounts) -> object:
    gpus = tuple(sorted(amounts.gpus.items()))
    return (gpus, amounts.cpus, amounts.memory_mib, amounts.disk_mib)


def rooms_of(snapshot: Snapshot, now_us: int, changes: Changes) -> dict[str, Room]:
    """Each node's room, with term leases and attempts outside them taken out."""
    rooms = {
        node.node: Room(node, node.devices, node.cpus, node.memory_mib, node.disk_mib, changes)
        for node in sorted(snapshot.nodes, key=lambda node: node.node)
    }
    late = now_us + snapshot.policy.turnover_us
    terms = {lease.lease for lease in snapshot.leases if lease.kind == "term"}
    for lease in snapshot.leases:
        if lease.lease in terms and lease.placed.node in rooms:
            rooms[lease.placed.node].hold(
                lease.placed, gone_by(lease, lease.until_us, now_us, late)
            )
    for running in snapshot.running:
        if running.lease not in terms and running.placed.node in rooms:
            by = gone_by(running, running.ends_by_us, now_us, late)
            rooms[running.placed.node].hold(running.placed, by)
    return rooms


def gone_by(what: Running | Lease, by_us: int | None, now_us: int, late_us: int) -> int | None:
    """When something has gone at the latest: what was told to end, once its notice is over; what is overdue, soon."""
    if what.stopping:
        soon = late_us + what.notice_us
        return soon if by_us is None or by_us <= now_us else min(by_us, soon)
    return late_us if by_us is not None and by_us <= now_us else by_us


def lease_room(snapshot: Snapshot, lease: Lease, node: Node, now_us: int) -> Room:
    """The room inside a term lease, with its own attempts taken out."""
    devices = [d for d in node.devices if d.device in set(lease.placed.devices)]
    cpus = [c for c in lease.placed.cpus if c in set(node.cpus)]
    room = Room(node, devices, cpus, lease.placed.memory_mib, lease.placed.disk_mib)
    late = now_us + snapshot.policy.turnover_us
    for running in snapshot.running:
        if running.lease == lease.lease:
            room.hold(running.placed, gone_by(running, running.ends_by_us, now_us, late))
    return room
