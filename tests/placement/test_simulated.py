"""Placement over simulated time: fair shares come out, nobody starves, a real trace adds up."""

from __future__ import annotations

import csv
import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from ouvrage.placement.decide import plan
from ouvrage.placement.order import Site, aged, spell
from ouvrage.placement.snapshot import (
    Device,
    Needs,
    Node,
    Policy,
    Running,
    Share,
    Snapshot,
    Waiting,
)
from tests.placement.worlds import HOUR, MINUTE, node

DAY = 24 * HOUR


@dataclass
class Platform:
    """A platform reduced to what placement sees: it starts what the plan says and ends what has run its time."""

    nodes: tuple[Node, ...]
    weights: dict[str, Fraction]
    policy: Policy = field(default_factory=Policy)
    now: int = 0
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    began: dict[str, int] = field(default_factory=dict)
    ends: list[tuple[int, str]] = field(default_factory=list)
    lasts: dict[str, int] = field(default_factory=dict)
    gpu_us: int = 0

    def submit(self, waiting: Waiting, lasts: int) -> None:
        self.waiting[waiting.job] = waiting
        self.lasts[waiting.job] = lasts

    def snapshot(self) -> Snapshot:
        shares = tuple(
            Share(project=p, weight=w, used_us=self.used.get(p, 0)) for p, w in self.weights.items()
        )
        return Snapshot(
            nodes=self.nodes,
            running=tuple(self.running.values()),
            waiting=tuple(self.waiting.values()),
            shares=shares,
            policy=self.policy,
        )

    def place(self) -> None:
        for start in plan(self.snapshot(), self.now).starts:
            waiting = self.waiting.pop(start.job)
            taken = {d for r in self.running.values() for d in r.placed.devices}
            assert not taken & set(start.placed.devices)
            self.running[start.job] = Running(
                attempt=start.job,
                job=start.job,
                project=waiting.project,
                lease="",
                placed=start.placed,
                started_us=self.now,
                ends_by_us=start.by_us,
            )
            self.began[start.job] = self.now
            heapq.heappush(self.ends, (self.now + self.lasts[start.job], start.job))

    def pass_to(self, moment: int) -> None:
        """Let time pass and end what ends by then; use is kept as a server would keep it."""
        half = self.policy.half_life_us
        self.used = {p: aged(u, self.now, moment, half) for p, u in self.used.items()}
        self.now = moment
        site = Site(self.snapshot())
        while self.ends and self.ends[0][0] <= moment:
            at, name = heapq.heappop(self.ends)
            run = self.running.pop(name)
            more = spell(site.size(run.placed), run.started_us, at, moment, half)
            self.used[run.project] = self.used.get(run.project, 0) + more
            gpus = len(run.placed.devices)
            self.held[run.project] = self.held.get(run.project, 0) + gpus * (at - run.started_us)
            self.gpu_us += gpus * (at - run.started_us)


def test_in_a_month_projects_of_weights_1_2_3_get_a_sixth_a_third_and_a_half():
    chance = Random(7)
    weights = {"a": Fraction(1), "b": Fraction(2), "c": Fraction(3)}
    platform = Platform(
        nodes=(node("n0", gpus=4, cpus=16), node("n1", gpus=4, cpus=16)), weights=weights
    )
    count = 0
    while platform.now < 30 * DAY:
        for project in weights:
            while sum(w.project == project for w in platform.waiting.values()) < 4:
                count += 1
                name = f"{count:06}"
                needs = Needs(gpus=1 if chance.random() < 0.7 else 2, cpus=1)
                waiting = Waiting(
                    job=name, project=project, org=project, needs=needs, submitted_us=platform.now
                )
                platform.submit(waiting, chance.randint(1, 6) * HOUR)
        platform.place()
        platform.pass_to(platform.ends[0][0])
    total = sum(platform.held.values())
    shares = {p: platform.held[p] / total for p in weights}
    assert shares == pytest.approx({"a": 1 / 6, "b": 1 / 3, "c": 1 / 2}, abs=0.01)
    assert (
        platform.gpu_us / (8 * platform.now) > 0.93
    )  # a GPU stands idle only where two are being gathered


def test_a_wide_job_starts_though_narrow_ones_keep_coming():
    platform = Platform(nodes=(node("n0", gpus=4, cpus=16),), weights={})
    wide = Waiting(job="wide", project="w", org="w", needs=Needs(gpus=4), submitted_us=10)
    chance = Random(3)
    for n in range(400):
        if n == 20:
            platform.submit(wide, HOUR)
        narrow = Waiting(
            job=f"s{n:03}",
            project="s",
            org="s",
            needs=Needs(gpus=1),
            submitted_us=platform.now,
            time_limit_us=30 * MINUTE,
        )
        platform.submit(narrow, chance.randint(5, 30) * MINUTE)
        platform.place()
        platform.pass_to(platform.now + 5 * MINUTE)
        if "wide" in platform.began:
            break
    assert platform.began["wide"] - 20 * 5 * MINUTE <= 45 * MINUTE


def _openb() -> tuple[tuple[Node, ...], list[tuple[Waiting, int]]]:
    data = Path(os.environ["OUVRAGE_DATA"]) / "openb"
    nodes: list[Node] = []
    with (data / "openb_node_list_gpu_node.csv").open() as file:
        for row in csv.DictReader(file):
            gpus = tuple(
                Device(device=f"{row['sn']}/{n}", model=row["model"])
                for n in range(int(row["gpu"]))
            )
            cores = tuple(range(int(row["cpu_milli"]) // 1000))
            memory = int(row["memory_mib"])
            name = row["sn"]
            nodes.append(
                Node(node=name, name=name, devices=gpus, cpus=cores, memory_mib=memory, disk_mib=0)
            )
    with (data / "openb_pod_list_default.csv").open() as file:
        pods = [_pod(row) for row in csv.DictReader(file)]
    return tuple(nodes), pods


def _pod(row: dict[str, str]) -> tuple[Waiting, int]:
    """A pod as a job of whole GPUs and cores; one that was never scheduled lasts from its creation."""
    begin = int(row["scheduled_time"] or row["creation_time"])
    needs = Needs(
        gpus=int(row["num_gpu"]),
        gpu=row["gpu_spec"].split("|")[0] or None,
        cpus=max(1, -(-int(row["cpu_milli"]) // 1000)),
        memory_mib=int(row["memory_mib"]),
    )
    at = int(row["creation_time"]) * 1_000_000
    lasts = max(1, int(row["deletion_time"] or begin) - begin) * 1_000_000
    waiting = Waiting(job=row["name"], project=row["qos"], org="o", needs=needs, submitted_us=at)
    return waiting, lasts


def _batches(pods: list[tuple[Waiting, int]], size: int) -> Iterator[list[tuple[Waiting, int]]]:
    pods = sorted(pods, key=lambda pod: pod[0].submitted_us)
    for start in range(0, len(pods), size):
        yield pods[start : start + size]


@pytest.mark.skipif(
    "OUVRAGE_DATA" not in os.environ, reason="needs OUVRAGE_DATA: openb, a cluster's trace"
)
def test_a_real_cluster_s_work_is_placed_and_adds_up():
    nodes, pods = _openb()
    narrow = nodes[
        ::12
    ]  # a twelfth of the cluster and every sixteenth pod: enough to queue, quick to plan
    platform = Platform(nodes=narrow, weights={})
    wanted: dict[str, int] = {}
    for batch in _batches(pods[::16], 64):
        platform.pass_to(max(platform.now, batch[-1][0].submitted_us))
        for waiting, lasts in batch:
            platform.submit(waiting, lasts)
            wanted[waiting.job] = waiting.needs.gpus * lasts
        platform.place()
    while platform.ends:
        platform.pass_to(platform.ends[0][0])
        platform.place()
    left = set(platform.waiting)
    assert len(platform.began) + len(left) == len(wanted)
    assert platform.gpu_us == sum(us for name, us in wanted.items() if name not in left)
    codes = {why.code for why in plan(platform.snapshot(), platform.now).waits}
    assert codes <= {"placement/never-fits", "placement/never-together"}
    assert len(left) < len(wanted) / 20
