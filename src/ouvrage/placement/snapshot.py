"""What stands now, as placement is told it: machines, leases, what runs, what waits, who has used how much.

Decides only which words a plan is made from; nothing here is remembered from one plan to the next, and the order of
the tuples means nothing. Everything is a plain value, so that a plan can be made again from a kept snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.time import DAY, HOUR, MINUTE, SECOND
from ouvrage.model.selling import Placed

HOLDS = ("dependency", "budget", "balance", "deadline", "held", "closed")
"""What may keep a job back from outside, in the order in which one of several is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU of a node: its UUID, its model and memory as the node reports them, and whether anybody fences it."""

    device: str
    model: str
    memory_mib: int | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine: ``cpus`` are the numbers of its usable cores, memory and scratch in MiB.

    ``fenced``: nothing is placed here. ``listed`` False: nothing but work in leases that stand here already.
    ``windows`` of maintenance, from and to, soonest first: nothing is placed here that may still run when one begins.
    """

    node: str
    name: str
    devices: tuple[Device, ...]
    cpus: tuple[int, ...]
    memory_mib: int
    disk_mib: int
    listed: bool = True
    fenced: bool = False
    isolations: tuple[str, ...] = ("sandbox",)
    windows: tuple[tuple[int, int], ...] = ()

    def clear_from(self, at_us: int, lasts_us: int | None) -> int:
        """From when on something that lasts so long (None: for ever) is over before the next window begins."""
        for from_us, to_us in self.windows:
            if to_us > at_us:
                if lasts_us is not None and at_us + lasts_us <= from_us:
                    break
                at_us = to_us
        return at_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one job takes of one node: whole GPUs of one model (``gpu`` None: of any one), whole cores, MiB.

    ``nodes`` are the only ones that may be used (empty: all); ``isolation`` one of ``model/work.ISOLATIONS``.
    """

    gpus: int = 0
    gpu: str | None = None
    cpus: int = 1
    memory_mib: int = 0
    disk_mib: int = 0
    isolation: str = "sandbox"
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease that stands. ``term`` leases keep their place until ``until_us`` (None: until ended).

    Leases of kind ``job`` may be given too and are passed over: their attempt is among the running.
    ``standing``, ``interruptible`` and ``notice_us`` say whether and for whom it may be ended early; ``stopping``:
    it was told that it will be.
    """

    lease: str
    kind: str
    project: str
    placed: Placed
    until_us: int | None
    started_us: int = 0
    standing: int = 0
    interruptible: bool = False
    notice_us: int = 0
    stopping: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An attempt that holds its place: from its order until it is scrubbed.

    ``ends_by_us`` is when it has gone at the latest, its time limit, grace and scrubbing counted; None where nothing
    says so. ``notice_us`` is the warning it is owed before an interruption; ``stopping``: it was told to end already,
    and has gone once that is over.
    """

    attempt: str
    job: str
    project: str
    lease: str
    placed: Placed
    started_us: int
    ends_by_us: int | None
    standing: int = 0
    priority: int = 0
    interruptible: bool = False
    notice_us: int = 0
    stopping: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A reason from outside why a job may not start: ``kind`` one of ``HOLDS``, ``words`` for a person."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that waits. ``needs`` is what is placed: the offer's configuration, or what it asks of its ``lease``.

    ``standing`` ranks between projects and is the owner's to give (``order.standing_of``); ``priority`` is the
    tenant's and orders a project's own jobs. ``not_on`` are nodes that failed it. ``time_limit_us`` and ``grace_us``
    bound how long it stays once started. Before ``not_before_us`` it is not tried again.
    """

    job: str
    project: str
    org: str
    needs: Needs
    submitted_us: int
    lease: str | None = None
    standing: int = 0
    priority: int = 0
    not_on: tuple[str, ...] = ()
    interruptible: bool = False
    time_limit_us: int | None = None
    grace_us: int = 0
    not_before_us: int = 0
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A project's weight, and its use by ended attempts, decayed up to now (``order.aged``).

    ``used_us`` counts microseconds of the whole site: an attempt that held a quarter of it for an hour used 15 min.
    """

    project: str
    weight: Fraction = Fraction(1)
    used_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the owner wants places given out.

    ``half_life_us``: after so long, use counts half. ``counted_us``: a job that begins is counted at once as if it
    had run so long, so that many begun together are shared out too. ``turnover_us``: from a job's end to its place
    being clean. ``promises``: so many of the first jobs that cannot start have a node kept for them. Work is
    interrupted (``preemption``) only where a job gets its place sooner by ``worth_us`` at least.
    """

    half_life_us: int = 7 * DAY
    counted_us: int = HOUR
    turnover_us: int = 30 * SECOND
    promises: int = 8
    preemption: bool = True
    worth_us: int = 5 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that placement knows at one moment."""

    nodes: tuple[Node, ...] = ()
    leases: tuple[Lease, ...] = ()
    running: tuple[Running, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    shares: tuple[Share, ...] = ()
    policy: Policy = field(default_factory=Policy)
