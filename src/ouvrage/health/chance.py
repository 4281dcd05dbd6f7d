"""Chances of rare events: the Poisson distribution, and the interval of a rate from a count.

Decides nothing; these are the textbook forms. Intervals are exact (Garwood, Biometrika 1936), by the gamma distribution,
whose share is computed by its series or its continued fraction and inverted by halving. Floats, because a chance is
no amount of money.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_STEPS = 200
_ENOUGH = 1e-12


def poisson_at_most(count: int, mean: float) -> float:
    """The chance of ``count`` events or fewer where ``mean`` are expected."""
    return 1.0 - gamma_share(count + 1.0, mean) if mean > 0 else 1.0


def poisson_quantile(share: float, mean: float) -> int:
    """The least count that is not exceeded with at least this chance."""
    count = 0
    while poisson_at_most(count, mean) < share:
        count += 1
    return count


def rate_bounds(count: float, exposure: float, confidence: float) -> tuple[float, float]:
    """The interval of a rate from ``count`` events in ``exposure``; counts may be parts of events."""
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if count <= 0 else gamma_quantile(count, tail)
    return low / exposure, gamma_quantile(count + 1.0, 1.0 - tail) / exposure


def gamma_share(shape: float, at: float) -> float:
    """The regularised lower incomplete gamma function P(shape, at)."""
    if at <= 0:
        return 0.0
    front = math.exp(shape * math.log(at) - at - math.lgamma(shape))
    return _series(shape, at) * front if at < shape + 1.0 else 1.0 - _fraction(shape, at) * front


def _series(shape: float, at: float) -> float:
    term = total = 1.0 / shape
    divisor = shape
    while abs(term) > abs(total) * _ENOUGH:
        divisor += 1.0
        term *= at / divisor
        total += term
    return total


def _fraction(shape: float, at: float) -> float:
    """The continued fraction of the upper part, from the front (Lentz)."""
    tiny = 1e-300
    b = at + 1.0 - shape
    c, d = 1.0 / tiny, 1.0 / (b or tiny)
    value = d
    for step in range(1, _STEPS * 10):
        a = -step * (step - shape)
        b += 2.0
        d = 1.0 / ((a * d + b) or tiny)
        c = b + a / c or tiny
        value *= d * c
        if abs(d * c - 1.0) < _ENOUGH:
            break
    return value


def gamma_quantile(shape: float, share: float) -> float:
    """Where ``gamma_share`` reaches a share, by halving."""
    high = shape + 1.0
    while gamma_share(shape, high) < share:
        high *= 2.0
    return _halved(lambda at: gamma_share(shape, at) < share, high)


def _halved(below: Callable[[float], bool], high: float) -> float:
    low = 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if below(middle) else (low, middle)
        if high - low <= _ENOUGH * high:
            break
    return (low + high) / 2.0
