"""What a power limit saves a unit of work, from a tuning that was metered under both limits.

Decides only which two settings are compared, and that a difference is said with its 95 % interval or as none that can be told.
Joules and seconds are of ``tuning``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.metering.statistics import Interval, ratio_interval
from ouvrage.pricing.tuning import Setting, Spread, Tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """A unit under ``limit_w`` beside one under ``before_w``: ratios of the medians, this by that, and their intervals.

    ``joules`` is None where the energy of one of them is not known.
    """

    unit: str
    limit_w: Fraction
    before_w: Fraction
    joules: Fraction | None
    joules_between: Interval | None
    seconds: Fraction
    seconds_between: Interval | None
    grade: Grade


def saving_of(tuning: Tuning, limit_w: Fraction, before_w: Fraction) -> Saving | None:
    """The comparison with the limit before or, where that was not tried, with the highest that was; None: neither was."""
    by_limit = {each.limit_w: each for each in tuning.settings}
    this = by_limit.get(limit_w)
    that = by_limit.get(before_w, by_limit[max(by_limit)] if by_limit else None)
    if this is None or that is None or this is that:
        return None
    joules, between = _ratio(this.joules(), that.joules())
    seconds, seconds_between = _ratio(this.seconds(), that.seconds())
    assert seconds is not None
    return Saving(
        unit=tuning.unit,
        limit_w=limit_w,
        before_w=that.limit_w,
        joules=joules,
        joules_between=between,
        seconds=seconds,
        seconds_between=seconds_between,
        grade=max(_grade(this), _grade(that)),
    )


def _grade(setting: Setting) -> Grade:
    drawn = setting.joules()
    return setting.grade if drawn is None else drawn.grade


def _ratio(this: Spread | None, that: Spread | None) -> tuple[Fraction | None, Interval | None]:
    if this is None or that is None or that.median == 0:
        return None, None
    return this.median / that.median, ratio_interval(that.values, this.values)


def saving_words(found: Saving) -> str:
    """One sentence: what a unit takes less or more of."""
    time = f"{_change(found.seconds)} time{_between(found.seconds_between)}"
    energy, end = "", "; of its energy nothing is known"
    if found.joules is not None:
        energy, end = f"{_change(found.joules)} energy{_between(found.joules_between)} and ", ""
    return (
        f"a unit ({found.unit}) took {energy}{time} under {_watts(found.limit_w)}"
        f" than under {_watts(found.before_w)} {found.grade.mark}{end}"
    )


def _watts(value: Fraction) -> str:
    return f"{float(value):g} W"


def _change(ratio: Fraction) -> str:
    percent = (ratio - 1) * 100
    return f"{abs(float(percent)):.1f} % {'less' if percent < 0 else 'more'}"


def _between(interval: Interval | None) -> str:
    """The interval of a change; one that holds no change at all says so."""
    if interval is None:
        return " (too few units to say how surely)"
    if interval.low <= 1 <= interval.high:
        return " (not told apart at 95 %)"
    low, high = sorted(abs(float((each - 1) * 100)) for each in (interval.low, interval.high))
    return f" ({low:.1f} to {high:.1f} % at 95 %)"
