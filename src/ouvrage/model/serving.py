"""What the facts about a served language model say: load, requests, and what its server counts.

Each class is the payload of one kind of fact, version 1. Moments are microseconds since the run's
start, durations microseconds from the moment a request was sent. None means that nobody told.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

ARRIVALS = ("trace", "rate", "concurrency")
STATUSES = (
    *("ok", "refused", "failed", "timeout", "cut", "garbled", "unreachable", "cancelled"),
)  # fmt: skip
"""How a request ended: ``refused`` is an HTTP status of 400 and more, ``failed`` an error that the
server put into its answer, ``cut`` an answer that broke off, ``garbled`` one that cannot be read."""
COUNTED = ("usage", "chunks")
REQUESTS_VIA = ("replay", "log")
SERVER_VIA = ("metrics", "log")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLoad:
    """The load that a replay was asked to put on a server.

    ``arrivals`` is ``trace`` (open loop at the trace's moments, ``speed_up`` times as fast),
    ``rate`` (open loop at so many a second on average) or ``concurrency`` (closed loop: so many at
    once). ``speed_up`` and ``rate`` are decimal text. ``planned`` requests want ``asked_in`` and
    ``asked_out`` tokens together. ``settings`` are the options that the server took.
    """

    KIND: ClassVar[str] = "run.load"
    VERSION: ClassVar[int] = 1

    run: str
    trace: str
    trace_sha256: str
    arrivals: str
    speed_up: str | None
    rate: str | None
    concurrency: int | None
    server: str
    model: str
    endpoint: str
    settings: tuple[str, ...]
    timeout_us: int
    planned: int
    asked_in: int
    asked_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequests:
    """Requests in the order in which they ended; the columns have one length.

    ``via`` is ``replay`` (timed here, by the client) or ``log`` (as the server printed them, without
    its queue: ``sent_us`` is null then). From when it was sent, ``first_us`` is the time to the first
    token, ``last_us`` to the last, ``took_us`` to the end of the answer or of the wait. ``counted``
    says whose count the tokens out are: the server's ``usage``, or ``chunks`` that came.
    """

    KIND: ClassVar[str] = "run.requests"
    VERSION: ClassVar[int] = 1

    run: str
    index: int
    via: str
    scheduled_us: tuple[int | None, ...]
    sent_us: tuple[int | None, ...]
    ended_us: tuple[int | None, ...]
    first_us: tuple[int | None, ...]
    last_us: tuple[int | None, ...]
    took_us: tuple[int | None, ...]
    asked_in: tuple[int | None, ...]
    asked_out: tuple[int | None, ...]
    tokens_in: tuple[int | None, ...]
    tokens_cached: tuple[int | None, ...]
    tokens_out: tuple[int | None, ...]
    counted: tuple[str | None, ...]
    status: tuple[str, ...]
    http: tuple[int | None, ...]


REQUEST_COLUMNS = tuple(
    field.name for field in fields(RunRequests) if field.name not in ("run", "index", "via")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServer:
    """A server of language models that told about itself: by ``metrics`` or in its ``log``.

    Bounds are the upper ends of its histograms' buckets, without the last, which has none: time to
    first token, time between tokens, time of a whole request. Empty: it has no such histogram.
    """

    KIND: ClassVar[str] = "run.server"
    VERSION: ClassVar[int] = 1

    run: str
    server: int
    engine: str
    via: str
    where: str
    first_bounds_us: tuple[int, ...]
    gap_bounds_us: tuple[int, ...]
    took_bounds_us: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServerWindow:
    """What a server counted from ``from_us`` to ``to_us``; ``covered_us`` of it readings were due.

    A step in which a counter fell back (``resets``: the server began anew) is not covered.
    ``running_us`` and ``waiting_us`` are requests x time. The counts are those of each bucket, not
    cumulated; the last has no upper bound.
    """

    KIND: ClassVar[str] = "run.server_window"
    VERSION: ClassVar[int] = 1

    run: str
    server: int
    index: int
    from_us: int
    to_us: int
    covered_us: int
    samples: int
    resets: int
    requests: int | None
    aborted: int | None
    tokens_in: int | None
    tokens_out: int | None
    running_us: int | None
    running_max: int | None
    waiting_us: int | None
    waiting_max: int | None
    gauges_covered_us: int
    first_counts: tuple[int, ...]
    gap_counts: tuple[int, ...]
    took_counts: tuple[int, ...]
