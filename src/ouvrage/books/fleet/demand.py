"""Why GPUs stood free: nobody waited, somebody waited whose job did not fit and for want of what, or a job that fits was not started.

Decides that a job waits from the moment at which the scheduler would have taken it (its dependencies and dates were met) until it
began or was withdrawn; that it fits a node where as many GPUs, cores and as much memory are free there as it asks for on each
of its nodes, and on as many nodes at once as it asks for; and that of several waiting jobs the one that fits best names the cause.
Only jobs that ask for GPUs count. How the scheduler chooses among those that fit (priority, backfill) is its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Step:
    from_us: int
    to_us: int
    shapes: tuple[Shape, ...]


class _Room(NamedTuple):
    """What was free of a node for a time; ``shapes`` those that waited for it."""

    free: Free
    cpus: int | None
    kib: int | None
    shapes: tuple[Shape, ...]


def idle_causes(fleet: Fleet, free: Mapping[str, Sequence[Free]]) -> dict[tuple[str, str], int]:
    """GPU microseconds of each node by cause; those of a node add up to what was free of it."""
    waiting = list(_waiting(fleet))
    steps: dict[frozenset[str], list[_Step]] = {}
    rooms: dict[str, list[_Room]] = {}
    for node, spans in free.items():
        partitions = frozenset(fleet.nodes[node][-1].value.partitions)
        if partitions not in steps:
            steps[partitions] = _steps(
                [each for each in waiting if each[2].partitions & partitions]
            )
        rooms[node] = list(_rooms(fleet, node, spans, steps[partitions]))
    at_once = _at_once(rooms)
    found: dict[tuple[str, str], int] = {}
    for node, each in ((node, room) for node, ours in rooms.items() for room in ours):
        for cause, us in _causes(each, at_once):
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


def _steps(waiting: Iterable[tuple[int, int, Shape]]) -> list[_Step]:
    """Which shapes waited when; their number does not matter, so that a queue of alike jobs is one step."""
    edges: dict[int, list[tuple[Shape, int]]] = {}
    for begins, ends, shape in waiting:
        edges.setdefault(begins, []).append((shape, 1))
        edges.setdefault(ends, []).append((shape, -1))
    found: list[_Step] = []
    now: Counter[Shape] = Counter()
    for begins, ends in pairwise(sorted(edges)):
        for shape, change in edges[begins]:
            now[shape] += change
            if not now[shape]:
                del now[shape]
        shapes = tuple(now)
        if found and found[-1].to_us == begins and set(found[-1].shapes) == set(shapes):
            found[-1] = _Step(found[-1].from_us, ends, found[-1].shapes)
        elif shapes:
            found.append(_Step(begins, ends, shapes))
    return found


def _rooms(
    fleet: Fleet, node: str, spans: Sequence[Free], steps: Sequence[_Step]
) -> Iterator[_Room]:
    """Free time of a node cut where who waits, or what else is free of it, changes."""
    listing = fleet.nodes[node][-1].value
    taken = _taken(fleet, node)
    times = [at for at, _, _ in taken]
    begins = [step.from_us for step in steps]
    for span in spans:
        inner = {at for at in times[bisect_right(times, span.from_us) :] if at < span.to_us}
        at = max(0, bisect_right(begins, span.from_us) - 1)
        near: list[_Step] = []
        for step in steps[at:]:
            if step.from_us >= span.to_us:
                break
            near.append(step)
            inner |= {
                edge for edge in (step.from_us, step.to_us) if span.from_us < edge < span.to_us
            }
        for first, last in pairwise(sorted({span.from_us, span.to_us, *inner})):
            cpus, kib = _used_at(taken, times, first)
            shapes = next((step.shapes for step in near if step.from_us <= first < step.to_us), ())
            yield _Room(
                free=Free(first, last, span.gpus), cpus=None if listing.cpus is None else listing.cpus - cpus,
                kib=None if listing.memory_mib is None else listing.memory_mib * 1024 - kib, shapes=shapes,
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


def _at_once(rooms: Mapping[str, Sequence[_Room]]) -> dict[Shape, list[tuple[int, int]]]:
    """When a shape of several nodes found room on as many as it asks for, at once."""
    edges: dict[Shape, dict[int, int]] = {}
    for ours in rooms.values():
        fits: dict[Shape, list[tuple[int, int]]] = {}
        for room in ours:
            for shape in room.shapes:
                if shape.nodes > 1 and _wants(room, shape) is None:
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
    room: _Room, at_once: Mapping[Shape, Sequence[tuple[int, int]]]
) -> Iterator[tuple[str, int]]:
    """The causes of one stretch: the best for each part of it, as jobs of several nodes find room or not."""
    begins, ends, gpus = room.free
    inside = {shape: at_once.get(shape, ()) for shape in room.shapes if shape.nodes > 1}
    edges = {at for spans in inside.values() for span in spans for at in span if begins < at < ends}
    for first, last in pairwise(sorted({begins, ends, *edges})):
        causes = [_cause(room, shape, inside.get(shape), first) for shape in room.shapes]
        best = min(
            causes, key=lambda cause: _ORDER.index(cause.partition(": rule ")[0]), default=NOBODY
        )
        yield best.replace(": rule ", ": "), gpus * (last - first)


def _cause(room: _Room, shape: Shape, spans: Sequence[tuple[int, int]] | None, at_us: int) -> str:
    lacks = _wants(room, shape)
    if lacks is not None:
        return lacks
    if spans is not None and not any(begins <= at_us < ends for begins, ends in spans):
        return AT_ONCE
    return f"{HELD}: rule {shape.rule}" if shape.rule else NOT_YET
