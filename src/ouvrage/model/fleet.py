"""What a scheduler says of the fleet that it runs, beside its jobs: nodes, accounts, classes, reservations, and asked and used.

Each is a statement about a time, as it was read there; what an account is to the books (a tenant, a project) and what an
hour of a GPU was (idle, and for which cause) is derived from them and never recorded. ``ClusterRate`` alone is an owner's word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterJobUse:
    """What one row about ``job`` (of its ``step``, where set) says was asked for, allotted and used.

    Joined to the row of ``cluster.job`` by submission and beginning. ``eligible_us`` is when it might have begun had there been
    room; ``limit_us`` the time that it asked for (-1: without limit). ``reason`` is the last one that kept it waiting,
    other than priority and room. Memory in KiB, ``cpu_us`` processor time, ``gpu_percent`` the mean load that the scheduler saw,
    ``gpu_kib`` the most memory of GPUs. None where the row does not say.
    """

    KIND: ClassVar[str] = "cluster.use"
    VERSION: ClassVar[int] = 1

    cluster: str
    job: str
    step: str | None
    submit_us: int | None
    start_us: int | None
    end_us: int | None
    eligible_us: int | None
    limit_us: int | None
    qos: str | None
    reason: str | None
    reservation: str | None
    exit_code: str | None
    asked_nodes: int | None
    asked_cpus: int | None
    asked_gpus: int | None
    asked_kib: int | None
    billing: int | None
    memory_kib: int | None
    cpu_us: int | None
    used_kib: int | None
    gpu_percent: int | None
    gpu_kib: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node as the scheduler is configured to have it. ``gpus`` 0 and ``listed`` False: it is listed no more."""

    KIND: ClassVar[str] = "cluster.node-listed"
    VERSION: ClassVar[int] = 1

    cluster: str
    node: str
    listed: bool
    gpus: int
    gpu: str | None
    cpus: int | None
    memory_mib: int | None
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccount:
    """An account, what it is below (``parent``; None: below the root) and the ``users`` who may charge it."""

    KIND: ClassVar[str] = "cluster.account"
    VERSION: ClassVar[int] = 1

    cluster: str
    account: str
    parent: str | None
    organisation: str | None
    limits: str
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPartition:
    """A partition: the class of offer that jobs ask for by its name. ``nodes`` and ``weights`` as written there."""

    KIND: ClassVar[str] = "cluster.partition"
    VERSION: ClassVar[int] = 1

    cluster: str
    partition: str
    nodes: str
    weights: str
    default: bool
    state: str
    tier: int | None
    limit_us: int | None
    qos: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterQos:
    """A quality of service: what it preempts, and how its usage counts (``factor``, decimal text)."""

    KIND: ClassVar[str] = "cluster.qos"
    VERSION: ClassVar[int] = 1

    cluster: str
    qos: str
    priority: int | None
    preempts: str
    preempt_mode: str
    factor: str
    limits: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReservation:
    """Nodes kept for somebody over the fact's period. ``nodes`` is the list as written."""

    KIND: ClassVar[str] = "cluster.reservation"
    VERSION: ClassVar[int] = 1

    cluster: str
    name: str
    nodes: str
    flags: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTotal:
    """What the cluster told its accounting that it has: its GPUs in all, and the nodes that it had then."""

    KIND: ClassVar[str] = "cluster.total"
    VERSION: ClassVar[int] = 1

    cluster: str
    gpus: int
    nodes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRead:
    """A cluster was read, up to the fact's ``valid_to``. ``missing`` are the questions that it did not answer."""

    KIND: ClassVar[str] = "cluster.read"
    VERSION: ClassVar[int] = 1

    cluster: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRate:
    """An owner's price for an hour of one GPU (``per`` ``gpu``) or, without GPUs, of one core (``cpu``).

    Of a ``partition``, in one ``qos`` or (None) in each that has no price of its own. ``plan`` is the rate plan as frozen text.
    """

    KIND: ClassVar[str] = "cluster.rate"
    VERSION: ClassVar[int] = 1

    cluster: str
    partition: str
    qos: str | None
    per: str
    rate: str
    currency: str
    plan_name: str
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlaced:
    """Job ``job`` of ``cluster`` held a place for ``attempt`` of this platform's own, submitted at ``submit_us``.

    The attempt's lease is billed; what accounting says of the job is a second source of its time, and no second bill.
    """

    KIND: ClassVar[str] = "cluster.placed"
    VERSION: ClassVar[int] = 1

    cluster: str
    job: str
    submit_us: int
    attempt: str


FLEET: tuple[type, ...] = (
    ClusterPlaced,
    ClusterJobUse,
    ClusterNode,
    ClusterAccount,
    ClusterPartition,
    ClusterQos,
    ClusterReservation,
    ClusterTotal,
    ClusterRead,
    ClusterRate,
)
