"""The phases of a run: start-up, warm-up, steady, and the rest. They add up to its wall time.

Decides the warm-up rule and which laps a figure per unit stands on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ouvrage.metering.run_view import RunView
from ouvrage.metering.units import Lap, Units

SLOW = 1.25
WARMUP_RULE = (
    "with three timed units or more the run's first unit is warm-up, and so are the next while "
    "they take more than 1.25 times the median of all later ones, up to a third of the units"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Ends of the phases in microseconds from the start; None where it is not known.

    Start-up is ``0 .. startup_end``, warm-up up to ``warmup_end``, steady up to ``steady_end``, the
    rest up to the wall time. ``steady`` are the laps that figures per unit stand on.
    """

    startup_end: int | None
    warmup_end: int | None
    steady_end: int | None
    wall_us: int
    steady: tuple[Lap, ...]
    warmup_laps: int

    def lengths(self) -> dict[str, int | None]:
        """Length of each phase; all known ones and the wall time are consistent."""
        ends = (0, self.startup_end, self.warmup_end, self.steady_end, self.wall_us)
        lengths = [None if a is None or b is None else b - a for a, b in pairwise(ends)]
        return dict(zip(("startup", "warmup", "steady", "rest"), lengths, strict=True))

    @property
    def steady_period(self) -> tuple[int, int]:
        """The steady phase, or the whole run where there is none."""
        if self.warmup_end is None or self.steady_end is None:
            return 0, self.wall_us
        return self.warmup_end, self.steady_end


def phases_of(view: RunView, units: Units) -> Phases:
    """The phases of a run whose units were counted."""
    wall = view.wall_us
    skipped = warmup_laps(units)
    laps = units.laps[skipped:]
    begin = _first_work(view, units)
    begin = None if begin is None else max(0, min(begin, wall))
    warm = steady = None
    if laps:
        warm = min(wall, max(laps[0].from_us, begin or 0, 0))
        begin = warm if begin is None else begin
        steady = max(warm, min(wall, max(lap.to_us for lap in laps)))
    return Phases(
        startup_end=begin,
        warmup_end=warm,
        steady_end=steady,
        wall_us=wall,
        steady=laps,
        warmup_laps=skipped,
    )


def warmup_laps(units: Units) -> int:
    """How many leading laps are warm-up. A first unit without a lap is outside already."""
    values = [(lap.to_us - lap.from_us) / lap.count for lap in units.laps]
    most = len(values) // 3
    skipped = 1 if units.first_timed and most else 0
    later = sorted(values[skipped:])
    while skipped < most:
        value = values[skipped]
        del later[bisect_left(later, value)]
        if value <= SLOW * _middle(later):
            break
        skipped += 1
    return skipped


def _middle(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _first_work(view: RunView, units: Units) -> int | None:
    """Where the first unit began: its head, else the program's first span, else its first lap."""
    if units.is_command:
        return 0
    known: list[int] = [] if units.first_us is None else [units.first_us]
    laps: Sequence[Lap] = units.laps
    if laps:
        known.append(laps[0].from_us)
    if units.first_us is None and view.spans:
        known.append(min(spans.from_us for spans in view.spans))
    return min(known) if known else None
