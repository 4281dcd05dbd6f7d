"""What a cluster's own accounting says: a row of a job or of one of its steps, and what befell a node.

Rows are kept as statements, one fact for each that says something else; which of several about one job
counts, and how often it was started, is derived and never recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterJobRow:
    """One row about ``job`` of ``cluster`` (of its ``step``, where set) as accounting had it.

    Moments in microseconds UTC; ``elapsed_us`` the time it ran, without suspensions. ``nodes`` is the list
    as written, ``gpus`` all that were allocated together. None where the row does not say. ``shown`` is
    the number that people see where it is another: ``8012944_24093`` of an array's task.
    """

    KIND: ClassVar[str] = "cluster.job"
    VERSION: ClassVar[int] = 1

    cluster: str
    job: str
    step: str | None
    shown: str | None
    submit_us: int | None
    start_us: int | None
    end_us: int | None
    elapsed_us: int | None
    state: str
    nodes: str | None
    node_count: int | None
    gpus: int | None
    cpus: int | None
    account: str | None
    user: str | None
    partition: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNodeEvent:
    """``node`` of ``cluster`` was in ``state`` (down, drain, …) over the fact's period, for ``reason``.

    ``seen_us`` is when a list of that moment still had it so; None where the event's end is stated or
    it goes on.
    """

    KIND: ClassVar[str] = "cluster.node"
    VERSION: ClassVar[int] = 1

    cluster: str
    node: str
    state: str
    reason: str
    start_us: int
    end_us: int | None
    seen_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWhole:
    """Somebody says that every job of ``cluster`` in the fact's period is recorded: the rest was free."""

    KIND: ClassVar[str] = "cluster.whole"
    VERSION: ClassVar[int] = 1

    cluster: str
