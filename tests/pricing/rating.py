"""Short ways to write a plan of one rule, usage made of runs, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from ouvrage.adapters.rate_files import load_plan, plan_from, usage_from
from ouvrage.base.time import SECOND, utc_text, utc_us
from ouvrage.pricing.rates.bill import Bill, bill_faults
from ouvrage.pricing.rates.plan import Plan
from ouvrage.pricing.rates.quantity import parse_rate
from ouvrage.pricing.rates.rating import apply_plan

HEAD = "resource,event,at,quantity,unit"
T0 = utc_us("2026-11-30T00:00:00Z")
GENERIC = {
    "per-second": "per-second",
    "60 s minimum": "per-second-60s-minimum",
    "minute up": "per-minute-up",
    "minute down": "per-minute-down",
    "hour up": "per-hour-up",
    "clock hour": "clock-hour",
}
PLAN = """\
format = "ouvrage-rate-plan/1"
name = "own"
title = "a plan made for a test"
{top}
[[version]]
{version}
[[version.rule]]
name = "r"
{rule}
"""


shipped = cache(load_plan)


@cache
def own(rule: str, version: str = 'currency = "EUR"', top: str = "") -> Plan:
    """A plan with one rule (more may follow it in the same text)."""
    return plan_from("own.toml", PLAN.format(rule=rule, version=version, top=top))


def rows(*lines: str) -> str:
    """A usage file."""
    return "\n".join([HEAD, *lines, ""])


def at(seconds: float) -> str:
    """A moment so many seconds after the beginning."""
    return utc_text(T0 + round(seconds * SECOND))


def sessions(periods: Iterable[tuple[float, float]], resource: str = "vm") -> list[str]:
    """Rows of a machine that was active in these periods."""
    return [
        line
        for start, end in periods
        for line in (f"{resource},active,{at(start)},,", f"{resource},stopped,{at(end)},,")
    ]


def runs(*durations: float, gap: float = 4000) -> list[str]:
    """Rows of runs that follow one another with a pause."""
    start, periods = 0.0, []
    for duration in durations:
        periods.append((start, start + duration))
        start += duration + gap
    return sessions(periods)


def bill(plan: Plan | str, lines: Sequence[str], until: str | None = None, **rates: str) -> Bill:
    """What rows cost, with the laws of a bill checked."""
    found = apply_plan(
        shipped(plan) if isinstance(plan, str) else plan,
        usage_from("usage.csv", rows(*lines)),
        {name: parse_rate(text) for name, text in rates.items()},
        until=None if until is None else utc_us(until),
    )
    assert not list(bill_faults(found))
    return found


def total(plan: Plan | str, lines: Sequence[str], until: str | None = None, **rates: str) -> str:
    """The total as it is printed."""
    return bill(plan, lines, until, **rates).as_json()["total"]


def amounts(found: Bill) -> list[tuple[str, str]]:
    """Kind and amount of every charge."""
    values = found.as_json()["charges"]
    return [(value["kind"], value["amount"]) for value in values]
