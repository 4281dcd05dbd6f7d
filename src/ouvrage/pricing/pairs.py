"""Runs compared in pairs: ratios, their interval, and whether one is cheaper.

Decides when one may be called cheaper: only when the 95 % interval of the cost ratio leaves out 1.
A price is exact, so the interval of the cost ratio is that of the time ratio times the price ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.time import HOUR
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.cause import Cause
from ouvrage.metering.reckoning import Reckoning
from ouvrage.metering.run_view import RunView
from ouvrage.metering.statistics import Interval, median, ratio_interval
from ouvrage.model.claims import Claim

TOO_FEW = "too few timed units for 95 % confidence: {first} and {second}, where 4 and 4 would do"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One run in a comparison, with everything said about it. ``name`` is its label or code."""

    name: str
    code: str
    view: RunView
    sheet: Sheet
    reckoning: Reckoning
    cause: Cause

    @property
    def price_per_h(self) -> Fraction | None:
        """What an hour costs, None when no price was given."""
        price = self.view.started.price
        return price.cost_of(HOUR) if price else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A run against the first one. Ratios are second / first; speed-up is first / second in time.

    ``cheaper`` is the run whose unit costs less, None when that is not distinguishable; ``why``
    then says what stands in the way.
    """

    first: Compared
    second: Compared
    price_ratio: Fraction | None
    time_ratio: Fraction | None
    interval: Interval | None
    cheaper: Compared | None
    why: str | None

    @property
    def cost_ratio(self) -> Fraction | None:
        """Cost of a unit, second / first."""
        if self.price_ratio is None or self.time_ratio is None:
            return None
        return self.price_ratio * self.time_ratio

    def cost_edges(self) -> tuple[Fraction, Fraction] | None:
        """The interval of the cost ratio."""
        if self.price_ratio is None or self.interval is None:
            return None
        return self.price_ratio * self.interval.low, self.price_ratio * self.interval.high


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """The runs and what was found; ``sheet`` holds the ratios and a copy of each run's figures."""

    runs: tuple[Compared, ...]
    pairs: tuple[Pair, ...]
    sheet: Sheet
    claim: Claim | None
    claim_sheet: Sheet | None

    @property
    def cheaper(self) -> Compared | None:
        """The run that is cheaper than each other one; None when that is not distinguishable."""
        if len(self.runs) == 2:
            return self.pairs[0].cheaper
        for run in self.runs:
            rest = (other for other in self.runs if other is not run)
            if all(pair_of(run, other).cheaper is run for other in rest):
                return run
        return None


def pair_of(first: Compared, second: Compared) -> Pair:
    """Compare two runs."""
    base, other = first.price_per_h, second.price_per_h
    price_ratio = other / base if base and other is not None else None
    before, after = first.reckoning.per_unit_us, second.reckoning.per_unit_us
    timed = bool(before and after)
    interval = ratio_interval(before, after) if timed else None
    cheaper, why = None, None
    if not timed:
        lacking = ", ".join(run.name for run in (first, second) if not run.reckoning.per_unit_us)
        why = f"no unit could be timed in {lacking}"
    elif price_ratio is None:
        why = "a price is missing" if base is None or other is None else "the first is free"
    elif interval is None:
        sizes = {"first": _size(first, len(before)), "second": _size(second, len(after))}
        why = TOO_FEW.format(**sizes)
    else:
        cheaper, why = _decided(first, second, price_ratio, interval)
    return Pair(
        first=first,
        second=second,
        price_ratio=price_ratio,
        time_ratio=median(after) / median(before) if timed else None,
        interval=interval,
        cheaper=cheaper,
        why=why,
    )


def _decided(
    first: Compared, second: Compared, price_ratio: Fraction, interval: Interval
) -> tuple[Compared | None, str | None]:
    """The cheaper of two: where the interval leaves out 1 and the medians say the same."""
    low, high = price_ratio * interval.low, price_ratio * interval.high
    if low <= 1 <= high:
        return None, "the 95 % interval of the cost ratio includes 1"
    medians = median(second.reckoning.per_unit_us) / median(first.reckoning.per_unit_us)
    cheaper, cost_ratio = (second if high < 1 else first), price_ratio * medians
    if cost_ratio == 1 or (cost_ratio < 1) != (high < 1):
        return None, "the medians and the pairwise ratios point to different runs"
    return cheaper, None


def _size(run: Compared, many: int) -> str:
    return f"{run.name} has {many}"
