"""Why GPUs stood free: nobody waited, somebody waited whose job did not fit and for want of what, or a job that fits was not started.

Decides that a job waits from the moment at which the scheduler would have taken it (its dependencies and dates were met) until it
began or was withdrawn; that it fits a node where as many GPUs, cores and as much memory are free there as it asks for on each
of its nodes, and on as many nodes at once as it asks for; and that of several waiting jobs the one that fits best names the cause.
Only jobs that ask for GPUs count. How the scheduler chooses among those that fit (priority, backfill) is its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ouvrage.books.cluster_jobs import Attempt
from ouvrage.books.fleet.record import Fleet
from ouvrage.books.known import FOR_EVER
from ouvrage.books.spans import merged

NOBODY = "nobody waited"
NOT_YET = "a job that fits waited: not started yet"
HELD = "a job that fits waited, held by a limit"
CORES = "waiting jobs do not fit: the node's cores are taken"
MEMORY = "waiting jobs do not fit: the node's memory is taken"
TOO_FEW = "waiting jobs do not fit: they ask for more GPUs on one node"
AT_ONCE = "waiting jobs do not fit: they ask for more nodes at once"
_LIMITS = (
    "assoc",
    "qos",
    "max",
    "partition",
    "reqnodenotavail",
    "reservation",
    "licenses",
    "jobarraytasklimit",
)
"""How the scheduler's reasons begin that are rules and not want of room; held jobs and dependencies do not wait in our sense."""


class Free(NamedTuple):
    """``gpus`` of a node were free from one moment to another."""

    from_us: int
    to_us: int
    gpus: int


class Shape(NamedTuple):
    """What a waiting job asks for on each of its ``nodes``. ``rule`` is what kept it waiting other than room, if anything."""

    partitions: frozenset[str]
    nodes: int
    gpus: int
    cpus: int
    kib: int
    rule: str


@dataclass(slots=True)
class _Queue:
    """Who waited for some partitions: from each of ``begins`` on the ``shapes`` at its place, of which ``several`` ask for more nodes.

    ``known`` remembers answers.
    """

    begins: list[int]
    shapes: list[tuple[Shape, ...]]
    known: dict[tuple[int, int, int | None, int | None], str]
    several: list[list[Shape]] = field(init=False)

    def __post_init__(self) -> None:
        self.several = [[each for each in shapes if each.nodes > 1] for shapes in self.shapes]


class _Room(NamedTuple):
    """What was free of a node for a time, and the place in the queue of those that waited for it (-1: nobody)."""

    free: Free
    cpus: int | None
    kib: int | None
    place: int


def idle_causes(fleet: Fleet, free: Mapping[str, Sequence[Free]]) -> dict[tuple[str, str], int]:
    """GPU microseconds of each node by cause; those of a node add up to what was free of it."""
    waiting = list(_waiting(fleet))
    queues: dict[frozenset[str], _Queue] = {}
    rooms: dict[str, tuple[_Queue, list[_Room]]] = {}
    for node, spans in free.items():
        partitions = frozenset(fleet.nodes[node][-1].value.partitions)
        if partitions not in queues:
            ours = [each for each in waiting if each[2].partitions & partitions]
            queues[partitions] = _queue(ours)
        queue = queues[partitions]
        rooms[node] = (queue, list(_rooms(fleet, node, spans, queue)))
    at_once = _at_once(rooms.values())
    found: dict[tuple[str, str], int] = {}
    for node, (queue, ours) in rooms.items():
        for room in ours:
            for cause, us in _causes(room, queue, at_once):
                found[node, cause] = found.get((node, cause), 0) + us
    return found


def _waiting(fleet: Fleet) -> Iterator[tuple[int, int, Shape]]:
    """When each job waited, and for what."""
    for attempt in fleet.attempts:
        used = fleet.use(attempt)
        gpus = used.asked_gpus if used.asked_gpus is not None else attempt.gpus
        eligible = used.eligible_us
        begins = eligible if eligible is not None else _submitted(attempt, used.reason)
        ends = attempt.start_us if attempt.start_us is not None else attempt.until_us
        ends = FOR_EVER if ends is None else ends
        if gpus and begins is not None and begins < ends:
            nodes = max(1, used.nodes or attempt.known.value.node_count or 1)
            yield begins, ends, Shape(
                partitions=frozenset((attempt.partition or "").split(",")), nodes=nodes, gpus=-(-gpus // nodes),
                cpus=-(-(used.asked_cpus or 0) // nodes), kib=-(-(used.asked_kib or 0) // nodes), rule=_rule(used.reason),
            )  # fmt: skip


def _submitted(attempt: Attempt, reason: str | None) -> int | None:
    """Of a job of which nobody says when it might have begun: its submission, unless it is held or waits for another."""
    return None if attempt.start_us is None and reason and not _rule(reason) else attempt.submit_us


def _rule(reason: str | None) -> str:
    return reason if reason and reason.lower().startswith(_LIMITS) else ""


def _queue(waiting: Iterable[tuple[int, int, Shape]]) -> _Queue:
    """Which shapes waited when; their number does not matter, so that a queue of alike jobs is one step."""
    edges: dict[int, list[tuple[Shape, int]]] = {}
    for begins, ends, shape in waiting:
        edges.setdefault(begins, []).append((shape, 1))
        edges.setdefault(ends, []).append((shape, -1))
    times: list[int] = []
    waited: list[tuple[Shape, ...]] = []
    now: Counter[Shape] = Counter()
    before: set[Shape] = set()
    for at, changes in sorted(edges.items(), key=lambda edge: edge[0]):
        for shape, change in changes:
            now[shape] += change
            if not now[shape]:
                del now[shape]
        if now.keys() != before:
            before = set(now)
            times.append(at)
            waited.append(tuple(now))
    return _Queue(times, waited, {})


def _rooms(fleet: Fleet, node: str, spans: Sequence[Free], queue: _Queue) -> Iterator[_Room]:
    """Free time of a node cut where who waits, or what else is free of it, changes."""
    listing = fleet.nodes[node][-1].value
    taken = _taken(fleet, node)
    times = [at for at, _, _ in taken]
    memory = None if listing.memory_mib is None else listing.memory_mib * 1024
    for span in spans:
        edges = {span.from_us, span.to_us}
        for moments in (times, queue.begins):
            first, last = bisect_right(moments, span.from_us), bisect_left(moments, span.to_us)
            edges.update(moments[first:last])
        for begins, ends in pairwise(sorted(edges)):
            cpus, kib = _used_at(taken, times, begins)
            yield _Room(
                free=Free(begins, ends, span.gpus), cpus=None if listing.cpus is None else listing.cpus - cpus,
                kib=None if memory is None else memory - kib, place=bisect_right(queue.begins, begins) - 1,
            )  # fmt: skip


def _taken(fleet: Fleet, node: str) -> list[tuple[int, int, int]]:
    """From which moments on how many cores and how much memory of a node its jobs had, in order of time."""
    edges: dict[int, tuple[int, int]] = {}
    for attempt in fleet.by_node.get(node, ()):
        cpus = -(-(attempt.known.value.cpus or 0) // len(attempt.nodes))
        kib = -(-(fleet.use(attempt).memory_kib or 0) // len(attempt.nodes))
        ends = FOR_EVER if attempt.until_us is None else attempt.until_us
        for at, sign in ((attempt.start_us or 0, 1), (ends, -1)):
            before = edges.get(at, (0, 0))
            edges[at] = (before[0] + sign * cpus, before[1] + sign * kib)
    found: list[tuple[int, int, int]] = []
    cpus = kib = 0
    for at, (more, most) in sorted(edges.items()):
        cpus, kib = cpus + more, kib + most
        found.append((at, cpus, kib))
    return found


def _used_at(
    taken: Sequence[tuple[int, int, int]], times: Sequence[int], at_us: int
) -> tuple[int, int]:
    place = bisect_right(times, at_us) - 1
    return (0, 0) if place < 0 else taken[place][1:]


def _wants(room: _Room, shape: Shape) -> str | None:
    """What a shape lacks on a node; None where its share fits."""
    if shape.gpus > room.free.gpus:
        return TOO_FEW
    if room.cpus is not None and shape.cpus > room.cpus:
        return CORES
    return MEMORY if room.kib is not None and shape.kib > room.kib else None


def _at_once(
    rooms: Iterable[tuple[_Queue, Sequence[_Room]]],
) -> dict[Shape, list[tuple[int, int]]]:
    """When a shape of several nodes found room on as many as it asks for, at once."""
    edges: dict[Shape, dict[int, int]] = {}
    for queue, ours in rooms:
        fits: dict[Shape, list[tuple[int, int]]] = {}
        for room in ours if any(queue.several) else ():
            for shape in queue.several[room.place] if room.place >= 0 else ():
                if _wants(room, shape) is None:
                    fits.setdefault(shape, []).append(room.free[:2])
        for shape, spans in fits.items():
            for begins, ends in merged(spans):
                found = edges.setdefault(shape, {})
                found[begins], found[ends] = found.get(begins, 0) + 1, found.get(ends, 0) - 1
    return {shape: _enough(found, shape.nodes) for shape, found in edges.items()}


def _enough(edges: Mapping[int, int], wanted: int) -> list[tuple[int, int]]:
    count, spans = 0, list[tuple[int, int]]()
    for begins, ends in pairwise(sorted(edges)):
        count += edges[begins]
        if count >= wanted:
            spans.append((begins, ends))
    return merged(spans)


_ORDER = (NOT_YET, HELD, CORES, MEMORY, AT_ONCE, TOO_FEW, NOBODY)


def _causes(
    room: _Room, queue: _Queue, at_once: Mapping[Shape, Sequence[tuple[int, int]]]
) -> Iterator[tuple[str, int]]:
    """The causes of one stretch: the best for each part of it, as jobs of several nodes find room or not."""
    begins, ends, gpus = room.free
    shapes = queue.shapes[room.place] if room.place >= 0 else ()
    inside = {shape: at_once.get(shape, ()) for shape in shapes if shape.nodes > 1}
    if not inside:
        key = (room.place, gpus, room.cpus, room.kib)
        if key not in queue.known:
            queue.known[key] = _best(_cause(room, shape, None, begins) for shape in shapes)
        yield queue.known[key], gpus * (ends - begins)
        return
    edges = {at for spans in inside.values() for span in spans for at in span if begins < at < ends}
    for first, last in pairwise(sorted({begins, ends, *edges})):
        best = _best(_cause(room, shape, inside.get(shape), first) for shape in shapes)
        yield best, gpus * (last - first)


def _best(causes: Iterable[tuple[str, str]]) -> str:
    """The cause nearest to being started; of one that is held with the rule behind it."""
    cause, rule = min(causes, key=lambda each: _ORDER.index(each[0]), default=(NOBODY, ""))
    return f"{cause}: {rule}" if rule else cause


def _cause(
    room: _Room, shape: Shape, spans: Sequence[tuple[int, int]] | None, at_us: int
) -> tuple[str, str]:
    lacks = _wants(room, shape)
    if lacks is not None:
        return lacks, ""
    if spans is not None and not any(begins <= at_us < ends for begins, ends in spans):
        return AT_ONCE, ""
    return (HELD, shape.rule) if shape.rule else (NOT_YET, "")
