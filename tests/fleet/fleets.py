"""A small cluster made up for tests: nodes, jobs and what befell them, stated one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR, utc_us
from ouvrage.books.fleet.record import Fleet, fleet_from
from ouvrage.books.fleet.time import FleetTime, fleet_time
from ouvrage.books.known import Known
from ouvrage.books.period import Period
from ouvrage.model.cluster import ClusterJobRow, ClusterNodeEvent, ClusterWhole
from ouvrage.model.fleet import (
    ClusterAccount,
    ClusterJobUse,
    ClusterNode,
    ClusterPartition,
    ClusterRate,
    ClusterRead,
    ClusterReservation,
)

START = utc_us("2026-11-01T00:00:00Z")
DAY = Period(from_us=START, to_us=START + 24 * HOUR, name="2026-11-01", zone="UTC")
NOTHING_USED: dict[str, Any] = dict.fromkeys(
    (
        "eligible_us", "limit_us", "qos", "reason", "reservation", "exit_code", "asked_nodes", "asked_cpus", "asked_gpus",
        "asked_kib", "billing", "memory_kib", "cpu_us", "used_kib", "gpu_percent", "gpu_kib",
    )
)  # fmt: skip


def at(hour: float) -> int:
    """Microseconds of an hour of the day."""
    return START + round(hour * HOUR)


@dataclass
class Cluster:
    """What is stated about a cluster called ``lab``, by kind."""

    said: dict[type, list[Known[Any]]] = field(default_factory=dict)

    def says(self, value: Any, from_us: int = START, to_us: int | None = None) -> Cluster:
        ours = self.said.setdefault(type(value), [])
        key = f"{type(value).__name__}/{len(ours):05d}"
        ours.append(
            Known(value=value, valid_from=from_us, valid_to=to_us, grade=Grade.METERED, key=key)
        )
        return self

    def whole(self, until: float = 24) -> Cluster:
        self.says(ClusterWhole(cluster="lab"), START, at(until))
        return self.says(ClusterRead(cluster="lab", missing=()), START, at(until))

    def node(self, name: str, gpus: int = 4, partitions: tuple[str, ...] = ("gpu",), since: int = START, **more: Any) -> Cluster:  # fmt: skip
        told: dict[str, Any] = {
            "listed": True,
            "gpu": "h100",
            "cpus": 16,
            "memory_mib": 64_000,
            **more,
        }
        return self.says(
            ClusterNode(cluster="lab", node=name, gpus=gpus, partitions=partitions, **told), since
        )

    def job(
        self, job: int, begins: float | None, ends: float | None, nodes: str | None = "n1", gpus: int | None = 1, *,
        state: str = "COMPLETED", submit: float = 0, account: str = "vision", partition: str = "gpu", cpus: int = 1,
        user: str = "ann", **used: Any,
    ) -> Cluster:  # fmt: skip
        start, end = (None if hour is None else at(hour) for hour in (begins, ends))
        count = nodes.count(",") + 1 if nodes else None
        elapsed = end - start if start is not None and end is not None else 0
        row = ClusterJobRow(
            cluster="lab", job=str(job), step=None, shown=None, submit_us=at(submit), start_us=start, end_us=end,
            elapsed_us=elapsed, state=state, nodes=nodes if start is not None else None, node_count=count,
            gpus=gpus if start is not None else None, cpus=cpus if start is not None else None, account=account, user=user,
            partition=partition,
        )  # fmt: skip
        told: dict[str, Any] = {**NOTHING_USED, "eligible_us": at(submit), "asked_gpus": gpus, "asked_nodes": count or 1, "asked_cpus": cpus, **used}  # fmt: skip
        use = ClusterJobUse(
            cluster="lab", job=str(job), step=None, submit_us=at(submit), start_us=start, end_us=end, **told,
        )  # fmt: skip
        begin = next(each for each in (start, at(submit)) if each is not None)
        return self.says(row, begin, end).says(use, begin, end)

    def event(self, node: str, state: str, begins: float, ends: float | None, reason: str = "fan") -> Cluster:  # fmt: skip
        end = None if ends is None else at(ends)
        value = ClusterNodeEvent(
            cluster="lab", node=node, state=state, reason=reason, start_us=at(begins), end_us=end, seen_us=None,
        )  # fmt: skip
        return self.says(value, at(begins), end)

    def reserved(self, nodes: str, begins: float, ends: float, name: str = "course") -> Cluster:
        value = ClusterReservation(cluster="lab", name=name, nodes=nodes, flags="")
        return self.says(value, at(begins), at(ends))

    def account(self, name: str, parent: str | None = "root") -> Cluster:
        return self.says(
            ClusterAccount(
                cluster="lab", account=name, parent=parent, organisation=None, limits="", users=()
            )
        )

    def partition(self, name: str = "gpu", weights: str = "") -> Cluster:
        return self.says(ClusterPartition(
            cluster="lab", partition=name, nodes="", weights=weights, default=True, state="UP", tier=1, limit_us=None, qos=None,
        ))  # fmt: skip

    def rate(self, plan: str, rate: str = "2.10", *, partition: str = "gpu", qos: str | None = None, per: str = "gpu", since: float = 0) -> Cluster:  # fmt: skip
        return self.says(
            ClusterRate(
                cluster="lab", partition=partition, qos=qos, per=per, rate=rate, currency="EUR", plan_name="p", plan=plan
            ),
            at(since),
        )  # fmt: skip

    @property
    def fleet(self) -> Fleet:
        return fleet_from("lab", self.said)

    def time(self, period: Period = DAY) -> FleetTime:
        """What its GPUs did; that it adds up is asserted each time."""
        found = fleet_time(self.fleet, period)
        assert sum(each.us for each in found.spent) == found.owned_us
        assert all(each.us >= 0 for each in found.spent)
        return found

    def hours(self, period: Period = DAY) -> dict[str, float]:
        """GPU-hours by cause, of work by state."""
        found: dict[str, float] = {}
        for each in self.time(period).spent:
            cause = each.state if each.state in ("working", "unknown") else each.cause
            found[cause] = found.get(cause, 0) + each.us / HOUR
        return found
