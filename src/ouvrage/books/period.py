"""Periods of the books: months, years and days as the clocks of a site's zone have them.

Decides where a month begins and ends, so that October has an hour more and March an hour less where
clocks are changed. Zones come from the machine's own database; a name it does not know is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ouvrage.base.errors import OuvrageError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_US = timedelta(microseconds=1)
_YEARS = range(1970, 2200)
"""Years in which machines have books; a day outside is a slip, and months are counted one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Half-open, in microseconds UTC. ``name`` is how figures name it: ``2026-11``, ``2026``."""

    from_us: int
    to_us: int
    name: str
    zone: str

    @property
    def us(self) -> int:
        """How long it is."""
        return self.to_us - self.from_us

    def until(self, at_us: int) -> Period:
        """The part before a moment, under the same name."""
        end = min(self.to_us, max(self.from_us, at_us))
        return Period(from_us=self.from_us, to_us=end, name=self.name, zone=self.zone)

    def overlap(self, from_us: int, to_us: int | None) -> int:
        """Microseconds of a stretch (``to_us`` None: without end) that lie inside."""
        end = self.to_us if to_us is None else min(to_us, self.to_us)
        return max(0, end - max(from_us, self.from_us))


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The zone of a name; ``OuvrageError`` ``site/zone`` for one that this machine does not know."""
    try:
        return timezone.utc if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise OuvrageError(
            "site/zone",
            f"{name!r} is no time zone that this machine knows",
            hint="name it as in the IANA database: Europe/Paris, America/New_York, UTC",
        ) from error


@lru_cache(maxsize=65_536)
def day_start(day: date, zone: str) -> int:
    """The first moment of a day in a zone."""
    wall = datetime(day.year, day.month, day.day, tzinfo=zone_of(zone))
    return (wall - _EPOCH) // _US


def day_of(at_us: int, zone: str) -> date:
    """The day that a clock on the wall of a zone shows at a moment."""
    return (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone_of(zone)).date()


def day_named(text: str) -> date:
    """A day as people write it in data: ``2026-11-07``. ``ValueError`` for any other text."""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(f"{text!r} is not written as 2026-11-07")
    found = date.fromisoformat(text)
    if found.year not in _YEARS:
        raise ValueError(f"{found.year} is outside {_YEARS.start} to {_YEARS.stop - 1}")
    return found


def next_month(day: date) -> date:
    """The first day of the month after that of a day."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def month_of(at_us: int, zone: str) -> Period:
    """The month in which a moment lies."""
    first = day_of(at_us, zone).replace(day=1)
    return span(first, next_month(first), zone, f"{first:%Y-%m}")


def months_in(from_us: int, to_us: int, zone: str) -> Iterator[Period]:
    """The months that a stretch of time touches, in order, whole."""
    at = from_us
    while at < to_us:
        month = month_of(at, zone)
        yield month
        at = month.to_us


def span(first: date, after: date, zone: str, name: str) -> Period:
    """The period from the beginning of one day to that of another."""
    return Period(
        from_us=day_start(first, zone), to_us=day_start(after, zone), name=name, zone=zone
    )


def period_named(name: str, zone: str) -> Period:
    """The period that a name means: ``2026-11``, ``2026``, ``2026-11-07`` or ``DAY..DAY``.

    The second day of a pair is the first one that is not in it. Raises ``OuvrageError``
    ``period/unreadable``.
    """
    try:
        return _named(name, zone)
    except ValueError as error:
        raise OuvrageError(
            "period/unreadable",
            f"{name!r} is no period of books",
            hint="a month 2026-11, a year 2026, a day 2026-11-07, or --from DAY --to DAY",
        ) from error


def _named(name: str, zone: str) -> Period:
    if re.fullmatch("[0-9]{4}", name):
        first = day_named(f"{name}-01-01")
        return span(first, date(first.year + 1, 1, 1), zone, name)
    if re.fullmatch("[0-9]{4}-[0-9]{2}", name):
        first = day_named(f"{name}-01")
        return span(first, next_month(first), zone, name)
    begins, dots, ends = name.partition("..")
    first = day_named(begins)
    after = day_named(ends) if dots else first + timedelta(days=1)
    if after <= first:
        raise ValueError("a period ends after it begins")
    return span(first, after, zone, name)


def period_before(period: Period) -> Period:
    """The period before: the month before a month, the year before a year, else as many days."""
    if re.fullmatch("[0-9]{4}-[0-9]{2}", period.name):
        return month_of(period.from_us - 1, period.zone)
    if re.fullmatch("[0-9]{4}", period.name):
        return period_named(str(int(period.name) - 1), period.zone)
    first, after = day_of(period.from_us, period.zone), day_of(period.to_us, period.zone)
    begins = first - (after - first)
    return span(begins, first, period.zone, f"{begins}..{first}")


def months_later(at_us: int, months: int, zone: str) -> int:
    """The beginning of the same day some months later, or of the last day of a shorter month."""
    day = day_of(at_us, zone)
    index = day.year * 12 + day.month - 1 + months
    first = date(index // 12, index % 12 + 1, 1)
    last = next_month(first) - timedelta(days=1)
    return day_start(first.replace(day=min(day.day, last.day)), zone)
