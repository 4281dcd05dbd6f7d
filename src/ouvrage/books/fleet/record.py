"""Everything known about one cluster at a moment, decoded from facts in force: jobs with what they used, nodes, accounts, prices.

Decides which of several rows about what an attempt used counts (the one that saw its end), that the GPUs of a node are its slots, and what
of a period is known: up to the last moment at which the cluster was read. What it means together is decided by ``time``, ``demand``,
``work`` and ``bill``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.nodelists import unfolded
from ouvrage.books.cluster_jobs import Attempt, attempts_of
from ouvrage.books.cluster_states import states_of
from ouvrage.books.known import Known, by_kind, known_of
from ouvrage.books.record import OwnerRecord
from ouvrage.ledger.facts import Line
from ouvrage.ledger.kinds import KINDS
from ouvrage.model.cluster import ClusterJobRow, ClusterNodeEvent, ClusterWhole
from ouvrage.model.fleet import (
    FLEET,
    ClusterAccount,
    ClusterJobUse,
    ClusterNode,
    ClusterPartition,
    ClusterPlaced,
    ClusterQos,
    ClusterRate,
    ClusterRead,
    ClusterReservation,
)
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.records import Withdrawal
from ouvrage.model.sites import DevicePlaced, Node

_KINDS: tuple[Any, ...] = (ClusterJobRow, ClusterNodeEvent, ClusterWhole, *FLEET)
FLEET_KINDS: tuple[str, ...] = (*(kind.KIND for kind in _KINDS), Withdrawal.KIND)
NO_ACCOUNT = "no account"


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What an attempt asked for, was allotted and used; None where no row says. Memory in KiB, of all its nodes together.

    ``limit_us`` -1 is a time without limit. ``gpu_percent`` is the greatest mean load among its steps.
    """

    eligible_us: int | None = None
    limit_us: int | None = None
    qos: str | None = None
    reason: str | None = None
    nodes: int | None = None
    asked_cpus: int | None = None
    asked_gpus: int | None = None
    asked_kib: int | None = None
    billing: int | None = None
    memory_kib: int | None = None
    cpu_us: int | None = None
    used_kib: int | None = None
    gpu_percent: int | None = None
    gpu_kib: int | None = None


NOTHING_SAID = Used()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A cluster as its facts have it. ``used`` is by an attempt's name, ``accounts`` and the like as last stated, by name.

    ``nodes`` are listings in order of time, ``machines`` the record from which a calendar is made: nodes, GPUs as their slots, states.
    ``from_us`` to ``until_us`` is what was read of it, both None where nothing was; until ``known_us`` every
    job is known (None: of no time). ``placed`` are the jobs, by number and submission, that held places for the platform's own attempts.
    """

    cluster: str
    attempts: tuple[Attempt, ...]
    used: Mapping[str, Used]
    nodes: Mapping[str, tuple[Known[ClusterNode], ...]]
    accounts: Mapping[str, ClusterAccount]
    partitions: Mapping[str, ClusterPartition]
    qos: Mapping[str, ClusterQos]
    rates: tuple[Known[ClusterRate], ...]
    placed: frozenset[tuple[str, int]]
    machines: Mapping[str, OwnerRecord]
    by_node: Mapping[str, tuple[Attempt, ...]]
    missing: tuple[str, ...]
    from_us: int | None
    until_us: int | None
    known_us: int | None

    def use(self, attempt: Attempt) -> Used:
        """What an attempt used, as far as anybody says."""
        return self.used.get(attempt.name, NOTHING_SAID)

    def is_own(self, attempt: Attempt) -> bool:
        """Whether an attempt only held a place for one of the platform's own, whose lease is billed."""
        return (attempt.job, attempt.submit_us or 0) in self.placed

    def tenant(self, account: str | None) -> str:
        """The account at the top, below the root alone, of an account: the one who is asked for money."""
        name, seen = account or NO_ACCOUNT, set[str]()
        while name in self.accounts and name not in seen:
            seen.add(name)
            parent = self.accounts[name].parent
            if parent is None or parent not in self.accounts:
                break
            name = parent
        return name


def clusters_in(lines: Sequence[Line]) -> tuple[str, ...]:
    """The clusters of which anything is known beside their jobs."""
    found: set[str] = set()
    for (kind, version), told in by_kind(lines).items():
        if kind in (ClusterNode.KIND, ClusterRead.KIND):
            found.update(each.value.cluster for each in known_of(kind, version, told))
    return tuple(sorted(found))


def fleet_of(lines: Sequence[Line], cluster: str) -> Fleet:
    """A cluster from lines of ``FLEET_KINDS``."""
    found: dict[type, list[Known[Any]]] = {kind: [] for kind in _KINDS}
    for (kind, version), told in by_kind(lines).items():
        known = KINDS.get((kind, version))
        if known in found:
            found[known] += [
                each for each in known_of(kind, version, told) if each.value.cluster == cluster
            ]
    return fleet_from(cluster, found)


def fleet_from(cluster: str, found: Mapping[type, list[Known[Any]]]) -> Fleet:
    """A cluster from what is known of it, by kind."""
    found = {kind: list(found.get(kind, ())) for kind in _KINDS}
    for each in found.values():
        each.sort(key=lambda known: (known.valid_from, known.key))
    attempts = attempts_of(found[ClusterJobRow])
    nodes = _by_name(found[ClusterNode])
    reads: list[Known[ClusterRead]] = found[ClusterRead]
    return Fleet(
        cluster=cluster, attempts=attempts, used=used_by(attempts, found[ClusterJobUse]), nodes=nodes,
        accounts={e.value.account: e.value for e in found[ClusterAccount]},
        partitions={e.value.partition: e.value for e in found[ClusterPartition]},
        qos={e.value.qos: e.value for e in found[ClusterQos]},
        rates=tuple(found[ClusterRate]),
        placed=frozenset((e.value.job, e.value.submit_us) for e in found[ClusterPlaced]),
        machines=machines_of(
            cluster, nodes, found[ClusterJobRow], found[ClusterNodeEvent], found[ClusterWhole], found[ClusterReservation]
        ),
        by_node=_on_nodes(attempts),
        missing=max(reads, key=lambda e: e.end).value.missing if reads else (),
        from_us=min((e.valid_from for e in reads), default=None), until_us=max((e.end for e in reads), default=None),
        known_us=max((e.end for e in found[ClusterWhole]), default=None),
    )  # fmt: skip


def _by_name(listed: Iterable[Known[ClusterNode]]) -> dict[str, tuple[Known[ClusterNode], ...]]:
    found: dict[str, list[Known[ClusterNode]]] = {}
    for each in listed:
        found.setdefault(each.value.node, []).append(each)
    return {name: tuple(each) for name, each in sorted(found.items())}


def _on_nodes(attempts: Iterable[Attempt]) -> dict[str, tuple[Attempt, ...]]:
    """The attempts that had something of each node."""
    found: dict[str, list[Attempt]] = {}
    for each in attempts:
        for node in each.nodes if each.start_us is not None else ():
            found.setdefault(node, []).append(each)
    return {node: tuple(ours) for node, ours in found.items()}


def used_by(attempts: Iterable[Attempt], uses: Iterable[Known[ClusterJobUse]]) -> dict[str, Used]:
    """What each attempt used, by its name: of its own row what it asked for, of its steps the most that they used."""
    jobs: dict[tuple[str, int | None], list[ClusterJobUse]] = {}
    for each in uses:
        jobs.setdefault(
            (each.value.job, each.value.submit_us if each.value.step is None else None), []
        ).append(each.value)
    found: dict[str, Used] = {}
    for attempt in attempts:
        own = [
            each for each in jobs.get((attempt.job, attempt.submit_us), ()) if _is_of(attempt, each)
        ]
        steps = [
            each
            for each in jobs.get((attempt.job, None), ())
            if each.step and _within(attempt, each)
        ]
        if own or steps:
            found[attempt.name] = _used(sorted(own, key=_weight, reverse=True), steps)
    return found


def _is_of(attempt: Attempt, each: ClusterJobUse) -> bool:
    return each.step is None and (each.start_us is None or each.start_us == attempt.start_us)


def _within(attempt: Attempt, each: ClusterJobUse) -> bool:
    begins, ends = attempt.start_us, attempt.until_us
    return (
        begins is not None
        and each.start_us is not None
        and begins <= each.start_us
        and (ends is None or each.start_us <= ends)
    )


def _weight(each: ClusterJobUse) -> tuple[bool, int, str]:
    said = sum(getattr(each, name) is not None for name in each.__slots__)
    return (each.end_us is not None, each.end_us or said, repr(each))


def _used(own: Sequence[ClusterJobUse], steps: Sequence[ClusterJobUse]) -> Used:
    def first(name: str) -> Any:
        return next((value for each in own if (value := getattr(each, name)) is not None), None)

    def most(name: str) -> int | None:
        return max(
            (value for each in (*own, *steps) if (value := getattr(each, name)) is not None),
            default=None,
        )

    return Used(
        eligible_us=first("eligible_us"), limit_us=first("limit_us"), qos=first("qos"), reason=first("reason"),
        nodes=first("asked_nodes"), asked_cpus=first("asked_cpus"), asked_gpus=first("asked_gpus"), asked_kib=first("asked_kib"),
        billing=first("billing"), memory_kib=first("memory_kib"), cpu_us=most("cpu_us"), used_kib=most("used_kib"),
        gpu_percent=most("gpu_percent"), gpu_kib=most("gpu_kib"),
    )  # fmt: skip


def machines_of(
    cluster: str,
    nodes: Mapping[str, tuple[Known[ClusterNode], ...]],
    rows: Sequence[Known[ClusterJobRow]],
    events: Sequence[Known[ClusterNodeEvent]],
    whole: Sequence[Known[ClusterWhole]],
    reservations: Iterable[Known[ClusterReservation]],
) -> dict[str, OwnerRecord]:
    """For each node the record of its calendar: its GPUs as slots, and what its cluster says that they did."""
    states: dict[str, list[Known[DeviceState]]] = {name: [] for name in nodes}
    listed = [(cluster, name) for name in nodes]
    for state in (*states_of(rows, events, whole, nodes, listed), *_reserved(reservations)):
        if state.value.node in states:
            states[state.value.node].append(state)
    return {
        name: OwnerRecord(
            nodes=(_as(listings[0], Node(node=name, site=cluster), listings[0].valid_from, None),),
            devices=tuple(_slots(listings)), states=tuple(states[name]), terms={}, placed={}, inside={}, homes={},
        )
        for name, listings in nodes.items()
    }  # fmt: skip


def _slots(listings: Sequence[Known[ClusterNode]]) -> Iterator[Known[DevicePlaced]]:
    for at, each in enumerate(listings):
        ends = listings[at + 1].valid_from if at + 1 < len(listings) else None
        for slot in range(each.value.gpus):
            placed = DevicePlaced(
                device=f"{each.value.node}/{slot}",
                node=each.value.node,
                model=each.value.gpu,
                slot=slot,
            )
            yield _as(each, placed, each.valid_from, ends)


def _reserved(reservations: Iterable[Known[ClusterReservation]]) -> Iterator[Known[DeviceState]]:
    for each in reservations:
        for node in unfolded(each.value.nodes):
            state = DeviceState(
                device=None, node=node, count=None, state="reserved", cause=f"reservation {each.value.name}", channel=None,
                tenant=None, lease=f"reservation {each.value.name}",
            )  # fmt: skip
            yield _as(each, state, each.valid_from, each.valid_to)


def _as(known: Known[Any], value: Any, valid_from: int, valid_to: int | None) -> Known[Any]:
    grade = known.grade if known.key else Grade.METERED
    return Known(value=value, valid_from=valid_from, valid_to=valid_to, grade=grade, key=known.key)
