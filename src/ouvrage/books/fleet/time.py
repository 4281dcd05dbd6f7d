"""What each GPU of a cluster did in a period, and why it stood idle: by node, state and cause, adding up to the calendar.

Decides nothing about single statements (the calendar does) and splits what is free by who waited for it meanwhile (``demand`` does).
Adds up in whole microseconds: no time is in two causes and none is in none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from ouvrage.books.calendar import Stretch, node_calendar
from ouvrage.books.fleet.demand import Free, idle_causes
from ouvrage.books.fleet.record import Fleet
from ouvrage.books.period import Period

K = TypeVar("K")
NO_JOB = "no job"
"""The cause of what accounting leaves free; any other free time has a cause of its own already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """GPU time in microseconds of a ``node`` in a ``state`` for a ``cause``; of ``account`` where a job had it."""

    node: str
    state: str
    cause: str
    account: str | None
    us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTime:
    """Everything that the GPUs of a cluster did in a period. ``owned_us`` is counted without any state, from the slots alone."""

    spent: tuple[Spent, ...]
    owned_us: int
    gpus: Mapping[str, int]

    def by_state(self) -> dict[str, int]:
        """Microseconds by state."""
        return summed((each.state, each.us) for each in self.spent)

    def by_cause(self, *states: str) -> dict[tuple[str, str], int]:
        """Microseconds by state and cause, of some states or of all."""
        return summed(
            ((each.state, each.cause), each.us)
            for each in self.spent
            if not states or each.state in states
        )


def summed(pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    """What stands under each key, together, in the order in which keys come first."""
    found: dict[K, int] = {}
    for key, us in pairs:
        found[key] = found.get(key, 0) + us
    return found


def fleet_time(fleet: Fleet, period: Period) -> FleetTime:
    """What the GPUs did, from the calendars of their nodes."""
    spent: dict[tuple[str, str, str, str | None], int] = {}
    free: dict[str, list[Free]] = {}
    owned, gpus = 0, dict[str, int]()
    for node, record in fleet.machines.items():
        found = node_calendar(record, node, period)
        gpus[node] = len(found)
        owned += _owned(fleet, node, period)
        for stretch in (each for stretches in found.values() for each in stretches):
            if not (stretch.state == "free" and stretch.cause == NO_JOB):
                key = (node, stretch.state, stretch.cause, stretch.tenant)
                spent[key] = spent.get(key, 0) + stretch.us
        free[node] = _free(found)
    for (node, cause), us in idle_causes(fleet, free).items():
        spent[node, "free", cause, None] = us
    told = tuple(
        Spent(node=node, state=state, cause=cause, account=account, us=us)
        for (node, state, cause, account), us in spent.items()
    )
    return FleetTime(spent=told, owned_us=owned, gpus=gpus)


def _owned(fleet: Fleet, node: str, period: Period) -> int:
    """GPU time of a node from its listings alone."""
    listings = fleet.nodes[node]
    total = 0
    for at, each in enumerate(listings):
        ends = listings[at + 1].valid_from if at + 1 < len(listings) else None
        total += each.value.gpus * period.overlap(each.valid_from, ends)
    return total


def _free(devices: Mapping[str, Iterable[Stretch]]) -> list[Free]:
    """When how many GPUs of a node were free, of those that are free for want of a job."""
    edges: dict[int, int] = {}
    for stretch in (each for stretches in devices.values() for each in stretches):
        if stretch.state == "free" and stretch.cause == NO_JOB:
            edges[stretch.from_us] = edges.get(stretch.from_us, 0) + 1
            edges[stretch.to_us] = edges.get(stretch.to_us, 0) - 1
    found: list[Free] = []
    count = 0
    for begins, ends in pairwise(sorted(edges)):
        count += edges[begins]
        if count:
            found.append(Free(from_us=begins, to_us=ends, gpus=count))
    return found
