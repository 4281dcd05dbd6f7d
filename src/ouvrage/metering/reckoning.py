"""What metering makes of one run, in one place: units, phases, and where the time went.

Each rule is in its own module; this one only puts them in order, so that every report of a run
rests on the same reckoning.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ouvrage.metering.phases import Phases, phases_of
from ouvrage.metering.run_view import RunView
from ouvrage.metering.timeuse import TimeUse, time_use
from ouvrage.metering.units import Units, units_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """``whole`` is where the time of the whole run went, ``steady`` that of its steady phase.

    ``per_unit_us`` is what figures per unit stand on: each timed unit after warm-up.
    """

    units: Units
    phases: Phases
    whole: TimeUse
    steady: TimeUse
    per_unit_us: tuple[Fraction, ...]


@lru_cache(maxsize=8)
def reckon(view: RunView) -> Reckoning:
    """Reckon one run; asked again for the same view, the same answer without the work."""
    units = units_of(view)
    phases = phases_of(view, units)
    start, end = phases.steady_period
    whole = time_use(view, 0, view.wall_us)
    return Reckoning(
        units=units,
        phases=phases,
        whole=whole,
        per_unit_us=tuple(lap.per_unit_us for lap in phases.steady),
        steady=whole if (start, end) == (0, view.wall_us) else time_use(view, start, end),
    )


def covered_us(view: RunView) -> int:
    """How much of the run its samples cover."""
    return sum(window.covered_us for window in view.windows)


def neighbours_cpu(view: RunView) -> Fraction | None:
    """Share of the machine's CPU time that went to others while the run lasted; None: not told."""
    others = capacity = 0
    for window in view.windows:
        busy, idle = window.host_busy_us, window.host_idle_us
        user, system = window.cpu_user_us, window.cpu_system_us
        if busy is None or idle is None or user is None or system is None:
            continue
        others += busy - user - system
        capacity += busy + idle + (window.host_iowait_us or 0)
    return Fraction(min(max(0, others), capacity), capacity) if capacity > 0 else None
