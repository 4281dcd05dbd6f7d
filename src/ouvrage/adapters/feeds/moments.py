"""Moments as exports write them: seconds since 1970, texts with a zone, and wall clocks without one.

Decides how a wall clock is read in a zone: an hour that does not exist is refused, one that comes twice
is the first, unless the row before it was later already. Nothing is guessed where no zone is given.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from ouvrage.adapters.feeds.told import amount_in
from ouvrage.base.time import SECOND, utc_us
from ouvrage.books.period import day_start, zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_US = timedelta(microseconds=1)
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800
"""2000 to 2100, in seconds: a number outside is in another unit, or no moment."""
_YEARS = range(1990, 2200)
"""A day before is a year of two digits in a form of four, one after them is ``9999-12-31`` for never."""
_IN_NAME = re.compile(
    r"(?<![0-9])(20[0-9]{2})-?([01][0-9])-?([0-3][0-9])[T_-]?([0-2][0-9])[:-]?([0-5][0-9])"
    r"(?:[:-]?([0-5][0-9]))?(?![0-9])"
)
_SECONDS_IN_NAME = re.compile(r"(?<![0-9])(1[0-9]{9})(?![0-9])")


def moment_of(value: object) -> int | None:
    """Microseconds of seconds (or milliseconds) since 1970, or of a text that names its zone."""
    number = amount_in(value)
    if number is not None:
        if number > _LATEST:
            number /= 1000
        return int(number * SECOND) if _EARLIEST <= number <= _LATEST else None
    if not isinstance(value, str):
        return None
    try:
        found = utc_us(value.strip().replace(" ", "T", 1))
        return found if (_EPOCH + timedelta(microseconds=found)).year in _YEARS else None
    except (ValueError, OverflowError):
        return None


def moment_in_name(name: str) -> int | None:
    """The UTC moment that a file's name holds: ``machines-20261130T1405.json``, or in seconds."""
    found = _SECONDS_IN_NAME.search(name)
    if found:
        return int(found[1]) * SECOND
    found = _IN_NAME.search(name)
    if not found:
        return None
    try:
        year, month, day, hour, minute, second = (int(each or 0) for each in found.groups())
        shown = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
        return (shown - _EPOCH) // _US
    except ValueError:
        return None


def wall_moment(text: str, form: str, zone: str, before: int | None) -> int | None:
    """Microseconds of what a clock on the wall of a zone showed; None for what it never showed.

    ``form`` is a ``strptime`` form, or empty for ISO 8601. ``before`` is the moment of the row before:
    the second of two equal hours is meant where the first would go back behind it.
    """
    found = wall_moments(text, form, zone)
    if not found:
        return None
    second = before is not None and found[0] < before <= found[-1]
    return found[-1] if second else found[0]


def wall_moments(text: str, form: str, zone: str) -> tuple[int, ...]:
    """Every moment at which a clock on the wall of a zone showed a text: none, one, or two."""
    try:
        shown = _written(text.strip(), form)
    except ValueError:
        return ()
    if shown.year not in _YEARS:
        return ()
    if shown.tzinfo is not None:
        return ((shown - _EPOCH) // _US,)
    found = [(shown.replace(tzinfo=zone_of(zone), fold=fold) - _EPOCH) // _US for fold in (0, 1)]
    back = (_EPOCH + timedelta(microseconds=found[0])).astimezone(zone_of(zone))
    if back.replace(tzinfo=None) != shown:
        return ()
    return tuple(dict.fromkeys(found))


def _written(text: str, form: str) -> datetime:
    if not form:
        return datetime.fromisoformat(text)
    return datetime.strptime(text, form)  # noqa: DTZ007 - a clock on the wall, whose zone is named apart


def day_of_text(text: str, form: str) -> date | None:
    """A day as a ``strptime`` form (or ISO 8601 where it is empty) writes it."""
    clean = text.strip()
    try:
        day = _written(clean, form).date() if form else date.fromisoformat(clean[:10])
    except ValueError:
        return None
    return day if day.year in _YEARS else None


def day_period(day: date, zone: str) -> tuple[int, int]:
    """A day of a zone as a half-open period; 23 or 25 hours where clocks are changed."""
    return day_start(day, zone), day_start(day + timedelta(days=1), zone)
