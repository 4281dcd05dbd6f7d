"""Lengths of time counted in buckets, so that quantiles of any number of them stand in little space.

Decides the buckets: eight to a doubling, so that each is known to an eighth of itself, and bounds are whole
microseconds. A quantile is the upper bound of the bucket that holds it: never better than it was. Counts of
several spells add up, which a mean or a quantile does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

_STEPS = 8
_BITS = 3

P50, P95 = Fraction(50, 100), Fraction(95, 100)


def bucket_of(us: int) -> int:
    """The number of the bucket that holds a length of microseconds."""
    if us < _STEPS:
        return max(0, us)
    exponent = us.bit_length() - 1
    return _STEPS * (exponent - _BITS + 1) + ((us >> (exponent - _BITS)) - _STEPS)


def upper_us(bucket: int) -> int:
    """The longest length that a bucket holds, in microseconds."""
    if bucket < _STEPS:
        return bucket
    doublings, step = divmod(bucket - _STEPS, _STEPS)
    return ((_STEPS + step + 1) << doublings) - 1


def quantile_us(counts: Mapping[int, int], share: Fraction) -> int | None:
    """The upper bound of what ``share`` of the lengths do not exceed; None where there are none."""
    total = sum(counts.values())
    if not total:
        return None
    rank = max(1, -(-total * share.numerator // share.denominator))
    reached = 0
    for bucket in sorted(counts):
        reached += counts[bucket]
        if reached >= rank:
            return upper_us(bucket)
    raise AssertionError("a rank lies within its total")
