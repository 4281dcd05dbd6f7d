"""What the facts about one metered run say.

Each class is the payload of one kind of fact, version 1 unless it says otherwise. Times inside a
run are microseconds since its start on a monotonic clock; only ``started_us`` is a moment in UTC.
Counters are deltas over the period named beside them; None means that the machine did not tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ouvrage.base.price import Price

OUTCOMES = ("completed", "failed", "interrupted", "lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine a run stood on, as the run was allowed to see it.

    ``cpus_online`` counts the machine's, ``cpus_allowed`` those the affinity mask admits,
    ``cpu_quota_ppm`` the cgroup's limit in millionths of a core (None: no limit found),
    ``memory_limit_bytes`` the cgroup's (None: no limit found).
    """

    cpu_model: str | None
    cpus_online: int | None
    cpus_allowed: int
    cpu_quota_ppm: int | None
    memory_bytes: int | None
    memory_limit_bytes: int | None
    kernel: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A command was started under the meter. ``price`` is what the user says a period costs."""

    KIND: ClassVar[str] = "run.started"
    VERSION: ClassVar[int] = 1

    run: str
    label: str | None
    command: tuple[str, ...]
    cwd: str
    started_us: int
    price: Price | None
    unit: str | None
    period_us: int
    host: Host
    meter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWindow:
    """What the run and its host did from ``from_us`` to ``to_us``; windows tile the run.

    ``covered_us`` is the part in which samples came when they were due; the rest is a gap.
    ``active_us`` sums, sample by sample, the lesser of elapsed and CPU time: the time in which at
    least one thread of the tree worked. ``run_delay_us`` is time spent runnable without a core,
    ``emitter_*`` the same for the one thread that reported spans or units from code.
    """

    KIND: ClassVar[str] = "run.window"
    VERSION: ClassVar[int] = 1

    run: str
    index: int
    from_us: int
    to_us: int
    covered_us: int
    samples: int
    active_us: int | None
    cpu_user_us: int | None
    cpu_system_us: int | None
    run_delay_us: int | None
    emitter_cpu_us: int | None
    emitter_run_delay_us: int | None
    blkio_delay_us: int | None
    blocked_us: int | None
    throttled_us: int | None
    read_bytes: int | None
    write_bytes: int | None
    ctx_voluntary: int | None
    ctx_involuntary: int | None
    major_faults: int | None
    rss_max_bytes: int | None
    processes_max: int | None
    host_busy_us: int | None
    host_idle_us: int | None
    host_iowait_us: int | None
    host_steal_us: int | None
    psi_cpu_us: int | None
    psi_io_us: int | None
    psi_memory_us: int | None
    disk_read_bytes: int | None
    disk_write_bytes: int | None
    net_rx_bytes: int | None
    net_tx_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWaits:
    """What speaks for the waits of a window, beside ``RunWindow``, which has the same edges.

    ``delay_cpu_us`` is the processor time of the threads of which the run delay was read: processes
    that lived between two samples are in the one and not in the other. ``quota_stopped`` of
    ``quota_periods`` ended with the cgroup stopped by its quota. ``refaulted_bytes`` were read back
    after they had been thrown out of memory. ``network_us`` is the time that ended in a sample with
    a thread asleep at a connection to another machine, ``running_us`` that which ended in one with a
    thread at work, and none blocked or asleep there: it does not tell how the others slept.
    """

    KIND: ClassVar[str] = "run.waits"
    VERSION: ClassVar[int] = 1

    run: str
    index: int
    from_us: int
    to_us: int
    delay_cpu_us: int | None
    quota_periods: int | None
    quota_stopped: int | None
    refaulted_bytes: int | None
    network_us: int | None
    running_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMarks:
    """Lines or calls that marked units, in the order they came; the columns have one length.

    ``via`` says how they were recognised: ``code`` (``ouvrage.unit``), ``regex`` (``--unit-regex``)
    or ``line`` (a shipped recogniser; ``line:tqdm`` is that of one tool). ``mark`` is ``head`` (unit
    ``n`` begins here), ``end`` (unit ``n`` ends here) or ``count`` (``n`` more units ended here;
    nought where work only begins). ``at_us`` is null where several marks came in one read, so that
    their moments are not known.
    """

    KIND: ClassVar[str] = "run.marks"
    VERSION: ClassVar[int] = 1

    run: str
    index: int
    name: str
    via: str
    pid: int | None
    mark: tuple[str, ...]
    n: tuple[int, ...]
    at_us: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanSum:
    """Time spent in spans of one name: ``count`` spans, ``total_us`` exclusive of nested ones."""

    name: str
    count: int
    total_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpans:
    """What one thread of the command reported about ``from_us`` to ``to_us``.

    ``cpu_us`` is that thread's own CPU time in the interval.
    """

    KIND: ClassVar[str] = "run.spans"
    VERSION: ClassVar[int] = 1

    run: str
    index: int
    pid: int
    tid: int
    from_us: int
    to_us: int
    cpu_us: int | None
    spans: tuple[SpanSum, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """How a run ended. For a ``lost`` run ``wall_us`` is the last moment that reached the spool.

    ``notes`` are ``code: words`` of what the meter itself met, such as a full disk;
    ``outlived`` counts processes of the run that were still alive when the command ended.
    """

    KIND: ClassVar[str] = "run.ended"
    VERSION: ClassVar[int] = 1

    run: str
    outcome: str
    exit_code: int | None
    signal: int | None
    wall_us: int
    cpu_user_us: int | None
    cpu_system_us: int | None
    outlived: int | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSamples:
    """The sealed file of raw samples: SHA-256 and length of its uncompressed bytes."""

    KIND: ClassVar[str] = "run.samples"
    VERSION: ClassVar[int] = 1

    run: str
    sha256: str
    size_bytes: int
    samples: int
