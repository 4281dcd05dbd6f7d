"""How much energy a site's machines took in a period, by meter where there is one.

Decides what stands in for the time that no meter covers: the power of each device by its state. Time of
one device in one state under the same terms is added up first, so that a month of a thousand GPUs is a
few thousand sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import SECOND
from ouvrage.books.calendar import Stretch
from ouvrage.books.cells import Cell, Grid, cell_of
from ouvrage.books.record import Known

TERMS = ("idle_power_w", "load_power_w")
UNSEEN = ("held", "unknown")
"""States in which nobody saw the load: power is taken half way between idle and full."""
_AT_WORK = {"working": Fraction(1), **dict.fromkeys(UNSEEN, Fraction(1, 2))}
"""The share of the way from idle to full power in a state; of the others it is nothing."""


@dataclass(slots=True)
class Used:
    """Time of a device in one state under the same terms, and its energy; None where nobody can say.

    ``from_us`` is its first moment.
    """

    cell: Cell
    from_us: int
    idle: Known[Fraction] | None
    load: Known[Fraction] | None
    share: Fraction
    us: int = 0
    facts: dict[str, None] = field(default_factory=dict)

    @property
    def energy_j(self) -> Fraction | None:
        """Watts by time."""
        if self.idle is None or self.load is None:
            return None
        watts = self.idle.value + (self.load.value - self.idle.value) * self.share
        return watts * self.us / SECOND

    @property
    def grade(self) -> Grade:
        """Power that is stated once for every hour is an assumption about each of them."""
        return Grade.ASSUMED

    @property
    def method(self) -> str:
        """How the energy was found, in words."""
        return "watts for each state x its time, no meter"

    @property
    def keys(self) -> tuple[str, ...]:
        """The facts that it stands on."""
        terms = [key for each in (self.idle, self.load) if each is not None for key in each.keys]
        return (*terms, *self.facts)


def energy_of(grid: Grid, prices: Iterable[int]) -> Iterable[Used]:
    """The energy of every device of a site, cut where a price begins to hold."""
    found: dict[tuple[object, ...], Used] = {}
    edges = sorted(set(prices))
    for stretch in grid.all():
        about, cell = f"device:{stretch.device}", cell_of(stretch)
        share = _AT_WORK.get(stretch.state, Fraction(0))
        for begins, ends, cut in _pieces(grid, stretch, edges):
            idle, load = (grid.terms.at(about, name, begins) for name in TERMS)
            key = (cell, share, cut, id(idle), id(load))
            used = found.get(key)
            if used is None:
                used = found[key] = Used(
                    cell=cell, from_us=begins, idle=idle, load=load, share=share
                )
            used.us += ends - begins
            for fact in stretch.facts:
                used.facts[fact] = None
    return found.values()


def _pieces(grid: Grid, stretch: Stretch, edges: list[int]) -> Iterator[tuple[int, int, int]]:
    """A stretch cut at every edge of a price or of a term of its device, numbered by price."""
    begins = stretch.from_us
    cuts = [
        at
        for at in (*edges, *grid.terms.edges(f"device:{stretch.device}", TERMS))
        if begins < at < stretch.to_us
    ]
    for at in (*sorted(set(cuts)), stretch.to_us):
        yield begins, at, sum(edge <= begins for edge in edges)
        begins = at
