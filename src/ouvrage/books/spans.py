"""Stretches of time as sets: put together, and measured inside one another.

Decides nothing; it is the arithmetic of half-open stretches that several parts of the books need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same time as stretches in order, none of which meet."""
    found: list[Span] = []
    for begins, ends in sorted(spans):
        if found and begins <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ends))
        elif begins < ends:
            found.append((begins, ends))
    return found


def within(spans: Sequence[Span], inside: Sequence[Span]) -> int:
    """How much of some merged stretches lies inside other merged stretches."""
    total = at = 0
    for begins, ends in inside:
        while at < len(spans) and spans[at][1] <= begins:
            at += 1
        for first, last in spans[at:]:
            if first >= ends:
                break
            total += min(last, ends) - max(first, begins)
    return total
