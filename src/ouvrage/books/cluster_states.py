"""What a cluster's accounting says about an owner's nodes, as states of their devices.

Decides that a job works on the GPUs that it was given on each node. One without a node list, without a number of GPUs, or with
one that its nodes do not share evenly says nothing about a device, and while it ran none is called free either. A node
is down while its event lasts; drained, it is in maintenance once its last job has left it. Time is free only where
somebody says that every job of it is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ouvrage.books.cluster_jobs import Attempt, Row, attempts_of, gpus_per_node
from ouvrage.books.known import FOR_EVER, Known
from ouvrage.model.cluster import ClusterNodeEvent, ClusterWhole
from ouvrage.model.occupancy import DeviceState

T = TypeVar("T")
DOWN = frozenset(["DOWN", "ERROR", "FAIL", "FAILING", "NO_RESPOND", "NOT_RESPONDING", "UNKNOWN"])
DRAINED = frozenset(["DRAIN", "DRAINED", "DRAINING", "MAINT", "MAINTENANCE", "REBOOT"]) | {
    "NOT SAID"
}
"""Words of a node's state, of which it may have several: ``IDLE+DRAIN``."""
Spans = list[tuple[int, int]]


def states_of(
    rows: Iterable[Row],
    events: Iterable[Known[ClusterNodeEvent]],
    whole: Iterable[Known[ClusterWhole]],
    nodes: Iterable[str],
    listed: Iterable[tuple[str, str]] = (),
) -> Iterator[Known[DeviceState]]:
    """What a cluster's accounting says about an owner's nodes, as states of their devices.

    ``listed`` are clusters with nodes that they are known to have, though no job or event may name them.
    """
    ours = frozenset(nodes)
    if not ours:
        return
    taken = _Taken(seen={each for each in listed if each[1] in ours})
    for attempt in attempts_of(rows):
        yield from taken.by(attempt, ours)
    for event in _events(events):
        if event.value.node in ours:
            taken.seen.add((event.value.cluster, event.value.node))
            yield from _out_of_service(event, taken.busy.get(event.value.node, ()))
    for each in whole:
        for cluster, node in sorted(taken.seen):
            if cluster == each.value.cluster:
                yield from _free(each, node, taken.unsure_on(cluster, node))


@dataclass(slots=True)
class _Taken:
    """When jobs may have had GPUs: ``busy`` by node; ``unsure`` where it cannot be said how many or where."""

    busy: dict[str, Spans] = field(default_factory=dict)
    unsure: dict[tuple[str, str | None], Spans] = field(default_factory=dict)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def by(self, attempt: Attempt, ours: Collection[str]) -> Iterator[Known[DeviceState]]:
        """Remember when an attempt had GPUs, and say so of those nodes where it can be said."""
        nodes = [node for node in attempt.nodes if node in ours]
        self.seen.update((attempt.cluster, node) for node in nodes)
        count, span = gpus_per_node(attempt), _span(attempt)
        if attempt.gpus == 0 or span is None:
            return
        for node in nodes:
            self.busy.setdefault(node, []).append(span)
            if count:
                yield _working(attempt, node, count)
        if not count:
            for place in nodes if attempt.nodes else (None,):
                self.unsure.setdefault((attempt.cluster, place), []).append(span)

    def unsure_on(self, cluster: str, node: str) -> Spans:
        """When a job may have had GPUs of a node, nobody knows how many."""
        return [*self.unsure.get((cluster, node), ()), *self.unsure.get((cluster, None), ())]


def _span(attempt: Attempt) -> tuple[int, int] | None:
    """From when to when it may have had GPUs; None for one that never began."""
    if attempt.gpu_us == 0:
        return None
    begins = attempt.start_us if attempt.start_us is not None else attempt.submit_us
    ends = attempt.until_us
    return (-FOR_EVER if begins is None else begins, FOR_EVER if ends is None else ends)


def _free(
    whole: Known[ClusterWhole], node: str, taken: Sequence[tuple[int, int]]
) -> Iterator[Known[DeviceState]]:
    state = DeviceState(
        device=None, node=node, count=None, state="free", cause="no job", channel=None, tenant=None,
        lease=None,
    )  # fmt: skip
    for begins, ends in _without(whole.valid_from, whole.valid_to, taken):
        yield _as(whole, state, begins, ends)


def _working(attempt: Attempt, node: str, count: int) -> Known[DeviceState]:
    state = DeviceState(
        device=None, node=node, count=count, state="working",
        cause=f"job {attempt.state.lower().replace('_', ' ')}", channel=None,
        tenant=attempt.account, lease=attempt.name,
    )  # fmt: skip
    return Known(
        value=state, valid_from=attempt.start_us or 0, valid_to=attempt.until_us,
        grade=attempt.known.grade, key=attempt.known.key,
    )  # fmt: skip


def _events(events: Iterable[Known[ClusterNodeEvent]]) -> list[Known[ClusterNodeEvent]]:
    """One event for each node, state and beginning: the one whose end is stated, else the last seen."""
    best: dict[tuple[str, str, str, int], Known[ClusterNodeEvent]] = {}
    for each in sorted(
        events, key=lambda e: (e.value.end_us or 0, e.value.seen_us or 0, repr(e.value))
    ):
        said = each.value
        best[said.cluster, said.node, said.state, said.start_us] = each
    return list(best.values())


def _out_of_service(
    event: Known[ClusterNodeEvent], busy: Sequence[tuple[int, int]]
) -> Iterator[Known[DeviceState]]:
    said = event.value
    words = {word.rstrip("*~#!%$@^-") for word in said.state.upper().split("+")}
    cause = " ".join(part for part in (said.state.lower(), said.reason) if part)[:200]
    state = DeviceState(
        device=None, node=said.node, count=None, state="down", cause=cause, channel=None,
        tenant=None, lease=None,
    )  # fmt: skip
    end = event.valid_to
    if words & DOWN:
        yield _as(event, state, event.valid_from, end)
    if words & DOWN or not words & DRAINED:
        return
    for begins, ends in _without(event.valid_from, end, busy):
        yield _as(event, replace(state, state="maintenance"), begins, ends)
    if busy:
        draining = replace(state, state="free", cause=f"takes no new job: {cause}")
        yield _as(event, draining, event.valid_from, end)


def _as(known: Known[Any], value: T, valid_from: int, valid_to: int | None) -> Known[T]:
    return Known(
        value=value, valid_from=valid_from, valid_to=valid_to, grade=known.grade, key=known.key
    )


def _without(
    begins: int, ends: int | None, busy: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int | None]]:
    """What is left of a time without the stretches of some jobs."""
    at = begins
    for start, end in sorted(busy):
        if ends is not None and start >= ends:
            break
        if start > at:
            yield at, start
        at = max(at, end)
    if ends is None or at < ends:
        yield at, ends
