"""A period's books by the hour of the day and by the month, for those who look rather than read.

Decides that energy falls into the hour that the clock of the site shows, that the price of an hour is its
average over the period's days, and that what an hour sold had to bring is every cost but tax, less what
came in otherwise. Months of which nothing is recorded are left out, never drawn as nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR
from ouvrage.books.account import Account, account
from ouvrage.books.electricity import priced_by_bills
from ouvrage.books.energy import energy_of
from ouvrage.books.period import Period, months_in
from ouvrage.books.pnl import sheet_of
from ouvrage.books.record import OwnerRecord
from ouvrage.books.tariffs import KWH, PriceBook, clock_hours
from ouvrage.evidence.figures import Sheet

MONTHS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class HourOfDay:
    """Energy used in one hour of the clock over all days of a period, and its average price a kWh."""

    hour: int
    kwh: Fraction
    price: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a GPU-hour sold brought in a month and what it had to bring; None where not known."""

    month: str
    got: Fraction | None
    needed: Fraction | None
    grade: Grade | None


def by_hour(made: Account) -> tuple[HourOfDay, ...]:
    """The energy of a site's machines with their cooling by the hour of the day; none where unknown."""
    period, site = made.grid.period, made.grid.site
    if made.unknown.get("electricity"):
        return ()
    record = priced_by_bills(made.record, made.grid)
    book = PriceBook(record, site, period.from_us, period.to_us)
    kwh = [Fraction(0)] * 24
    for begins, ends, joules in energy_of(record, made.grid, book, load=True).load:
        for from_us, to_us, wall in clock_hours(begins, ends, period.zone):
            kwh[wall.hour] += joules * Fraction(to_us - from_us, (ends - begins) * KWH)
    if not any(kwh):
        return ()
    prices = _prices(book, period)
    return tuple(HourOfDay(hour=hour, kwh=kwh[hour], price=prices[hour]) for hour in range(24))


def _prices(book: PriceBook, period: Period) -> list[Fraction | None]:
    """The average price in each hour of the clock; None where some of its time has none."""
    sums: list[Fraction | None] = [Fraction(0)] * 24
    times = [0] * 24
    for begins, ends, wall in clock_hours(period.from_us, period.to_us, period.zone):
        for from_us, to_us, step in book.within(begins, ends):
            held, us = sums[wall.hour], to_us - from_us
            times[wall.hour] += us
            sums[wall.hour] = None if held is None or step.price is None else held + step.price * us
    return [None if s is None or not us else s / us for s, us in zip(sums, times, strict=True)]


def by_month(record: OwnerRecord, site: str, period: Period) -> tuple[Rates, ...]:
    """The last ``MONTHS`` months up to the end of a period, those of which something is recorded."""
    begun = min((each.valid_from for each in record.nodes), default=period.from_us)
    months = list(months_in(min(begun, period.from_us), period.to_us, period.zone))[-MONTHS:]
    return tuple(_rates(record, site, months))


def _rates(record: OwnerRecord, site: str, months: Sequence[Period]) -> Iterator[Rates]:
    for month in months:
        whole = month.until(record.as_of) if record.as_of else month
        if whole.us < HOUR:
            continue
        made = account(record, site, whole)
        sheet = sheet_of(made, made.cells, f"{site}/{month.name}", None)
        got = sheet.number("rate.effective")
        if got is not None:
            yield Rates(
                month=month.name, got=got, needed=needed_rate(sheet), grade=sheet["rate.effective"].grade
            )  # fmt: skip


def needed_rate(sheet: Sheet) -> Fraction | None:
    """What a GPU-hour sold had to bring so that nothing was lost; None where not known."""
    costs, tax = sheet.number("cost.total"), sheet.number("cost.tax")
    total, gpu, sold = (sheet.number(p) for p in ("revenue.total", "revenue.gpu", "hours.sold"))
    if costs is None or total is None or gpu is None or not sold:
        return None
    return (costs - (tax or 0) - (total - gpu)) / sold
