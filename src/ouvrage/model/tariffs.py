"""What a kilowatt-hour costs at a site, by the clock of its zone, as a supplier's sheet states it.

The form only; which price holds at a moment, over a clock change as well, is decided by the books. A
price that was never stated for an hour is a hole, and refused when the sheet is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffBand:
    """One price by the clock: ``months`` (1–12), ``weekdays`` (0 Monday – 6), ``hours`` (0–23).

    ``per_kwh`` is decimal text. ``export_per_kwh`` is what own surplus would earn, the opportunity
    cost of own solar power.
    """

    name: str
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    hours: tuple[int, ...]
    per_kwh: str
    export_per_kwh: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffTier:
    """Within a calendar month, energy up to ``up_to_kwh`` (None: the rest) costs ``add_per_kwh`` more."""

    up_to_kwh: str | None
    add_per_kwh: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The sheet ``name`` of a supplier, for ``site``, valid for the fact's period.

    ``standing_per_day``, ``standing_per_month`` and ``demand_per_kw_month`` (on the highest
    quarter-hour of a month) are decimal texts or None. The bands of any hour of the year are exactly
    one.
    """

    KIND: ClassVar[str] = "owner.tariff"
    VERSION: ClassVar[int] = 1

    name: str
    site: str
    currency: str
    zone: str
    bands: tuple[TariffBand, ...]
    tiers: tuple[TariffTier, ...]
    standing_per_day: str | None
    standing_per_month: str | None
    demand_per_kw_month: str | None
    tax_included: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrices:
    """Market prices of a day at a site: one decimal text for each step of ``step_us``.

    The fact's period is the day in its zone, so a day of a clock change has 23 or 25 hours of steps.
    """

    KIND: ClassVar[str] = "owner.spot"
    VERSION: ClassVar[int] = 1

    site: str
    currency: str
    step_us: int
    per_kwh: tuple[str, ...]
