"""What the facts around a metered command say: its job, what joins its GPUs, and what went wrong.

Each class is the payload of one kind of fact, version 1. They are stated by the meter beside a run and
change none of its figures; what a launcher or a library said of itself is kept as it said it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

DRIVERS = "nvidia-smi"
"""The source of a topology that the driver's own tool told the meter."""
PLACES = ("node", "nodes", "rank", "local_rank", "ranks", "restart")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """The run is a part of the job ``job``, on the machine ``host`` (called ``host_name``).

    ``via`` says who named the job: ``--job``, the variable of a launcher, or an option in the command.
    ``host`` is made from the kernel's boot and the machine's name, so that runs with the same one stood
    on one machine at one time. ``node`` of ``nodes`` counts machines, ``rank`` of ``ranks`` processes,
    ``local_rank`` those of this machine, from 0; ``restart`` counts the launcher's own attempts. None
    where nobody said.
    """

    KIND: ClassVar[str] = "run.job"
    VERSION: ClassVar[int] = 1

    run: str
    job: str
    via: str
    host: str
    host_name: str
    node: int | None
    nodes: int | None
    rank: int | None
    local_rank: int | None
    ranks: int | None
    restart: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyRow:
    """A device and how it reaches each device in the order of the rows: ``X``, ``NV18``, ``PIX`` …

    ``cpus`` are the processors near it and ``numa`` their memory, as the driver writes them.
    """

    name: str
    links: tuple[str, ...]
    cpus: str | None
    numa: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTopology:
    """How the machine's GPUs and network cards are joined, as ``nvidia-smi topo -m`` tells.

    ``source`` is ``nvidia-smi`` where the meter asked it, or the name of the file that was given. ``nics``
    are the cards' own names, in the order of their rows, where they are told.
    """

    KIND: ClassVar[str] = "run.topology"
    VERSION: ClassVar[int] = 1

    run: str
    source: str
    rows: tuple[TopologyRow, ...]
    nics: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunXid:
    """The driver reported an error of a GPU: ``xid`` at ``at_us``, of ``gpu`` in the run's numbers.

    ``gpu`` is None where the driver did not say which.
    """

    KIND: ClassVar[str] = "run.xid"
    VERSION: ClassVar[int] = 1

    run: str
    gpu: int | None
    at_us: int
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """``channels`` one-way connections went by the transport ``name``, between ``pairs`` of ranks."""

    name: str
    channels: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """``calls`` of one operation over ``size_bytes`` by one rank, among ``ranks``.

    The size is that of nccl-tests: what each rank holds of the larger side of the operation.
    """

    name: str
    size_bytes: int
    ranks: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommunication:
    """What NCCL said of itself in its INFO log: by which ways ranks spoke, and which calls were made.

    ``source`` is ``output`` or the name of the log's file. ``ranks`` and ``nodes`` are those of the
    largest communicator; ``heard`` processes wrote to the log. ``calls`` are those of the process that
    listed most, empty where the log does not list any (``NCCL_DEBUG_SUBSYS=COLL``).
    """

    KIND: ClassVar[str] = "run.communication"
    VERSION: ClassVar[int] = 1

    run: str
    source: str
    library: str | None
    ranks: int | None
    nodes: int | None
    heard: int
    nvls: bool
    rings: int
    transports: tuple[Transport, ...]
    calls: tuple[Calls, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """One size of one operation: microseconds out of place and bus bandwidth, both as decimal text."""

    name: str
    size_bytes: int
    time_us: str
    bus_gb_s: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLinkTest:
    """What nccl-tests measured among ``ranks`` GPUs (``gpu``: their model), in the file ``source``."""

    KIND: ClassVar[str] = "run.link_test"
    VERSION: ClassVar[int] = 1

    run: str
    source: str
    ranks: int
    gpu: str
    rows: tuple[LinkRow, ...]


AROUND = (RunJob, RunTopology, RunXid, RunCommunication, RunLinkTest)
