"""Who is next: the owner's standing, then fair share between projects, then a project's own priority, then time.

Decides the order alone. A project's share is its use, decayed, over its weight; use is counted in time of the whole
site, by whichever resource of it an attempt takes most of (dominant resource fairness, Ghodsi et al., NSDI 2011), so
that eight cores without a GPU and one GPU without cores can be weighed against one another.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.model.selling import Placed
from ouvrage.placement.snapshot import Needs, Snapshot, Waiting

WHOLE = 1_000_000
"""A size counts millionths of the site."""
_LAST = 2**200
_ONE = Fraction(1)


def standing_of(*, interruptible: bool) -> int:
    """The rank of work sold under ordinary terms: what may be interrupted stands behind what may not."""
    return 0 if interruptible else 1


class Site:
    """How much there is in all, for saying how much of it something takes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._gpus = sum(len(node.devices) for node in snapshot.nodes)
        self._cpus = sum(len(node.cpus) for node in snapshot.nodes)
        self._memory = sum(node.memory_mib for node in snapshot.nodes)

    def size(self, what: Needs | Placed) -> int:
        """The largest share that it takes of any resource, in millionths; at least one."""
        gpus = what.gpus if isinstance(what, Needs) else len(what.devices)
        cpus = what.cpus if isinstance(what, Needs) else len(what.cpus)
        parts = ((gpus, self._gpus), (cpus, self._cpus), (what.memory_mib, self._memory))
        return max(1, *(WHOLE * part // whole for part, whole in parts if whole))


def aged(used_us: int, from_us: int, to_us: int, half_life_us: int) -> int:
    """Use as known at ``from_us``, as it counts at ``to_us``: half after each half-life."""
    return round(used_us * math.pow(0.5, max(0, to_us - from_us) / half_life_us))


def spell(size: int, began_us: int, ended_us: int, at_us: int, half_life_us: int) -> int:
    """What holding ``size`` millionths of the site from one moment to another counts at ``at_us``.

    The integral of the same decay over the time that it was held.
    """
    scale = half_life_us / math.log(2)
    newest = math.pow(0.5, max(0, at_us - ended_us) / half_life_us)
    oldest = math.pow(0.5, max(0, at_us - began_us) / half_life_us)
    return max(0, round(size * scale * (newest - oldest) / WHOLE))


class Queue:
    """Jobs that may start, in order; what is started counts for its project at once.

    ``take`` gives the next job; ``started`` must be told of it if it starts, before the next is taken.
    """

    def __init__(self, snapshot: Snapshot, jobs: Iterable[Waiting], now_us: int) -> None:
        self._policy = snapshot.policy
        self._site = Site(snapshot)
        self._weights = {s.project: s.weight for s in snapshot.shares}
        self._used = {s.project: s.used_us for s in snapshot.shares}
        self._ratios: dict[str, int] = {}
        for running in snapshot.running:
            self._count_running(running.project, running.placed, running.started_us, now_us)
        self._lines: dict[tuple[int, str], list[Waiting]] = {}
        for job in sorted(jobs, key=own_order, reverse=True):
            self._lines.setdefault((job.standing, job.project), []).append(job)
        self._heap = [self._entry(key) for key in self._lines]
        heapq.heapify(self._heap)

    def _count_running(self, project: str, placed: Placed, began_us: int, now_us: int) -> None:
        size = self._site.size(placed)
        so_far = spell(size, began_us, now_us, now_us, self._policy.half_life_us)
        self._add(project, so_far + size * self._policy.counted_us // WHOLE)

    def _add(self, project: str, used_us: int) -> None:
        self._used[project] = self._used.get(project, 0) + used_us
        self._ratios.pop(project, None)

    def _entry(self, key: tuple[int, str]) -> tuple[int, int, int, str, tuple[int, str]]:
        standing, project = key
        job = self._lines[key][-1]
        return (-standing, self.ratio(project), job.submitted_us, job.job, key)

    def ratio(self, project: str) -> int:
        """Use over weight, in microseconds of the site; a project of no weight comes last."""
        ratio = self._ratios.get(project)
        if ratio is None:
            weight = self._weights.get(project, _ONE)
            used = self._used.get(project, 0)
            ratio = used * weight.denominator // weight.numerator if weight > 0 else _LAST + used
            self._ratios[project] = ratio
        return ratio

    def take(self) -> Waiting | None:
        """The next job, or None where there is none left."""
        while self._heap:
            entry = self._heap[0]
            key = entry[-1]
            if entry[1] != self.ratio(key[1]):  # its project has started something since
                heapq.heapreplace(self._heap, self._entry(key))
                continue
            job = self._lines[key].pop()
            if self._lines[key]:
                heapq.heapreplace(self._heap, self._entry(key))
            else:
                heapq.heappop(self._heap)
            return job
        return None

    def started(self, job: Waiting) -> None:
        """Count a job that starts for its project."""
        size = self._site.size(job.needs)
        self._add(job.project, size * self._policy.counted_us // WHOLE)


def own_order(job: Waiting) -> tuple[int, int, str]:
    """The order among a project's own jobs, and in a lease: priority, then time, then id."""
    return (-job.priority, job.submitted_us, job.job)


def lease_lines(jobs: Sequence[Waiting]) -> dict[str, list[Waiting]]:
    """Jobs that wait for their own lease, by lease, in the tenant's order."""
    lines: dict[str, list[Waiting]] = {}
    for job in sorted(jobs, key=own_order):
        if job.lease is not None:
            lines.setdefault(job.lease, []).append(job)
    return dict(sorted(lines.items()))
