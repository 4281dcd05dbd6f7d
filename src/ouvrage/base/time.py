"""Time as integers of microseconds, UTC, in half-open periods.

Only conversions: the clock itself is an adapter. Text is RFC 3339 with ``Z`` and microseconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def utc_text(at_us: int) -> str:
    """``2026-11-30T14:05:09.000001Z`` for microseconds since the epoch.

    A moment that no calendar holds is told by its number: it came from a damaged or hostile file.
    """
    try:
        moment = _EPOCH + timedelta(microseconds=at_us)
    except OverflowError:
        return f"{at_us} us after 1970"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def utc_us(text: str) -> int:
    """Microseconds since the epoch of an RFC 3339 text that names its zone.

    ``ValueError`` when the text is no date and time, or has no zone: local times are not guessed.
    """
    cleaned = text.strip()
    if cleaned.endswith(("Z", "z")):
        cleaned = cleaned[:-1] + "+00:00"
    moment = datetime.fromisoformat(cleaned)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no zone: write it as 2026-11-30T14:05:09Z")
    return (moment - _EPOCH) // timedelta(microseconds=1)
