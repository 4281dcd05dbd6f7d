"""What a rule has to price: pieces of time or of a quantity, cut where a bill is cut.

Decides where billed sessions are cut (billing days, months of tiers, months of the calendar), and in
which unit a piece is counted. A piece has one level and one multiplier, so that its price is a
product and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.price import PER_US
from ouvrage.base.time import SECOND
from ouvrage.pricing.rates.clock import cuts, month_us, period_start
from ouvrage.pricing.rates.plan import Rule
from ouvrage.pricing.rates.quantity import MONTH, Rate, seconds_text
from ouvrage.pricing.rates.sessions import Segment
from ouvrage.pricing.rates.steps import Billed


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """``level`` held from ``start`` to ``end``, or moved at ``start`` where the price is not per time."""

    resource: str
    start: int
    end: int
    level: Fraction
    weight: Fraction
    because: str

    def quantity(self, rule: Rule, rate: Rate) -> Fraction:
        """How much of what the rate is for."""
        if rate.per is None:
            return self.level
        return self.level * Fraction(self.end - self.start, per_us(rule, rate, self.start))


def per_us(rule: Rule, rate: Rate, at: int) -> int:
    """How long the time of a rate is at a moment."""
    assert rate.per is not None
    return month_us(rule.calendar, at) if rate.per == MONTH else PER_US[rate.per]


def exact_quantity(quantity: Fraction, rule: Rule, rate: Rate, at: int) -> Fraction:
    """A quantity in a unit in which it is always exact: level × seconds, and no share of a month."""
    return quantity if rate.per is None else quantity * per_us(rule, rate, at) / SECOND


def exact_unit(rate: Rate) -> str:
    """The name of that unit: ``s``, ``GB-s``, ``GB``."""
    if rate.per is None:
        return rate.unit or "piece"
    return f"{rate.unit}-s" if rate.unit else "s"


def pieces_of(found: Sequence[Billed], rule: Rule) -> list[Piece]:
    """The pieces of billed sessions."""
    return [
        Piece(
            resource=each.session.resource,
            start=start,
            end=end,
            level=segment.level,
            weight=segment.weight,
            because=_because(each, end - start),
        )
        for each in found
        for segment in each.session.segments
        for start, end in _cut(segment, rule)
    ]


def _because(each: Billed, us: int) -> str:
    """How a session came to be billed so, and how much of that a piece is."""
    whole = us == each.session.us
    return each.because if whole else f"{each.because}; {seconds_text(us)} s of them"


def _cut(segment: Segment, rule: Rule) -> Iterator[tuple[int, int]]:
    bounds = {segment.start, segment.end}
    for unit in _units(rule):
        bounds.update(cuts(rule.calendar, unit, segment.start, segment.end))
    ordered = sorted(bounds)
    if len(ordered) == 1:
        yield segment.start, segment.end
    yield from pairwise(ordered)


def _units(rule: Rule) -> set[str]:
    """The units of the calendar at which pieces are cut."""
    units = {rule.calendar.split} if rule.calendar.split else set[str]()
    if grouped(rule) and rule.grouping.period != "always":
        units.add(rule.grouping.period)
    form = rule.form
    if form and form.per == MONTH and rule.calendar.month_us == 0:
        units.add(MONTH)
    return units


def grouped(rule: Rule) -> bool:
    """Whether quantities are added up before they are priced."""
    return bool(rule.tiers or rule.grouping.free) and rule.grouping.tier_by == "total"


def period_of(rule: Rule, at: int) -> int:
    """What identifies the period of a group: where it begins."""
    period = rule.grouping.period
    return 0 if period == "always" else period_start(rule.calendar, period, at)
