"""What the owner decided about repairs and promises: which rungs run by themselves, whose machines are others', what is credited.

Decides the default, which is that nothing is touched: every rung is only said until its owner turns it on. The file is ``health.toml``
(``adapters/health_owner``); what a promise implies is ``availability``'s to work out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.health.availability import Tier

SWITCHES = ("restart_job", "gpu_reset", "reboot", "power_cycle", "diagnostic")
"""Rungs that can be turned on. ``restart_job`` ends what runs on a part that is broken, so that it goes on elsewhere, unbilled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """``turned_on`` are some of ``SWITCHES``; ``observed`` names of machines that others run, ``unwatched`` of those that are no longer watched.

    ``promise`` is the share of time that is promised, None for no promise; ``tiers`` what is credited below which share.
    ``hardware_share`` of faults wait ``days_away`` for a part, for the advice on spares.
    """

    turned_on: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    unwatched: frozenset[str] = frozenset()
    promise: Fraction | None = None
    tiers: tuple[Tier, ...] = ()
    hardware_share: Fraction = Fraction(2, 5)
    days_away: Fraction = Fraction(10)
