"""What a part loses in value over a period, exactly over any cut of time.

Decides how each method spreads a loss: straight line evenly within each month of its life by the calendar
of the site's zone; declining by a share of what is left at each anniversary, evenly within the year, never
below the residual value, and what is left at the end of a stated life is lost in its last year; by hours
as it works, until its hours are used up. A part that leaves use loses, at that moment, what it was still
worth less what it was sold for. The whole of a life is therefore price less residual value, or price less
proceeds.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.base.numbers import number
from ouvrage.books.period import Period, months_later
from ouvrage.books.record import FOR_EVER, Known
from ouvrage.model.assets import Asset, AssetRetired

_USUAL_MONTHS = 60
_LONGEST_YEARS = 100
"""A declining value without a residual one never ends; after this it is not worth following."""


def depreciation(
    asset: Known[Asset],
    retired: Known[AssetRetired] | None,
    period: Period,
    worked: tuple[Fraction, Fraction],
    zone: str,
) -> Fraction:
    """What the part loses in the period, in its own currency; less than nothing for a gain on sale.

    ``worked`` are its hours of work before the period and in it (for the method ``hours`` alone).
    """
    begins = max(period.from_us, asset.valid_from)
    gone = FOR_EVER if retired is None else retired.valid_from
    ends = min(period.to_us, gone)
    lost = Fraction(0)
    if begins < ends:
        before, within = worked
        lost = _lost(asset, ends, before + within, zone) - _lost(asset, begins, before, zone)
    if retired is not None and period.from_us <= gone < period.to_us:
        lost += book_value(asset, gone, sum(worked), zone) - number(retired.value.proceeds)
    return lost


def book_value(asset: Known[Asset], at_us: int, worked: Fraction | int, zone: str) -> Fraction:
    """What a part is worth in the books at a moment, after so many hours of work."""
    return number(asset.value.price) - _lost(asset, at_us, Fraction(worked), zone)


def _lost(asset: Known[Asset], at_us: int, worked: Fraction, zone: str) -> Fraction:
    """What was lost from the purchase until a moment."""
    value = asset.value
    whole = number(value.price) - number(value.residual)
    if at_us <= asset.valid_from:
        return Fraction(0)
    if value.method == "hours" and value.life_hours:
        return whole * min(Fraction(1), worked / value.life_hours)
    if value.method == "declining" and value.declining_share is not None:
        return _declining(asset, at_us, whole, zone)
    return whole * _months(asset.valid_from, at_us, value.life_months or _USUAL_MONTHS, zone)


def _months(begins: int, at_us: int, months: int, zone: str) -> Fraction:
    """The share of a life of so many months that has passed."""
    first = 0 if at_us <= begins else _whole_months(begins, at_us, months, zone)
    if first >= months:
        return Fraction(1)
    start, end = (months_later(begins, first + step, zone) for step in (0, 1))
    start = begins if first == 0 else start
    return (first + Fraction(max(0, at_us - start), end - start)) / months


def _whole_months(begins: int, at_us: int, most: int, zone: str) -> int:
    """How many months have passed in full, at most so many."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if months_later(begins, middle, zone) <= at_us else (low, middle)
    return low


def _declining(asset: Known[Asset], at_us: int, whole: Fraction, zone: str) -> Fraction:
    value, begins = asset.value, asset.valid_from
    share, price = number(value.declining_share or "0"), number(value.price)
    life_ends = None if value.life_months is None else months_later(begins, value.life_months, zone)
    lost, start = Fraction(0), begins
    for year in range(1, _LONGEST_YEARS + 1):
        end = months_later(begins, 12 * year, zone)
        loss = min((price - lost) * share, whole - lost)
        if life_ends is not None and life_ends <= end:
            end, loss = life_ends, whole - lost
        if at_us < end:
            return lost + loss * Fraction(at_us - start, end - start)
        lost, start = lost + loss, end
        if end == life_ends or lost == whole:
            break
    return lost
