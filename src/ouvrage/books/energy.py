"""How much energy a site's machines took in a period, by meter where there is one.

Decides what stands in for the time that no meter covers: the power of each device by its state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.books.calendar import Stretch
from ouvrage.books.cells import Cell, Grid, cell_of
from ouvrage.books.record import OwnerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Energy that a device took in a stretch of time; None where nobody can say."""

    cell: Cell
    from_us: int
    to_us: int
    energy_j: Fraction | None
    grade: Grade
    method: str
    keys: tuple[str, ...]


def energy_of(record: OwnerRecord, grid: Grid) -> Iterable[Used]:
    """The energy of every device of a site."""
    for stretch in grid.all():
        yield _estimated(grid, stretch)


def _estimated(grid: Grid, stretch: Stretch) -> Used:
    about = f"device:{stretch.device}"
    idle = grid.terms.at(about, "idle_power_w", stretch.from_us)
    load = grid.terms.at(about, "load_power_w", stretch.from_us)
    watts = None
    if idle and load:
        share = {"working": Fraction(1), "unknown": Fraction(1, 2)}.get(stretch.state, Fraction(0))
        watts = idle.value + (load.value - idle.value) * share
    return Used(
        cell=cell_of(stretch),
        from_us=stretch.from_us,
        to_us=stretch.to_us,
        energy_j=None if watts is None else watts * stretch.us / 1_000_000,
        grade=Grade.ASSUMED,
        method="watts for each state x its time, no meter",
        keys=(*(idle.keys if idle else ()), *(load.keys if load else ()), *stretch.facts),
    )
