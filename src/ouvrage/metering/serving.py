"""A served model in numbers: windows of what its server counts, quantiles, requests in flight.

Decides what a quantile is: of requests that were timed one by one, the value at its rank, and none
where too few lie above it; of a histogram, a value within the one bucket that holds it, with the
ends of that bucket as its range. It does not say what anything costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

from ouvrage.base.time import SECOND
from ouvrage.metering.gpus import Step, _Cut
from ouvrage.metering.windows import Columns
from ouvrage.model.serving import (
    ARRIVALS,
    COUNTED,
    REQUEST_COLUMNS,
    REQUESTS_VIA,
    SERVER_VIA,
    STATUSES,
    RunLoad,
    RunRequests,
    RunServer,
    RunServerWindow,
)

QUANTILES = {"p50": Fraction(50, 100), "p95": Fraction(95, 100), "p99": Fraction(99, 100)}
COUNTERS = ("requests", "aborted", "tokens_in", "tokens_out")
HISTOGRAMS = ("first", "gap", "took")
LOG_PERIOD_US = 10 * SECOND
"""vLLM prints its mean rates every ten seconds."""
SERVING_KINDS = tuple(kind.KIND for kind in (RunLoad, RunRequests, RunServer, RunServerWindow))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTrack:
    """One server of a run and every reading of it.

    Its columns are the counters, the gauges ``running`` and ``waiting``, and for each histogram the
    cumulated buckets ``first_0``, ``first_1`` …, the last without an upper bound.
    """

    server: RunServer
    columns: Columns


@dataclass(frozen=True, slots=True)
class Request:
    """One request: a row of ``RunRequests``, under the same names."""

    via: str
    scheduled_us: int | None
    sent_us: int | None
    ended_us: int | None
    first_us: int | None
    last_us: int | None
    took_us: int | None
    asked_in: int | None
    asked_out: int | None
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    counted: str | None
    status: str
    http: int | None

    @property
    def gap_us(self) -> Fraction | None:
        """Mean time between its tokens; None where fewer than two are known to have come."""
        if self.first_us is None or self.last_us is None or (self.tokens_out or 0) < 2:
            return None
        return Fraction(self.last_us - self.first_us, (self.tokens_out or 0) - 1)


def requests_in(facts: Iterable[RunRequests]) -> list[Request]:
    """Every request of these facts."""
    return [
        Request(fact.via, *row)
        for fact in facts
        for row in zip(*(getattr(fact, name) for name in REQUEST_COLUMNS), strict=True)
    ]


def server_windows(
    track: ServerTrack, *, wall_us: int, period_us: int, window_us: int
) -> list[RunServerWindow]:
    """The windows of one server; none where it never answered."""
    if track.server.via == "log":
        period_us = LOG_PERIOD_US
    cut = _Cut(track.columns, wall_us, period_us)
    return [
        _window(track.server, cut, index, start, end)
        for index, (start, end) in enumerate(cut.windows(window_us, period_us))
    ]


def _window(server: RunServer, cut: _Cut, index: int, start: int, end: int) -> RunServerWindow:
    steps, rows = cut.steps(start, end), cut.rows(start, end)
    sound = [step for step in steps if not _fell(cut, step)]
    counted: dict[str, Any] = {name: cut.counted(name, sound).told for name in COUNTERS}
    gauges = {name: cut.summed(name, steps) for name in ("running", "waiting")}
    buckets: dict[str, Any] = {
        f"{name}_counts": _buckets(server, cut, name, sound) for name in HISTOGRAMS
    }
    known = [cut.counted(name, sound) for name in COUNTERS if name in cut.values]
    return RunServerWindow(
        run=server.run,
        server=server.server,
        index=index,
        from_us=start,
        to_us=end,
        covered_us=min((part.covered_us for part in known), default=0),
        samples=len(rows),
        resets=len(steps) - len(sound),
        running_us=gauges["running"].told,
        running_max=max(cut.known("running", rows), default=None),
        waiting_us=gauges["waiting"].told,
        waiting_max=max(cut.known("waiting", rows), default=None),
        gauges_covered_us=gauges["running"].covered_us,
        **counted,
        **buckets,
    )


def _fell(cut: _Cut, step: Step) -> bool:
    """Whether any counter stepped back: the server began anew, and nobody knows what it had."""
    _, begin, end = step
    for name in COUNTERS:
        before, after = cut.column(name)[begin], cut.column(name)[end]
        if before is not None and after is not None and after < before:
            return True
    return False


def _buckets(server: RunServer, cut: _Cut, name: str, steps: Sequence[Step]) -> tuple[int, ...]:
    """How many observations fell into each bucket; none where it has no such histogram."""
    bounds = getattr(server, f"{name}_bounds_us")
    if not bounds:
        return ()
    below = [cut.counted(f"{name}_{i}", steps).amount for i in range(len(bounds) + 1)]
    return (below[0], *(max(0, upper - lower) for lower, upper in pairwise(below)))


def quantile(ordered: Sequence[Any], share: Fraction) -> Any:
    """The value at the rank of a quantile (nearest rank); None where no other lies beyond it.

    p95 needs 20 values and p99 a hundred: with fewer it would be the greatest by another name.
    """
    if not ordered or (share > Fraction(1, 2) and len(ordered) * (1 - share) < 1):
        return None
    return ordered[max(1, ceil(share * len(ordered))) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A quantile of a histogram: within ``low`` to ``high``, ``value`` if spread evenly there.

    ``value`` and ``high`` are None in the last bucket, which has no end: it is more than ``low``.
    """

    value: Fraction | None
    low: Fraction
    high: Fraction | None


def bucket_quantile(bounds: Sequence[int], counts: Sequence[int], share: Fraction) -> Within | None:
    """The quantile of a histogram; None where it holds too few observations, as ``quantile``."""
    total = sum(counts)
    if not total or (share > Fraction(1, 2) and total * (1 - share) < 1):
        return None
    rank, below = max(Fraction(1), share * total), 0
    for index, count in enumerate(counts):
        if count and below + count >= rank:
            low = Fraction(bounds[index - 1] if index else 0)
            if index == len(bounds):
                return Within(value=None, low=low, high=None)
            high = Fraction(bounds[index])
            return Within(value=low + (high - low) * (rank - below) / count, low=low, high=high)
        below += count
    raise AssertionError("a rank beyond its total")


def in_flight(requests: Iterable[Request]) -> list[tuple[int, int]]:
    """How many requests were under way from each moment on: (moment, number), moments rising."""
    changes: dict[int, int] = {}
    for request in requests:
        if request.sent_us is not None and request.took_us is not None:
            end = request.sent_us + request.took_us
            changes[request.sent_us] = changes.get(request.sent_us, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    number, found = 0, list[tuple[int, int]]()
    for moment in sorted(changes):
        number += changes[moment]
        found.append((moment, number))
    return found


def serving_fault(value: Any) -> str | None:
    """Why a statement about a served model cannot be reckoned with; None when it can."""
    if isinstance(value, RunLoad) and value.arrivals not in ARRIVALS:
        return f"arrivals of the sort {value.arrivals!r}"
    if isinstance(value, RunRequests):
        return _requests_fault(value)
    if isinstance(value, RunServer):
        if value.via not in SERVER_VIA:
            return f"a server told of by {value.via!r}"
        for name in HISTOGRAMS:
            bounds = getattr(value, f"{name}_bounds_us")
            if any(later <= earlier for earlier, later in pairwise((0, *bounds))):
                return f"bounds of buckets that do not rise: {name}"
    if isinstance(value, RunServerWindow):
        return window_fault(value)
    return None


def _requests_fault(value: RunRequests) -> str | None:
    columns = {name: getattr(value, name) for name in REQUEST_COLUMNS}
    if len({len(column) for column in columns.values()}) > 1:
        return f"columns of {sorted(len(column) for column in columns.values())} requests"
    if value.via not in REQUESTS_VIA or not set(STATUSES).issuperset(value.status):
        return "requests of an unknown sort"
    if not {*COUNTED, None}.issuperset(value.counted):
        return "tokens counted in an unknown way"
    numbers = (n for column in columns.values() for n in column if isinstance(n, int))
    return "a negative number" if any(n < 0 for n in numbers) else None


def window_fault(window: RunServerWindow) -> str | None:
    """What cannot be in a window of a server; None where all is well."""
    length = window.to_us - window.from_us
    for name in ("covered_us", "gauges_covered_us"):
        if not 0 <= getattr(window, name) <= length:
            return f"{name}: {getattr(window, name)} of {length} us"
    for name in window.__dataclass_fields__:
        value = getattr(window, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int) and number < 0 for number in numbers):
            return f"{name} is {value}, which nothing counts"
    return None
