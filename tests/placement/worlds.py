"""Snapshots to plan for: built by hand in a line, or drawn, consistent in themselves, by Hypothesis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
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


LIMITS = st.sampled_from([None, None, 10 * MINUTE, HOUR, 5 * HOUR])


@st.composite
def needs_of(draw: st.DrawFn) -> Needs:
    gpus = draw(st.sampled_from([0, 0, 1, 1, 2, 4]))
    return Needs(
        gpus=gpus,
        gpu=draw(st.sampled_from([None, *NAMES])) if gpus else None,
        cpus=draw(st.integers(1, 9)),
        memory_mib=draw(st.sampled_from([0, 1_000, 30_000, 70_000])),
        disk_mib=draw(st.sampled_from([0, 1_000, 40_000])),
        isolation=draw(st.sampled_from(["sandbox"] * 9 + ["podman"])),
    )


@st.composite
def nodes_of(draw: st.DrawFn) -> tuple[Node, ...]:
    count = draw(st.integers(1, 4))
    made: list[Node] = []
    for n in range(count):
        one = node(
            f"n{n}",
            gpus=draw(st.integers(0, 4)),
            cpus=draw(st.integers(2, 10)),
            model=draw(st.integers(0, 1)),
            listed=draw(st.integers(0, 9)) > 0,
            fenced=draw(st.integers(0, 9)) == 0,
            isolations=draw(st.sampled_from([("sandbox",), ("sandbox", "podman")])),
        )
        broken = draw(st.sets(st.integers(0, 3), max_size=1))
        devices = tuple(replace(d, fenced=i in broken) for i, d in enumerate(one.devices))
        made.append(replace(one, devices=devices))
    return tuple(made)


class _Stock:
    """What a node still has while a snapshot is drawn, so that nothing in it stands in two places."""

    def __init__(self, on: Node) -> None:
        self.node = on
        self.devices = [d.device for d in on.devices]
        self.cpus = list(on.cpus)
        self.memory, self.disk = on.memory_mib, on.disk_mib

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


def _held(draw: st.DrawFn, nodes: Iterable[Node]) -> tuple[list[Lease], list[Running]]:
    leases: list[Lease] = []
    runs: list[Running] = []
    for on in nodes:
        stock = _Stock(on)
        for n in range(draw(st.integers(0, 3))):
            name = f"{on.node}-{n}"
            where = stock.take(
                draw(st.integers(0, 2)),
                draw(st.integers(1, 3)),
                10_000,
                draw(st.sampled_from([0, 9_000])),
            )
            until = draw(st.sampled_from([None, NOW + 5 * MINUTE, NOW + 2 * HOUR]))
            flags = {
                "interruptible": draw(st.booleans()),
                "notice_us": draw(st.sampled_from([0, MINUTE])),
            }
            if draw(st.integers(0, 2)):
                stopping = draw(st.integers(0, 4)) == 0
                standing = draw(st.integers(0, 1))
                project = draw(st.sampled_from("pq"))
                runs.append(
                    running(
                        name,
                        where,
                        until,
                        standing=standing,
                        project=project,
                        stopping=stopping,
                        **flags,
                    )
                )
                continue
            lease = Lease(
                lease=f"t-{name}", kind="term", project="p", placed=where, until_us=until, **flags
            )
            leases.append(lease)
            if draw(st.booleans()):
                part = Placed(
                    node=on.node,
                    devices=where.devices[:1],
                    cpus=where.cpus[:1],
                    memory_mib=1_000,
                    disk_mib=0,
                )
                runs.append(running(f"in-{name}", part, until, lease=lease.lease))
    return leases, runs


@st.composite
def snapshots(draw: st.DrawFn, most: int = 8) -> Snapshot:
    nodes = draw(nodes_of())
    leases, runs = _held(draw, nodes)
    names = [lease.lease for lease in leases]
    waiting = [
        Waiting(
            job=f"j{n}",
            project=draw(st.sampled_from("pqr")),
            org="o",
            needs=draw(needs_of()),
            submitted_us=draw(st.integers(0, 9)),
            lease=draw(st.sampled_from([None, None, None, *names, "gone"])) if n % 3 == 0 else None,
            standing=draw(st.integers(0, 1)),
            priority=draw(st.integers(-1, 1)),
            not_on=draw(st.sampled_from([(), (), ("n0",)])),
            time_limit_us=draw(LIMITS),
            grace_us=draw(st.sampled_from([0, MINUTE])),
            not_before_us=draw(st.sampled_from([0, 0, 0, NOW + MINUTE])),
            holds=draw(st.sampled_from([()] * 9 + [(Hold(kind=h, words=h),) for h in HOLDS[:2]])),
        )
        for n in range(draw(st.integers(0, most)))
    ]
    shares = tuple(Share(project=p, used_us=draw(st.integers(0, 3)) * HOUR) for p in "pq")
    return Snapshot(
        nodes=nodes,
        leases=tuple(leases),
        running=tuple(runs),
        waiting=tuple(waiting),
        shares=shares,
    )
