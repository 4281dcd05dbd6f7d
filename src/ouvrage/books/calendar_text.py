"""The calendar of devices as a person reads it: a strip of the days, then every stretch with its cause.

Decides words and characters alone. A cell of the strip shows the state that took most of its day, by
the order of precedence where two took the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.base.time import HOUR, utc_text
from ouvrage.books.calendar import Stretch, hours_by_state
from ouvrage.books.period import Period, day_of, day_start
from ouvrage.model.occupancy import STATES
from ouvrage.pricing.words import mark

DRAWN = {
    "working": "█",
    "held": "▓",
    "reserved": "▒",
    "free": "·",
    "maintenance": "m",
    "down": "x",
    "unknown": "?",
}
_PLAIN = {**DRAWN, "working": "W", "held": "H", "reserved": "R"}
MOST_LINES = 60

Calendars = Mapping[str, Sequence[Stretch]]


def calendar_text(calendars: Calendars, period: Period, *, plain: bool, one: bool) -> str:
    """The hours of all devices, a strip for each, and with ``one`` every stretch of it."""
    stretches = [stretch for each in calendars.values() for stretch in each]
    hours = hours_by_state(stretches)
    owned = sum(hours.values())
    told = ", ".join(
        f"{fixed(Fraction(hours[state], HOUR), 1)} h {state}"
        for state in ("working", "held", "reserved", "free", "maintenance", "down", "unknown")
        if hours[state]
    )
    many = "1 GPU" if len(calendars) == 1 else f"{len(calendars)} GPUs"
    lines = [
        f"{many} in {period.name}: {fixed(Fraction(owned, HOUR), 1)} h owned; {told or 'none'}.",
        "",
    ]
    width = max((len(name) for name in calendars), default=0)
    for name, each in calendars.items():
        lines.append(f"  {safe(name):<{width}}  {_strip(each, period, plain)}")
    drawn = _PLAIN if plain else DRAWN
    key = "  ".join(f"{drawn[state]} {state}" for state in DRAWN if hours[state])
    lines += [f"  {'':<{width}}  a day each   {key}", ""]
    if one:
        lines += _lines(stretches, plain)
    else:
        lines += _causes(stretches)
        lines.append(
            f"\nOne of them, stretch by stretch: ouvrage books calendar {next(iter(calendars), 'GPU')}"
        )
    return "\n".join(lines).rstrip()


def _strip(stretches: Sequence[Stretch], period: Period, plain: bool) -> str:
    day, cells = day_of(period.from_us, period.zone), ""
    while (begins := day_start(day, period.zone)) < period.to_us:
        day += timedelta(days=1)
        cells += _cell(stretches, begins, day_start(day, period.zone), plain)
    return cells


def _cell(stretches: Sequence[Stretch], from_us: int, to_us: int, plain: bool) -> str:
    times: dict[str, int] = dict.fromkeys(STATES, 0)
    for stretch in stretches:
        times[stretch.state] += max(0, min(stretch.to_us, to_us) - max(stretch.from_us, from_us))
    state = max(STATES, key=lambda each: times[each])
    return (_PLAIN if plain else DRAWN)[state] if times[state] else " "


def _lines(stretches: Sequence[Stretch], plain: bool) -> list[str]:
    shown = stretches[:MOST_LINES]
    lines = [
        f"  {utc_text(s.from_us)[:16]}Z  {fixed(Fraction(s.us, HOUR), 2):>8} h  {s.state:<11}"
        f"{mark(s.grade, plain):<2} {safe(_why(s))}"
        for s in shown
    ]
    if len(shown) < len(stretches):
        lines.append(f"  and {len(stretches) - len(shown)} more; --json has them all")
    return lines


def _why(stretch: Stretch) -> str:
    parts = [
        stretch.cause,
        *(who for who in (stretch.channel, stretch.tenant, stretch.lease) if who),
    ]
    aside = f"; {len(stretch.set_aside)} said otherwise" if stretch.set_aside else ""
    return ", ".join(part for part in parts if part) + aside


def _causes(stretches: Sequence[Stretch]) -> list[str]:
    """Why hours were not sold, the most frequent cause first."""
    times: dict[tuple[str, str], int] = {}
    for stretch in stretches:
        if stretch.state != "working":
            key = (stretch.state, stretch.cause or "no cause stated")
            times[key] = times.get(key, 0) + stretch.us
    ordered = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    return [
        f"  {fixed(Fraction(us, HOUR), 1):>9} h  {state}: {safe(cause)}"
        for (state, cause), us in ordered[:8]
    ]


def calendar_json(calendars: Calendars, site: str, period: Period) -> dict[str, Any]:
    """Every stretch of every device as ``--json`` prints it."""
    return {
        "site": site,
        "period": period.name,
        "devices": [
            {
                "device": name,
                "hours": {
                    state: float(fixed(Fraction(us, HOUR), 6))
                    for state, us in hours_by_state(each).items()
                },
                "stretches": [_stretch_json(stretch) for stretch in each],
            }
            for name, each in calendars.items()
        ],
    }


def _stretch_json(stretch: Stretch) -> dict[str, Any]:
    return {
        "node": stretch.node,
        "from": utc_text(stretch.from_us),
        "to": utc_text(stretch.to_us),
        "state": stretch.state,
        "cause": stretch.cause,
        "channel": stretch.channel,
        "tenant": stretch.tenant,
        "lease": stretch.lease,
        "grade": stretch.grade.word if stretch.grade is not None else None,
        "facts": list(stretch.facts),
        "set_aside": list(stretch.set_aside),
    }
