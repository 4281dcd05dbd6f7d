"""What came to a platform from elsewhere: runs, and the telemetry of its nodes.

A run's own facts keep the source that metered them and say nothing of tenants; whose they are is said here, once. Samples of
telemetry are too many to be facts: a sealed file of them is, by its hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReceived:
    """A run belongs to ``project`` of ``org``: as an ``attempt`` of a job of the same id, or because a member sent it.

    ``by`` is the user or the node that sent it first.
    """

    KIND: ClassVar[str] = "platform.run"
    VERSION: ClassVar[int] = 1

    run: str
    org: str
    project: str
    attempt: bool
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySealed:
    """A file of samples is whole, and has this hash: what nodes sent between two moments by their own clocks.

    ``samples`` are its rows, one a moment for each GPU and one for its node; ``batches`` are those that it was made from.
    """

    KIND: ClassVar[str] = "telemetry.sealed"
    VERSION: ClassVar[int] = 1

    file: str
    sha256: str
    size_bytes: int
    batches: int
    samples: int
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryDropped:
    """A file of samples was removed, and ``why``: how long telemetry is kept has a limit, and what is missing is said."""

    KIND: ClassVar[str] = "telemetry.dropped"
    VERSION: ClassVar[int] = 1

    file: str
    size_bytes: int
    from_us: int
    to_us: int
    why: str
