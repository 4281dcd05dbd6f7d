"""Samples to windows: how many microseconds and bytes each ten seconds saw.

Windows tile the run. Their edges are the first sample at or after each multiple of the window, so
that every difference is taken between two real readings and nothing is interpolated. An interval
between samples longer than two periods is a gap: it belongs to its window but is not covered. A
counter that is missing at an edge or that steps back gives None in that window: never a negative
number, and never a zero that nobody measured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ouvrage.model.runs import RunWaits, RunWindow

GAP_PERIODS = 2
COUNTERS = (
    "cpu_user_us",
    "cpu_system_us",
    "run_delay_us",
    "emitter_cpu_us",
    "emitter_run_delay_us",
    "blkio_delay_us",
    "throttled_us",
    "read_bytes",
    "write_bytes",
    "ctx_voluntary",
    "ctx_involuntary",
    "major_faults",
    "host_busy_us",
    "host_idle_us",
    "host_iowait_us",
    "host_steal_us",
    "psi_cpu_us",
    "psi_io_us",
    "psi_memory_us",
    "disk_read_bytes",
    "disk_write_bytes",
    "net_rx_bytes",
    "net_tx_bytes",
)
WAIT_COUNTERS = ("delay_cpu_us", "quota_periods", "quota_stopped", "refaulted_bytes")
BORN_INSIDE = frozenset({"emitter_cpu_us", "emitter_run_delay_us"})
"""Counters of a thread, from its birth on. The first to report was born after the run began, so
where nothing is known of it yet it had used nothing."""

Values = Sequence[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Samples by column: ``times`` in order, and for each column one value or None at each time."""

    times: Sequence[int]
    values: Mapping[str, Values]

    def rows(self, name: str, first: int, last: int) -> Values:
        """The values of a column from one row to another, both included."""
        held = self.values.get(name)
        return [None] * (last + 1 - first) if held is None else held[first : last + 1]


def windows_of(
    run: str, columns: Columns, *, wall_us: int, period_us: int, window_us: int
) -> list[RunWindow]:
    """The windows that tile ``0 .. wall_us``; none when the run lasted no time at all."""
    cut, edges = _cut(columns, wall_us, period_us, window_us)
    return [cut.window(run, index, *edge) for index, edge in enumerate(edges)]


def waits_of(
    run: str, columns: Columns, *, wall_us: int, period_us: int, window_us: int
) -> list[RunWaits]:
    """What speaks for the waits of each window; none of those of which nothing was told."""
    cut, edges = _cut(columns, wall_us, period_us, window_us)
    if not {*WAIT_COUNTERS, "at_network", "running"} & columns.values.keys():
        return []
    return [cut.waits(run, index, *edge) for index, edge in enumerate(edges)]


def _cut(
    columns: Columns, wall_us: int, period_us: int, window_us: int
) -> tuple[_Cut, list[tuple[int, int]]]:
    times = [min(t, wall_us) for t in columns.times]
    cut = _Cut(columns=columns, times=times, longest_us=GAP_PERIODS * period_us)
    if wall_us <= 0:
        return cut, []
    return cut, list(pairwise(edges_of(times, wall_us, window_us, period_us)))


def edges_of(times: Sequence[int], wall_us: int, window_us: int, shortest_us: int) -> list[int]:
    """Moments 0, the first sample at or after each multiple of the window, and the end.

    A last window shorter than one sampling period would hold no difference; it joins its neighbour.
    """
    edges = [0]
    due = window_us
    while due < wall_us:
        at = bisect_left(times, due)
        if at == len(times) or wall_us - times[at] < shortest_us:
            break
        edges.append(times[at])
        due = (times[at] // window_us + 1) * window_us
    return [*edges, wall_us]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    columns: Columns
    times: Sequence[int]
    longest_us: int

    def window(self, run: str, index: int, start: int, end: int) -> RunWindow:
        first, last = self._rows(start, end)
        deltas = {name: self._delta(name, first, last) for name in COUNTERS}
        covered = self._covered(first, last, start, end)
        return RunWindow(
            run=run,
            index=index,
            from_us=start,
            to_us=end,
            covered_us=covered,
            samples=max(0, last - first + (1 if start == 0 and last >= first else 0)),
            active_us=self._active(first, last, deltas),
            blocked_us=self._seen("blocked", first, last),
            rss_max_bytes=self._greatest("rss_bytes", first, last),
            processes_max=self._greatest("processes", first, last),
            **deltas,
        )

    def waits(self, run: str, index: int, start: int, end: int) -> RunWaits:
        first, last = self._rows(start, end)
        return RunWaits(
            run=run,
            index=index,
            from_us=start,
            to_us=end,
            network_us=self._seen("at_network", first, last),
            running_us=self._seen("running", first, last, "blocked", "at_network"),
            **{name: self._delta(name, first, last) for name in WAIT_COUNTERS},
        )

    def _rows(self, start: int, end: int) -> tuple[int, int]:
        """First and last sample of the window, both included; the first is its opening edge."""
        first = bisect_left(self.times, start)
        last = bisect_left(self.times, end)
        if last == len(self.times) or self.times[last] > end:
            last -= 1
        return first, last

    def _covered(self, first: int, last: int, start: int, end: int) -> int:
        if last < first:
            return 0
        moments = [start, *self.times[first : last + 1], end]
        steps = (later - earlier for earlier, later in pairwise(moments))
        return sum(step for step in steps if step <= self.longest_us)

    def _delta(self, name: str, first: int, last: int) -> int | None:
        if name not in self.columns.values or last <= first:
            return None
        column = self.columns.values[name]
        opening, closing = column[first], column[last]
        if opening is None and name in BORN_INSIDE and not any(column[: first + 1]):
            opening = 0
        if opening is None or closing is None:
            return None
        held = opening
        for value in column[first + 1 : last + 1]:
            if value is not None:
                if value < held:
                    return None
                held = value
        return closing - opening

    def _active(self, first: int, last: int, deltas: Mapping[str, int | None]) -> int | None:
        """Time in which a thread worked: sample by sample the lesser of elapsed and CPU time."""
        if deltas["cpu_user_us"] is None or deltas["cpu_system_us"] is None:
            return None
        active = 0
        was: tuple[int, int] | None = None
        readings = zip(
            self.times[first : last + 1],
            self.columns.rows("cpu_user_us", first, last),
            self.columns.rows("cpu_system_us", first, last),
            strict=True,
        )
        for at, user, system in readings:
            if user is None or system is None:
                was = None
                continue
            if was is not None and at - was[0] <= self.longest_us:
                active += min(at - was[0], user + system - was[1])
            was = (at, user + system)
        return active

    def _seen(self, name: str, first: int, last: int, *absent: str) -> int | None:
        """Time that ended in a sample with one of what a gauge counts, and none of some others."""
        column = self.columns.rows(name, first, last)
        if all(value is None for value in column):
            return None
        others = [self.columns.rows(other, first, last) for other in absent]
        total = 0
        for row, (a, b) in enumerate(pairwise(self.times[first : last + 1]), 1):
            if column[row] and b - a <= self.longest_us and not any(o[row] for o in others):
                total += b - a
        return total

    def _greatest(self, name: str, first: int, last: int) -> int | None:
        known = [v for v in self.columns.rows(name, first, last) if v is not None]
        return max(known) if known else None
