"""Medians and their intervals, with no assumption about how the values are spread.

Order statistics give an interval for a median whatever the distribution (the number of values below
it is binomial); pairwise ratios give one for how two samples compare (Hodges and Lehmann's shift on
a scale of ratios, with the null distribution of Mann and Whitney). Everything is exact and gives
the same answer for the same values: no resampling, nothing drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, isqrt

CONFIDENCE = Fraction(95, 100)
_EXACT_BINOMIAL = 1000
_EXACT_RANKS = 25
_MOST_VALUES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """``low`` to ``high`` holds the true value with at least this confidence."""

    low: Fraction
    high: Fraction
    confidence: Fraction
    method: str


def _ordered(values: Sequence[Fraction]) -> list[Fraction]:
    """Sorted by their nearest floats: values so near to each other may stand in either order."""
    return sorted(values, key=float)


def median(values: Sequence[Fraction]) -> Fraction:
    """The middle value, or the mean of the two middle ones; ``ValueError`` for no values."""
    if not values:
        raise ValueError("no values have no median")
    ordered = _ordered(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def median_interval(values: Sequence[Fraction]) -> Interval | None:
    """The narrowest symmetric pair of order statistics that holds the median 95 times in 100.

    With fewer than 6 values no pair does: then it is the range, with the confidence it really has.
    None for fewer than 2 values.
    """
    n = len(values)
    if n < 2:
        return None
    ordered = _ordered(values)
    rank = _median_rank(n)
    if n > _EXACT_BINOMIAL:
        confidence = CONFIDENCE
    else:
        outside = sum(comb(n, i) for i in range(rank))
        confidence = 1 - Fraction(2 * outside, 2**n)
    words = "range" if rank == 1 else f"order statistics {rank} and {n + 1 - rank}"
    return Interval(
        low=ordered[rank - 1],
        high=ordered[n - rank],
        confidence=confidence,
        method=f"{words} of {n}, distribution-free",
    )


def _median_rank(n: int) -> int:
    """Greatest rank k (from 1) such that the median lies outside k .. n+1-k at most 5 in 100."""
    if n > _EXACT_BINOMIAL:
        # Normal approximation, (n - 1.96 sqrt n) / 2, rounded outwards.
        return max(1, (n - isqrt(38416 * n // 10_000) - 1) // 2)
    allowed = (1 - CONFIDENCE) * 2**n / 2
    below, rank = 1, 0
    while below <= allowed:
        rank += 1
        below += comb(n, rank)
    return max(1, rank)


def thinned(values: Sequence[Fraction]) -> Sequence[Fraction]:
    """At most 200 values, evenly spaced in the order they came, so that pairs stay few."""
    if len(values) <= _MOST_VALUES:
        return values
    return [values[i * len(values) // _MOST_VALUES] for i in range(_MOST_VALUES)]


def ratio_interval(first: Sequence[Fraction], second: Sequence[Fraction]) -> Interval | None:
    """By what factor values of ``second`` exceed those of ``first``, with 95 % confidence.

    None when there are too few values for that confidence, or one that is not positive.
    """
    few, many = thinned(first), thinned(second)
    if not few or not many or min(few) <= 0 or min(many) <= 0:
        return None
    rank = _shift_rank(len(few), len(many))
    if rank == 0:
        return None
    # Floats only put the pairs in order; the two ratios that are used are computed exactly.
    pairs = [(float(b) / float(a), i, j) for i, a in enumerate(few) for j, b in enumerate(many)]
    pairs.sort()
    _, i, j = pairs[rank - 1]
    _, k, m = pairs[len(pairs) - rank]
    shown = f"{len(few)} and {len(many)}"
    cut = " (thinned)" if len(few) < len(first) or len(many) < len(second) else ""
    return Interval(
        low=many[j] / few[i],
        high=many[m] / few[k],
        confidence=CONFIDENCE,
        method=f"pairwise ratios of {shown} values{cut}, Hodges-Lehmann with Mann-Whitney ranks",
    )


def _shift_rank(m: int, n: int) -> int:
    """Greatest k such that P(U < k) is at most 2.5 in 100 under the null; 0 when there is none."""
    if m <= _EXACT_RANKS and n <= _EXACT_RANKS:
        counts = _mann_whitney(m, n)
        allowed = (1 - CONFIDENCE) / 2 * comb(m + n, n)
        below, rank = 0, 0
        while rank < len(counts) and below + counts[rank] <= allowed:
            below += counts[rank]
            rank += 1
        return rank
    # Normal approximation with 1.96 standard deviations; U's variance is mn(m+n+1)/12.
    spread = isqrt(38416 * m * n * (m + n + 1) // (12 * 10_000)) + 1
    return max(0, m * n // 2 - spread)


@lru_cache(maxsize=64)
def _mann_whitney(m: int, n: int) -> tuple[int, ...]:
    """How many of the orders of m and n values give each U: the Gaussian binomial coefficients."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):
            counts[u] += counts[u - i]
    return tuple(counts)
