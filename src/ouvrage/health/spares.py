"""How many spares to keep: as many as suffice with a wanted chance for the faults that wait for parts.

Decides by the owner's own rate of faults, the share of them that need hardware, and the days until a replacement
comes; faults are taken as independent (Poisson). Without a record it is a share of the fleet, and said to be so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ouvrage.health.chance import poisson_at_most, poisson_quantile
from ouvrage.health.tables import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """``count`` parts; ``waiting`` are away at a time on average, ``enough`` is the chance that they suffice.

    ``assumed``: there was no record to compute from, and ``enough`` is None.
    """

    count: int
    waiting: float
    enough: float | None
    assumed: bool


def spares(
    parts: int,
    per_1000_days: float | None,
    hardware_share: float,
    days_away: float,
    bounds: Thresholds,
) -> Spares:
    """The stock for ``parts`` in use, each with so many faults in 1000 days, of which a share waits for a part."""
    if per_1000_days is None:
        count = max(1, math.ceil(parts * bounds["spares.share"] / 100))
        return Spares(count=count, waiting=0.0, enough=None, assumed=True)
    waiting = parts * per_1000_days / 1000 * hardware_share * days_away
    count = poisson_quantile(float(bounds["spares.percentile"]) / 100, waiting)
    return Spares(
        count=count, waiting=waiting, enough=poisson_at_most(count, waiting), assumed=False
    )
