"""Several processes of one job that mark the same units: each unit is one, however many say it.

Decides when marks of several processes, or lines that came again, are the same units. A launcher of
ranks in the command is needed for that, since two workers that happen to keep pace look the same.
Processes then mark the same units where they do it in step: every one's k-th mark lies before
anyone's next. Lines that repeat a whole series are copies where they took no time of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from ouvrage.model.runs import RunMarks

Row = tuple[str, int, "int | None"]


def in_step(processes: Sequence[Sequence[RunMarks]]) -> bool:
    """Whether these processes, each with its marks, marked the same units at the same pace."""
    series = [_counts(marks) for marks in processes]
    shortest, longest = min(map(len, series)), max(map(len, series))
    if longest - shortest > 1 or not shortest:
        return False
    rounds = list(zip(*(rows[:shortest] for rows in series), strict=True))
    if any(len({n for n, _ in group}) > 1 for group in rounds):
        return False
    times = [[t for _, t in group if t is not None] for group in rounds]
    return all(
        max(these) <= min(following) for these, following in pairwise(times) if these and following
    )


def _counts(marks: Sequence[RunMarks]) -> list[tuple[int, int | None]]:
    return [(n, t) for given in marks for _, n, t in rows_of(given) if n]


def rows_of(marks: RunMarks) -> list[Row]:
    """The marks of one fact, one by one."""
    return list(zip(marks.mark, marks.n, marks.at_us, strict=True))


@dataclass(slots=True)
class _Series:
    rows: list[Row]

    @property
    def numbers(self) -> set[int]:
        return {n for _, n, _ in self.rows}

    @property
    def times(self) -> list[int]:
        return [t for mark, _, t in self.rows if t is not None and mark != "head"] or [
            t for _, _, t in self.rows if t is not None
        ]


def without_copies(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows without whole series that other ranks printed again, and how many those were."""
    kept: list[_Series] = []
    copies = 0
    for series in _split(rows):
        if kept and _is_copy(series, kept):
            copies += 1
        else:
            kept.append(series)
    return [row for series in kept for row in series.rows], copies


def _split(rows: Sequence[Row]) -> list[_Series]:
    found: list[_Series] = []
    latest: int | None = None
    for row in rows:
        mark, n, _ = row
        begins = latest is None or (mark != "count" and n <= 1 and n < latest)
        if begins:
            found.append(_Series([]))
        found[-1].rows.append(row)
        latest = n if mark != "count" else (latest or 0)
    return found


def _is_copy(series: _Series, kept: Sequence[_Series]) -> bool:
    if not any(series.numbers <= before.numbers for before in kept):
        return False
    times = series.times
    if len(times) < len(series.numbers) or len(times) < 2:
        return True
    steps = [later - earlier for before in kept for earlier, later in pairwise(before.times)]
    return bool(steps) and times[-1] - times[0] < median_low(steps)
