"""The clock of a rule: billing days, months and increments in a zone, in microseconds UTC.

Decides where a billing day begins (17:00 in New York, say), so that a day has 23 or 25 hours where
the zone's own has. Zones come from the IANA database of the machine and are never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ouvrage.base.time import HOUR
from ouvrage.pricing.rates.plan import Calendar, Steps

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    return timezone.utc if name == "UTC" else ZoneInfo(name)


def zone_exists(name: str) -> bool:
    """Whether this machine knows the zone."""
    try:
        _zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _wall(calendar: Calendar, at: int) -> datetime:
    """What a clock on the wall of the zone shows."""
    moment = _EPOCH + timedelta(microseconds=at)
    return moment.astimezone(_zone(calendar.zone)).replace(tzinfo=None)


def _at(calendar: Calendar, wall: datetime) -> int:
    """The (first) moment at which the clock on the wall shows this."""
    return (wall.replace(tzinfo=_zone(calendar.zone)) - _EPOCH) // _MICROSECOND


def _day_at(calendar: Calendar, day: date) -> int:
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall clock has no zone of its own
    return _at(calendar, midnight + timedelta(microseconds=calendar.day_starts_us))


def _date_of(calendar: Calendar, at: int) -> date:
    """The billing day to which a moment belongs."""
    day = (_wall(calendar, at) - timedelta(microseconds=calendar.day_starts_us)).date()
    following = day + timedelta(days=1)
    return following if _day_at(calendar, following) <= at else day


def period_start(calendar: Calendar, unit: str, at: int) -> int:
    """Where the billing ``day`` or ``month`` of a moment begins."""
    day = _date_of(calendar, at)
    return _day_at(calendar, day if unit == "day" else day.replace(day=1))


def period_end(calendar: Calendar, unit: str, at: int) -> int:
    """Where the billing ``day`` or ``month`` of a moment ends."""
    day = _date_of(calendar, at)
    if unit == "day":
        return _day_at(calendar, day + timedelta(days=1))
    return _day_at(calendar, _months_later(day.replace(day=1), 1))


def _months_later(day: date, months: int) -> date:
    """The same day some months later, or the last one of a shorter month."""
    index = day.year * 12 + day.month - 1 + months
    first = date(index // 12, index % 12 + 1, 1)
    following = date((index + 1) // 12, (index + 1) % 12 + 1, 1)
    return min(first + timedelta(days=day.day - 1), following - timedelta(days=1))


def months_later(calendar: Calendar, at: int, months: int) -> int:
    """The same time on the wall some months later."""
    wall = _wall(calendar, at)
    return _at(calendar, datetime.combine(_months_later(wall.date(), months), wall.time()))


def month_us(calendar: Calendar, at: int) -> int:
    """How long a month is for a price per month: as stated, or the calendar's own."""
    if calendar.month_us:
        return calendar.month_us
    return period_end(calendar, "month", at) - period_start(calendar, "month", at)


def cuts(calendar: Calendar, unit: str, start: int, end: int) -> Iterator[int]:
    """The bounds of days or months that lie inside a period."""
    bound = period_end(calendar, unit, start)
    while bound < end:
        yield bound
        bound = period_end(calendar, unit, bound)


def floor(steps: Steps, calendar: Calendar, at: int) -> int:
    """The last boundary of the clock at or before a moment."""
    if steps.calendar:
        return period_start(calendar, steps.calendar, at)
    wall = _wall(calendar, at)
    if steps.increment_us <= HOUR:
        offset = (wall.replace(tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND - at
        return (at + offset) // steps.increment_us * steps.increment_us - offset
    midnight = datetime.combine(wall.date(), datetime.min.time())
    passed = (wall - midnight) // _MICROSECOND // steps.increment_us * steps.increment_us
    return _at(calendar, midnight + timedelta(microseconds=passed))


def ceiling(steps: Steps, calendar: Calendar, at: int) -> int:
    """The first boundary of the clock at or after a moment."""
    start = floor(steps, calendar, at)
    if start == at:
        return at
    if steps.calendar:
        return period_end(calendar, steps.calendar, at)
    if steps.increment_us <= HOUR:
        return start + steps.increment_us
    following = _wall(calendar, start) + timedelta(microseconds=steps.increment_us)
    return _at(calendar, following)
