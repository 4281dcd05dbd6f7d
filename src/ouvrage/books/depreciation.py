"""What a part loses in value over a period, exactly over any cut of time.

Straight line for now: months by the calendar of the site's zone, time within a month evenly.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.books.period import Period, months_later
from ouvrage.books.record import Known
from ouvrage.model.assets import Asset, AssetRetired


def depreciation(
    asset: Known[Asset],
    retired: Known[AssetRetired] | None,
    period: Period,
    hours_worked: Fraction,
    zone: str,
) -> Fraction:
    """What the part loses in the period, in its own currency."""
    value = asset.value
    months = value.life_months or 60
    whole = Fraction(value.price) - Fraction(value.residual)
    ends = retired.valid_from if retired else None
    begins, total = asset.valid_from, Fraction(0)
    for month in range(months):
        following = months_later(asset.valid_from, month + 1, zone)
        last = following if ends is None else min(following, ends)
        if begins < last:
            total += Fraction(period.overlap(begins, last), following - begins)
        begins = following
        if begins >= period.to_us:
            break
    return whole / months * total
