"""From the state of a thing at moments to its state over time, as far as samples reach.

Decides that a sample holds until the next one where that came soon enough, and that nothing is known
between two that lie further apart. Samples of several files are one series: what is recorded already
takes part with its beginnings and ends, so that the order of the files does not matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Group = tuple[str, str, int]
"""A state, its cause, and how many devices are in it (0: all of the thing)."""
Pattern = tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What something was at a moment, and where that stands in a file."""

    at_us: int
    pattern: Pattern
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something was in a pattern from one moment to another; equal ones: known at that moment only."""

    from_us: int
    to_us: int
    pattern: Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Spans without overlap, the gaps between them, and samples that contradict what is known."""

    spans: tuple[Span, ...]
    gaps: tuple[tuple[int, int], ...]
    refused: tuple[Sample, ...]


def series_of(known: Sequence[Span], samples: Iterable[Sample], limit_us: int) -> Series:
    """One series of what is recorded and what is new.

    A span begins where the pattern changes, after a gap, where a recorded one began and where a file
    begins: so every recorded span has one that takes its place, and a file that comes later can still
    say what was between two others. Files that overlap with other samples than those recorded are
    exact to ``limit_us``.
    """
    starts = {span.from_us for span in known}
    at = {span.to_us: span.pattern for span in known} | {s.from_us: s.pattern for s in known}
    recorded = set(at)
    refused = [
        sample
        for sample in sorted(samples, key=lambda each: each.at_us)
        if at.setdefault(sample.at_us, sample.pattern) != sample.pattern
    ]
    _back_again(known, at, recorded, limit_us)
    moments = sorted(at)
    for before, now in itertools.pairwise(moments):
        if before in recorded and now not in recorded:
            starts.add(now)
    return _spans(known, at, starts, limit_us, tuple(refused))


def _back_again(
    known: Sequence[Span], at: dict[int, Pattern], recorded: set[int], limit_us: int
) -> None:
    """Where a new sample contradicts the middle of a recorded span, the span goes on after ``limit_us``."""
    for moment in sorted(set(at) - recorded):
        for span in known:
            inside = span.from_us < moment < span.to_us - limit_us
            after = moment + limit_us
            if inside and at[moment] != span.pattern and not any(moment < m <= after for m in at):
                at[after] = span.pattern


def _spans(
    known: Sequence[Span],
    at: dict[int, Pattern],
    starts: set[int],
    limit_us: int,
    refused: tuple[Sample, ...],
) -> Series:
    spans: list[Span] = []
    gaps: list[tuple[int, int]] = []
    moments = sorted(at)
    begun = moments[0] if moments else 0
    for now, following in itertools.pairwise(moments):
        linked = _linked(known, now, following, limit_us)
        if linked and at[following] == at[now] and following not in starts:
            continue
        spans.append(Span(from_us=begun, to_us=following if linked else now, pattern=at[begun]))
        if not linked:
            gaps.append((now, following))
        begun = following
    if moments:
        spans.append(Span(from_us=begun, to_us=moments[-1], pattern=at[begun]))
    return Series(spans=tuple(spans), gaps=tuple(gaps), refused=refused)


def _linked(known: Sequence[Span], now: int, following: int, limit_us: int) -> bool:
    return following - now <= limit_us or any(
        span.from_us <= now and following <= span.to_us for span in known
    )
