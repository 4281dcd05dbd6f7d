"""Snapshots to plan for: built by hand in a line, or drawn, consistent in themselves, by Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from ouvrage.model.selling import Placed
from ouvrage.placement.snapshot import (
    HOLDS,
    Device,
    Hold,
    Lease,
    Needs,
    Node,
    Running,
    Share,
    Snapshot,
    Waiting,
)

MINUTE = 60_000_000
HOUR = 60 * MINUTE
NOW = 1_000 * HOUR
MODELS = ("NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3")
NAMES = ("RTX 4090", "H100")


def node(name: str, gpus: int = 0, cpus: int = 8, model: int = 0, **more: Any) -> Node:
    devices = tuple(Device(device=f"{name}-g{n}", model=MODELS[model]) for n in range(gpus))
    given: dict[str, Any] = {"memory_mib": 64_000, "disk_mib": 64_000, **more}
    return Node(node=name, name=name, devices=devices, cpus=tuple(range(cpus)), **given)


def job(
    name: str, *, project: str = "p", at: int = 0, needs: Needs | None = None, **more: Any
) -> Waiting:
    fields = {
        name: more.pop(name) for name in ("gpus", "gpu", "cpus", "memory_mib") if name in more
    }
    return Waiting(
        job=name,
        project=project,
        org=project,
        submitted_us=at,
        needs=needs or Needs(**fields),
        **more,
    )


def placed(
    on: Node, devices: int = 0, cpus: int = 1, first: int = 0, skip: int = 0, memory: int = 0
) -> Placed:
    return Placed(
        node=on.node,
        devices=tuple(d.device for d in on.devices[skip : skip + devices]),
        cpus=tuple(range(first, first + cpus)),
        memory_mib=memory,
        disk_mib=0,
    )


def running(name: str, where: Placed, ends: int | None = None, **more: Any) -> Running:
    given: dict[str, Any] = {"project": "p", "lease": f"l-{name}", "started_us": NOW - HOUR, **more}
    return Running(attempt=f"a-{name}", job=name, placed=where, ends_by_us=ends, **given)


@dataclass
class _Stock:
    """What a node still has while a snapshot is drawn, so that nothing in it stands in two places."""

    node: Node
    devices: list[str]
    cpus: list[int]
    memory: int
    disk: int

    def take(self, devices: int, cpus: int, memory: int, disk: int) -> Placed:
        result = Placed(
            node=self.node.node,
            devices=tuple(self.devices[:devices]),
            cpus=tuple(self.cpus[:cpus]),
            memory_mib=min(memory, self.memory),
            disk_mib=min(disk, self.disk),
        )
        self.devices, self.cpus = self.devices[devices:], self.cpus[cpus:]
        self.memory -= result.memory_mib
        self.disk -= result.disk_mib
        return result


class _Drawn:
    """A world from a seed: small and tight, so that every rule has something to decide."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.leases: list[Lease] = []
        self.running: list[Running] = []

    def one_in(self, n: int) -> bool:
        return self.chance.randrange(n) == 0

    def needs(self, scale: int = 1) -> Needs:
        pick = self.chance.choice
        gpus = pick([0, 0, 1, 1, 2, 4]) // scale
        return Needs(
            gpus=gpus,
            gpu=pick([None, NAMES[0], NAMES[0], NAMES[1]]) if gpus else None,
            cpus=max(1, pick([1, 1, 2, 3, 5, 7]) // scale),
            memory_mib=pick([0, 1_000, 30_000, 50_000]) // scale**3,
            disk_mib=pick([0, 0, 1_000, 40_000]) // scale**3,
            isolation="podman" if self.one_in(12) else "sandbox",
        )

    def node(self, n: int) -> Node:
        pick = self.chance.choice
        one = node(
            f"n{n}",
            gpus=pick([0, 2, 4, 4]),
            cpus=pick([4, 8, 10]),
            model=pick([0, 0, 1]),
            listed=not self.one_in(15),
            fenced=self.one_in(15),
            isolations=pick([("sandbox",), ("sandbox", "podman")]),
        )
        mixed = [
            replace(d, fenced=self.one_in(10), model=pick(MODELS) if self.one_in(8) else d.model)
            for d in one.devices
        ]
        return replace(one, devices=tuple(mixed), windows=self.windows() if self.one_in(4) else ())

    def windows(self) -> tuple[tuple[int, int], ...]:
        """One or two windows of maintenance, one of them open now or not."""
        begins = NOW + self.chance.choice([-1, 1, 2, 5]) * 20 * MINUTE
        first = (begins, begins + 30 * MINUTE)
        return (first,) if self.one_in(2) else (first, (first[1] + HOUR, first[1] + 2 * HOUR))

    def hold(self, on: Node) -> None:
        """Fill a part of a node with leases and attempts."""
        pick = self.chance.choice
        stock = _Stock(
            on, [d.device for d in on.devices], list(on.cpus), on.memory_mib, on.disk_mib
        )
        for n in range(self.chance.randint(0, 4)):
            where = stock.take(
                pick([0, 1, 1, 2]), pick([1, 2, 3]), pick([1_000, 20_000]), pick([0, 9_000])
            )
            until = pick([None, NOW + 5 * MINUTE, NOW + 2 * HOUR, NOW + 9 * HOUR, NOW - MINUTE])
            terms = {
                "interruptible": self.one_in(2),
                "notice_us": pick([0, MINUTE]),
                "standing": pick([0, 0, 1]),
            }
            if self.one_in(3):
                self.lease(f"{on.node}-{n}", where, until, terms)
                continue
            self.running.append(
                running(
                    f"{on.node}-{n}",
                    where,
                    until,
                    project=pick("pq"),
                    stopping=self.one_in(6),
                    priority=pick([-1, 0, 1]),
                    started_us=NOW - pick([1, 2, 3]) * HOUR,
                    **terms,
                )
            )

    def lease(self, name: str, where: Placed, until: int | None, terms: dict[str, Any]) -> None:
        lease = Lease(
            stopping=self.one_in(6),
            lease=f"t-{name}",
            kind="term",
            project="p",
            placed=where,
            until_us=until,
            **terms,
        )
        self.leases.append(lease)
        if self.one_in(2):
            part = replace(
                where, devices=where.devices[:1], cpus=where.cpus[:1], memory_mib=500, disk_mib=0
            )
            self.running.append(running(f"in-{name}", part, until, lease=lease.lease))

    def waiting(self, n: int) -> Waiting:
        pick = self.chance.choice
        into = pick(["gone", *(each.lease for each in self.leases)]) if self.one_in(4) else None
        return Waiting(
            job=f"j{n}",
            project=pick("pqr"),
            org="o",
            needs=self.needs(2 if into else 1),
            submitted_us=self.chance.randrange(9),
            lease=into,
            standing=pick([0, 1, 1]),
            priority=pick([-1, 0, 1]),
            not_on=("n0",) if self.one_in(10) else (),
            time_limit_us=pick([None, 2 * MINUTE, 2 * MINUTE, HOUR, 5 * HOUR]),
            grace_us=pick([0, MINUTE]),
            not_before_us=NOW + MINUTE if self.one_in(20) else 0,
            holds=tuple(Hold(kind=kind, words=kind) for kind in HOLDS[:2])
            if self.one_in(15)
            else (),
        )

    def snapshot(self, most: int) -> Snapshot:
        nodes = tuple(self.node(n) for n in range(self.chance.randint(1, 4)))
        for on in nodes:
            self.hold(on)
        jobs = tuple(self.waiting(n) for n in range(self.chance.randint(0, most)))
        return Snapshot(
            nodes=nodes,
            leases=tuple(self.leases),
            running=tuple(self.running),
            waiting=jobs,
            shares=tuple(Share(project=p, used_us=self.chance.randrange(3) * HOUR) for p in "pq"),
        )


def snapshots(most: int = 14) -> st.SearchStrategy[Snapshot]:
    """Worlds, each from a number, so that a failure names the one number that makes it again."""
    return st.integers(0, 2**40).map(lambda seed: _Drawn(seed).snapshot(most))


def needs_drawn() -> st.SearchStrategy[Needs]:
    """What something may ask for in such a world."""
    return st.integers(0, 2**40).map(lambda seed: _Drawn(seed).needs())
