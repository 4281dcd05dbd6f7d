"""What a loan costs in a period: its interest, apart from what is paid back.

Decides the schedule of each shape in whole billionths of the currency: an annuity pays the same each
month, a linear loan the same part of what was borrowed, a bullet all of it at the end; the last instalment
takes what rounding left, so that what is paid back is what was borrowed. A month's interest is a twelfth
of the year's on what is still owed, and accrues evenly over the month.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ouvrage.base.numbers import NANO, nano, number, split_whole
from ouvrage.books.period import Period, months_later
from ouvrage.books.record import Known
from ouvrage.model.assets import Loan


@dataclass(frozen=True, slots=True, kw_only=True)
class Instalment:
    """What is due at ``at_us`` for the time since ``from_us``; ``balance`` is owed after it.

    Amounts are whole nano-units of the loan's currency.
    """

    from_us: int
    at_us: int
    interest: int
    principal: int
    balance: int


def loan_schedule(loan: Known[Loan], zone: str) -> tuple[Instalment, ...]:
    """Every instalment of a loan, the first one a month after it was paid out."""
    return _schedule(loan.value, loan.valid_from, zone)


@lru_cache(maxsize=256)
def _schedule(loan: Loan, begins: int, zone: str) -> tuple[Instalment, ...]:
    rate = number(loan.rate_per_year) / 12
    balance, found, before = nano(number(loan.principal)), [], begins
    for month, (interest, principal) in enumerate(_payments(loan, balance, rate), 1):
        at_us = months_later(begins, month, zone)
        balance -= principal
        found.append(
            Instalment(
                from_us=before, at_us=at_us, interest=interest, principal=principal, balance=balance
            )
        )
        before = at_us
    return tuple(found)


def _payments(loan: Loan, balance: int, rate: Fraction) -> Iterator[tuple[int, int]]:
    """Interest and what is paid back, month by month."""
    months = loan.months
    parts = split_whole(balance, [1] * months)
    whole = _annuity(balance, rate, months)
    for month in range(1, months + 1):
        interest = round(balance * rate)
        if month == months:
            principal = balance
        elif loan.shape == "bullet":
            principal = 0
        elif loan.shape == "linear":
            principal = parts[month - 1]
        else:
            principal = min(balance, max(0, whole - interest))
        yield interest, principal
        balance -= principal


def _annuity(balance: int, rate: Fraction, months: int) -> int:
    """The payment that is the same each month: ``P r / (1 - (1 + r)^-n)``."""
    if not rate:
        return round(Fraction(balance, months))
    growth = (1 + rate) ** months
    return round(balance * rate * growth / (growth - 1))


def interest_in(loan: Known[Loan], period: Period) -> Fraction:
    """The interest that falls into a period, in the loan's currency, exactly over any cut of time."""
    total = Fraction(0)
    for each in loan_schedule(loan, period.zone):
        within = period.overlap(each.from_us, each.at_us)
        if within:
            total += each.interest * Fraction(within, each.at_us - each.from_us)
    return total / NANO
