"""Energy by device and cell as the walk over a site adds it up, and all of it together.

Decides what an amount of energy is worth once it is added up: a meter's joules at their own grade, power by
state as an assumption. How it is given to devices is decided by ``energy``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import SECOND
from ouvrage.books.cells import Cell
from ouvrage.books.known import Known
from ouvrage.books.tariffs import KWH, PriceBook
from ouvrage.books.wall import Part
from ouvrage.evidence.fact_keys import FactKeys

ATTO = 10**18
FINE = 64
"""Bits of the unit in which shares are added up: a month of readings is off by less than 10^-14 joules."""
BY_STATE = "watts for each state x its time, no meter"


@dataclass(slots=True)
class Used:
    """Energy of a device in one cell under the same terms and source of price, metered or not.

    ``us`` is its time and ``priced`` price times that time (in the price book's fraction) where no
    meter reads; ``joules`` and ``cost`` (in 10^-18 of the currency) where one does, ``fine_j`` and
    ``fine_cost`` the same in ``2 ** -FINE`` until all is given. ``from_us`` is its first moment;
    ``cooled``: a meter reads the cooling.
    """

    cell: Cell
    from_us: int
    idle: Known[Fraction] | None
    load: Known[Fraction] | None
    share: Fraction
    cooled: bool
    read: Grade | None = None
    method: str = BY_STATE
    us: int = 0
    priced: int = 0
    joules: int = 0
    cost: int = 0
    fine_j: int = 0
    fine_cost: int = 0
    facts: FactKeys = field(default_factory=FactKeys)

    @property
    def watts(self) -> Fraction | None:
        """Its power by its state; None where nobody can say."""
        if self.idle is None or self.load is None:
            return None
        return self.idle.value + (self.load.value - self.idle.value) * self.share

    @property
    def energy_j(self) -> Fraction | None:
        """What a meter read, else watts by time."""
        if self.read is not None:
            return Fraction(self.joules)
        watts = self.watts
        return None if watts is None else watts * self.us / SECOND

    def money(self, book: PriceBook) -> Fraction | None:
        """What it cost; None where its energy is not known."""
        if self.read is not None:
            return Fraction(self.cost, ATTO)
        watts = self.watts
        if watts is None:
            return None
        return watts * self.priced / (book.denominator * SECOND * KWH)

    @property
    def grade(self) -> Grade:
        """A meter's own; power that is stated once for every hour is an assumption about each."""
        return Grade.ASSUMED if self.read is None else self.read

    @property
    def keys(self) -> FactKeys:
        """The facts that it stands on."""
        if self.read is not None:
            return self.facts
        terms = [key for each in (self.idle, self.load) if each is not None for key in each.keys]
        return FactKeys(terms, self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Joules that a meter read and no device stands for: a machine without a GPU, or beside all."""

    about: str
    part: Part
    joules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAccount:
    """All energy of a site's machines: ``used`` by devices, ``lost`` beside them, ``cooling`` metered.

    ``read_j`` is what meters read of the machines by object; it equals what was given to devices and
    lost, to the joule. ``metered_us`` is the device time that they cover, of ``us``. ``load`` are
    stretches of time with the joules used in each, cooling included, where they were asked for.
    """

    used: Sequence[Used]
    lost: Sequence[Lost]
    cooling: Sequence[tuple[str, Part]]
    read_j: Mapping[str, int]
    metered_us: int
    us: int
    notes: tuple[str, ...]
    load: Sequence[tuple[int, int, Fraction]]

    @property
    def metered_j(self) -> int:
        """What devices were given of what meters read."""
        return sum(each.joules for each in self.used if each.read is not None)

    @property
    def estimated_j(self) -> Fraction:
        """What no meter read, by states, as far as anybody can say."""
        return sum(
            (each.energy_j or Fraction(0) for each in self.used if each.read is None), Fraction(0)
        )
