"""How long a part of a machine worked, for parts that are used up by work and not by time.

Decides that a GPU's part worked while the GPU did or was held by a tenant, and a part of a machine (a
power supply, a fan) while any GPU in it did.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ouvrage.base.time import HOUR
from ouvrage.books.calendar import Stretch
from ouvrage.books.cells import Grid, grid_of
from ouvrage.books.period import Period
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.model.assets import Asset

NO_HOURS = (Fraction(0), Fraction(0))
AT_WORK = ("working", "held")


def hours_worked(record: OwnerRecord, grid: Grid, asset: Known[Asset]) -> tuple[Fraction, Fraction]:
    """Hours of work of a part before the grid's period, since it was bought, and within it."""
    begins, period = max(asset.valid_from, grid.period.from_us), grid.period
    within = _worked(grid, asset.value.about, begins, period.to_us)
    if asset.valid_from >= period.from_us:
        return Fraction(0), within
    earlier = Period(from_us=asset.valid_from, to_us=period.from_us, name="", zone=period.zone)
    whole = grid_of(record, grid.site, earlier)
    return _worked(whole, asset.value.about, earlier.from_us, earlier.to_us), within


def _worked(grid: Grid, about: str, from_us: int, to_us: int) -> Fraction:
    total, at = 0, from_us
    for begins, ends in sorted(_spans(grid, about)):
        begins, ends = max(at, begins), min(ends, to_us)
        if begins < ends:
            total += ends - begins
            at = ends
    return Fraction(total, HOUR)


def _spans(grid: Grid, about: str) -> Iterable[tuple[int, int]]:
    sort, _, name = about.partition(":")
    for stretch in grid.all():
        if stretch.state in AT_WORK and _is_of(stretch, sort, name):
            yield stretch.from_us, stretch.to_us


def _is_of(stretch: Stretch, sort: str, name: str) -> bool:
    return sort == "site" or name == (stretch.device if sort == "device" else stretch.node)
