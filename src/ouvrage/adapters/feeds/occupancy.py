"""From the state of a thing at moments to its state over time, as far as samples reach.

Decides that a sample holds until the next one where that came soon enough, and that nothing is known
between two that lie further apart. Samples of several files are one series: what is recorded already
takes part with its beginnings and ends, so that the order of the files does not matter.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
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


class _Known:
    """The recorded spans, which do not overlap, by moment."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans, key=lambda span: span.from_us)
        self._starts = [span.from_us for span in self.spans]

    def around(self, at_us: int) -> Span | None:
        """The span that had begun at a moment, whether or not it reaches it."""
        index = bisect_right(self._starts, at_us) - 1
        return self.spans[index] if index >= 0 else None

    def says(self, sample: Sample) -> bool:
        """Whether a sample lies within a span and says no more than that."""
        span = self.around(sample.at_us)
        inside = span is not None and span.from_us < sample.at_us < span.to_us
        return span is not None and inside and span.pattern == sample.pattern

    def links(self, now: int, following: int) -> bool:
        """Whether one span reaches from one moment to another."""
        span = self.around(now)
        return span is not None and following <= span.to_us


def series_of(known: Sequence[Span], samples: Iterable[Sample], limit_us: int) -> Series:
    """One series of what is recorded and what is new.

    A span begins where the pattern changes, after a gap, where a recorded one began and where a file
    begins: so every recorded span has one that takes its place, and a file that comes later can still
    say what was between two others. Files that overlap with other samples than those recorded are
    exact to ``limit_us``.
    """
    record = _Known(known)
    starts = {span.from_us for span in known}
    at = {span.to_us: span.pattern for span in known} | {s.from_us: s.pattern for s in known}
    recorded = set(at)
    news = list(_news(record, samples))
    refused = [s for s in news if at.setdefault(s.at_us, s.pattern) != s.pattern]
    _back_again(record, at, recorded, limit_us)
    for before, now in itertools.pairwise(sorted(at)):
        if before in recorded and now not in recorded:
            starts.add(now)
    spans, gaps = _spans(record, at, starts, limit_us)
    return Series(spans=spans, gaps=gaps, refused=tuple(refused))


def _news(record: _Known, samples: Iterable[Sample]) -> Iterator[Sample]:
    """The samples that say more than what is recorded, by moment.

    One that agrees with a recorded span says more where the one before it contradicted that span: it
    tells when the span goes on.
    """
    contradicted: Span | None = None
    for sample in sorted(samples, key=lambda each: each.at_us):
        span = record.around(sample.at_us)
        agrees = record.says(sample)
        if not agrees or (contradicted is not None and span == contradicted):
            yield sample
        contradicted = span if span is not None and span.pattern != sample.pattern else None


def _back_again(record: _Known, at: dict[int, Pattern], recorded: set[int], limit_us: int) -> None:
    """Where a new sample contradicts the middle of a recorded span, the span goes on after ``limit_us``."""
    moments = sorted(at)
    for moment, following in itertools.pairwise(moments):
        span = None if moment in recorded else record.around(moment)
        after = moment + limit_us
        if span is not None and after < min(span.to_us, following) and at[moment] != span.pattern:
            at[after] = span.pattern


def _spans(
    record: _Known, at: dict[int, Pattern], starts: set[int], limit_us: int
) -> tuple[tuple[Span, ...], tuple[tuple[int, int], ...]]:
    spans: list[Span] = []
    gaps: list[tuple[int, int]] = []
    moments = sorted(at)
    begun = moments[0] if moments else 0
    for now, following in itertools.pairwise(moments):
        linked = following - now <= limit_us or record.links(now, following)
        if linked and at[following] == at[now] and following not in starts:
            continue
        spans.append(Span(from_us=begun, to_us=following if linked else now, pattern=at[begun]))
        if not linked:
            gaps.append((now, following))
        begun = following
    if moments:
        spans.append(Span(from_us=begun, to_us=moments[-1], pattern=at[begun]))
    return tuple(spans), tuple(gaps)
