"""Submitted work: a job as it was asked for, and each execution of it.

States of a job: ``waiting``, ``starting``, ``running``, ``stopping``, then one of ``ENDED``. A job that is retried goes back to
``waiting``. What happens when is decided by ``placement``; these are what was asked and what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ouvrage.model.selling import Placed

ENDED = ("done", "failed", "cancelled", "refused")
UNDER_WAY = ("waiting", "starting", "running", "stopping")
JOB_STATES = (*UNDER_WAY, *ENDED)
ATTEMPT_STATES = ("ordered", "starting", "running", "stopping", "scrubbing", "ended")
OUTCOMES = (
    "done",
    "failed",
    "out of memory",
    "time limit",
    "cancelled",
    "preempted",
    "idle",
    "budget",
    "unhealthy",
    "hardware",
    "lost",
    "never started",
)
"""``hardware``, ``lost`` and ``never started`` are not the tenant's doing and are not billed."""
UNBILLED = ("hardware", "lost", "never started")
CAUSES = ("program", "hardware", "operator", "tenant", "platform", "unknown")
NETWORKS = ("none", "egress")
ISOLATIONS = ("sandbox", "podman", "none")
RESTARTS = ("never", "on-failure", "always")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name and its value: one variable of an environment, one label."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A file that travels: ``path`` inside the sandbox, ``name`` in the job's store of files."""

    path: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What a tenant asks for. Amounts are whole; a time limit of None is the offer's or the lease's end.

    ``command`` is argv; ``image`` an OCI reference (then ``isolation`` is ``podman``). ``secrets`` name secrets of the project and the
    variable each goes into. ``after`` names jobs that must be done first. ``budget`` is the most it may cost, decimal text in the
    organisation's currency. ``checkpoint`` is a path that survives attempts; ``unit`` and ``unit_regex`` go to the meter. ``retries``
    counts further attempts after a failure that is the program's; one that is the machine's is always tried again elsewhere.
    ``grace_us`` is the time from SIGTERM to SIGKILL. A job with a ``port`` is a service: ``health`` is the path that it answers while
    it is well (None: its port is enough), ``restart`` one of ``RESTARTS``. Specifications of before there were services name
    neither: ``LATER`` says what they meant.
    """

    LATER: ClassVar[Mapping[str, object]] = {"health": None, "restart": "never"}

    name: str
    command: tuple[str, ...]
    image: str | None
    isolation: str
    gpus: int
    gpu: str | None
    cpus: int
    memory_mib: int
    disk_mib: int
    environment: tuple[Named, ...]
    secrets: tuple[Named, ...]
    inputs: tuple[Carried, ...]
    outputs: tuple[Carried, ...]
    volumes: tuple[Carried, ...]
    workdir: str
    checkpoint: str | None
    unit: str | None
    unit_regex: str | None
    network: str
    egress: tuple[str, ...]
    port: int | None
    health: str | None
    restart: str
    retries: int
    time_limit_us: int | None
    grace_us: int
    priority: int
    budget: str | None
    deadline_us: int | None
    interruptible: bool
    after: tuple[str, ...]
    stop_idle_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """A job was accepted into the queue, to run under ``offer`` (a lease per attempt) or in ``lease``."""

    KIND: ClassVar[str] = "platform.job"
    VERSION: ClassVar[int] = 1

    job: str
    org: str
    project: str
    user: str
    offer: str | None
    lease: str | None
    spec: JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """A job came to one of ``ENDED`` for good; ``reason`` in plain words, ``code`` stable."""

    KIND: ClassVar[str] = "job.ended"
    VERSION: ClassVar[int] = 1

    job: str
    state: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOrdered:
    """The intent to execute a job where it is ``placed``, recorded before anything is started.

    ``attempt`` is also the run's id. Placed, because in a lease it may have a part of what the lease has.
    """

    KIND: ClassVar[str] = "platform.attempt"
    VERSION: ClassVar[int] = 1

    attempt: str
    job: str
    number: int
    lease: str
    placed: Placed
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What an attempt used, exactly, from its control group; None where the kernel did not tell."""

    memory_bytes: int | None
    cpu_us: int | None
    processes: int | None
    disk_bytes: int | None
    sent_bytes: int | None
    received_bytes: int | None
    oom_kills: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """What became of an attempt, as its own supervisor recorded it.

    The fact's period is from the command's start to its exit, by the node's clock; ``wall_us`` by its monotonic clock. ``exit_code``
    or ``signal`` is set where the command ended by itself or was ended; both None where it never began or nobody saw. ``outcome`` and ``cause`` are
    from ``OUTCOMES`` and ``CAUSES``. ``scrub`` is ``clean``, ``failed`` or ``none``.
    """

    KIND: ClassVar[str] = "attempt.ended"
    VERSION: ClassVar[int] = 1

    attempt: str
    job: str
    wall_us: int
    exit_code: int | None
    signal: int | None
    outcome: str
    cause: str
    reason: str
    isolation: str
    peaks: Peaks
    scrub: str
    scrub_detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """``count`` lengths of time in the bucket of this number: see ``metering/latency``."""

    bucket: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUsed:
    """What passed through the platform to a service in the fact's period: requests whose answers ended in it.

    ``failed``: answered with 500 or above, broken off, or not at all. ``counted`` are answers whose tokens the service told itself:
    ``tokens_in`` and ``tokens_out`` are theirs alone; ``pieces`` came in streams that told none. ``first`` is the time to the first
    byte, ``token`` to the first piece of text of a stream, ``took`` to the end; counted where there was one.
    """

    KIND: ClassVar[str] = "service.window"
    VERSION: ClassVar[int] = 1

    attempt: str
    job: str
    requests: int
    failed: int
    counted: int
    tokens_in: int
    tokens_out: int
    pieces: int
    bytes_in: int
    bytes_out: int
    first: tuple[Bucket, ...]
    token: tuple[Bucket, ...]
    took: tuple[Bucket, ...]
