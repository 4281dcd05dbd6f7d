"""The account of a machine day by day, for what must be judged from how much days differ.

Decides nothing about amounts: each day is the account of that day, as a statement of one day would have
it, from the facts that concern it. Tax is left out, since it is on the profit of a whole period and not of
its good days alone; usual support is left out of months in which support was logged, as in a month.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import NANO
from ouvrage.books.account import Account, account
from ouvrage.books.calendar import SOLD
from ouvrage.books.cells import UNNAMED, Cell
from ouvrage.books.period import Period, day_of, day_start, month_of
from ouvrage.books.record import Known, MeterRead, OwnerRecord
from ouvrage.books.scope import Scope

EVERYTHING = Scope()
_CUT = ("states", "earnings", "bills", "energy", "invoices", "spots")
"""The kinds of which there are many, each about a short time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day of some devices: microseconds by state and by (channel, tenant), amounts by line.

    ``lines`` are revenues and costs before tax in the site's currency and energies in kWh, ``told`` the device time of which
    a fact says what was done or earned, ``unknown`` why a cost is not known, by line.
    """

    from_us: int
    to_us: int
    states: Mapping[str, int]
    tenants: Mapping[tuple[str, str], int]
    lines: Mapping[str, Fraction]
    told: int
    unknown: Mapping[str, str]

    @property
    def owned(self) -> int:
        """Device time."""
        return sum(self.states.values())

    @property
    def sold(self) -> int:
        """Device time that somebody had."""
        return sum(us for state, us in self.states.items() if state in SOLD)


def days_of(
    record: OwnerRecord, site: str, period: Period, scope: Scope = EVERYTHING
) -> tuple[Day, ...]:
    """The whole days of a period at a site, of the devices of a scope.

    Raises ``OuvrageError`` ``books/...`` as an account does.
    """
    cut = _by_day(record, period)
    about = f"site:{site}"
    untaxed = record.with_term(about, "tax", Fraction(0), said_by="left out of single days")
    logged = {month_of(each.valid_from, period.zone).name for each in record.support}
    without = untaxed.with_term(
        about, "support_hours_month", Fraction(0), said_by="support is logged in this month"
    )
    found: list[Day] = []
    for day in _days(period):
        base = without if month_of(day.from_us, period.zone).name in logged else untaxed
        kept: dict[str, Any] = {
            name: tuple(days.get(day.from_us, ())) for name, days in cut.items()
        }
        found.append(_day(account(replace(base, **kept), site, day), scope))
    return tuple(found)


def _days(period: Period) -> Iterator[Period]:
    day = day_of(period.from_us, period.zone)
    if day_start(day, period.zone) < period.from_us:
        day += timedelta(days=1)
    while (ends := day_start(day + timedelta(days=1), period.zone)) <= period.to_us:
        begins = day_start(day, period.zone)
        yield Period(from_us=begins, to_us=ends, name=str(day), zone=period.zone)
        day += timedelta(days=1)


def _by_day(record: OwnerRecord, period: Period) -> dict[str, dict[int, list[Any]]]:
    """Facts of the many kinds by the days that they concern."""
    found: dict[str, dict[int, list[Any]]] = {}
    for name in _CUT:
        days = found[name] = {}
        for each in getattr(record, name):
            for begins in _concerned(each, period):
                days.setdefault(begins, []).append(each)
    return found


def _concerned(each: Known[Any] | MeterRead, period: Period) -> Iterator[int]:
    issued = None if isinstance(each, MeterRead) else getattr(each.value, "issued_us", None)
    begins = each.valid_from if issued is None else min(each.valid_from, issued)
    ends = max(each.end, begins + 1, begins if issued is None else issued + 1)
    at = max(begins, period.from_us)
    while at < min(ends, period.to_us):
        day = day_of(at, period.zone)
        yield day_start(day, period.zone)
        at = day_start(day + timedelta(days=1), period.zone)


def _day(made: Account, scope: Scope) -> Day:
    def ours(cell: Cell) -> bool:
        return scope.holds(cell.node, cell.device, made.grid.models)

    states: dict[str, int] = {}
    tenants: dict[tuple[str, str], int] = {}
    for cell, times in made.hours.items():
        if not ours(cell):
            continue
        for state, us in times.items():
            states[state] = states.get(state, 0) + us
        if cell.channel is not None:
            key = (cell.channel, cell.tenant or UNNAMED)
            tenants[key] = tenants.get(key, 0) + sum(times.values())
    lines: dict[str, int] = {}
    for (line, cell), held in made.sums.items():
        if ours(cell):
            lines[line] = lines.get(line, 0) + held.nano
    devices = {cell.device for cell in made.hours if ours(cell)}
    unknown = {
        line: why
        for line, reasons in made.unknown.items()
        for device, why in reasons.items()
        if device in devices
    }
    return Day(
        from_us=made.grid.period.from_us,
        to_us=made.grid.period.to_us,
        states=states,
        tenants=tenants,
        lines={line: Fraction(nano, NANO) for line, nano in lines.items()},
        told=sum(made.covered[device][0] for device in devices if device in made.covered),
        unknown=unknown,
    )
