"""Which nodes and GPUs fail more often than their fleet: the lemon score.

Decides by rates with their intervals, not by counts: what works twice as much may fail twice as often. Past faults fade with a
half-life, and so does the time in which they could have happened. A GPU is known by its serial, so that its record follows it
from node to node. Whoever is judged is left out of the fleet it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ouvrage.health.chance import rate_bounds
from ouvrage.health.tables import Thresholds

DAY_US = 86_400_000_000

WEIGHTS: Mapping[str, float] = {
    "fence": 1.0,
    "single_node_failure": 1.0,
    "multi_node_failure": 0.5,
    "xid": 0.25,
    "exclusion": 0.5,
    "ticket": 0.5,
    "scrub": 0.25,
    "qualification": 0.5,
    "down_day": 0.25,
}
"""What counts how much. The signals are Meta's (arXiv 2410.21680: exclusions by jobs, Xids, tickets, times taken out,
failures of jobs); the weights are our own: a failure of a job of many nodes is one node's among them. Ours beside them: a GPU that could
not be cleaned, a qualification that found something broken, and each whole day that a repair took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing that speaks against a node or a GPU (``serial``), of a sort in ``WEIGHTS``."""

    serial: str
    at_us: int
    sort: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Time in which a node or a GPU was at work, half-open: only then could it fail."""

    serial: str
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Weighted faults per 1000 days of work, with their interval, and the rate of all the others.

    ``factor`` is how many times the others' rate this one is at the lower end of its interval; None where the others have none.
    """

    serial: str
    marks: float
    days: float
    rate: float
    low: float
    high: float
    fleet: float
    factor: float | None
    lemon: bool


def scores(
    marks: Iterable[Mark], service: Iterable[Service], now_us: int, bounds: Thresholds
) -> list[Score]:
    """Everything that worked, the worst first."""
    half_life = bounds.us("lemon.half_life")
    found: dict[str, float] = {}
    days: dict[str, float] = {}
    for span in service:
        days[span.serial] = days.get(span.serial, 0.0) + _days(span, now_us, half_life)
    for mark in marks:
        if mark.serial in days and mark.at_us <= now_us:
            faded = 0.5 ** ((now_us - mark.at_us) / half_life)
            found[mark.serial] = found.get(mark.serial, 0.0) + WEIGHTS[mark.sort] * faded
    all_marks, all_days = sum(found.values()), sum(days.values())
    made = [
        _score(serial, found.get(serial, 0.0), spent, all_marks, all_days, bounds)
        for serial, spent in days.items()
        if spent > 0
    ]
    return sorted(made, key=lambda s: (-s.low, -s.rate, s.serial))


def _days(span: Service, now_us: int, half_life: int) -> float:
    """The days of a span, faded as faults in it fade: the integral of the half-life."""
    end, begin = min(span.to_us, now_us), span.from_us
    if end <= begin:
        return 0.0
    per_life = half_life / 0.6931471805599453
    until, since = 0.5 ** ((now_us - end) / half_life), 0.5 ** ((now_us - begin) / half_life)
    return per_life * (until - since) / DAY_US


def _score(
    serial: str, count: float, days: float, all_marks: float, all_days: float, bounds: Thresholds
) -> Score:
    low, high = rate_bounds(count, days / 1000, float(bounds["lemon.confidence"]) / 100)
    others = all_days - days
    fleet = 1000 * (all_marks - count) / others if others > 0 else 0.0
    factor = low / fleet if fleet > 0 else None
    # Without any fault among the others, what stands above none is a lemon only if its own count is sure.
    lemon = factor >= bounds["lemon.factor"] if factor is not None else others > 0 and count >= 3
    return Score(
        serial=serial,
        marks=count,
        days=days,
        rate=1000 * count / days,
        low=low,
        high=high,
        fleet=fleet,
        factor=factor,
        lemon=bool(lemon),
    )
