"""What a loan costs in a period: its interest, apart from what is paid back.

An annuity's schedule for now, with interest spread evenly over the time of each instalment.
"""

from __future__ import annotations

from fractions import Fraction

from ouvrage.books.period import Period, months_later
from ouvrage.books.record import Known
from ouvrage.model.assets import Loan


def interest_in(loan: Known[Loan], period: Period) -> Fraction:
    """The interest that falls into a period, in the loan's currency."""
    value, zone = loan.value, period.zone
    rate = Fraction(value.rate_per_year) / 12
    balance, months = Fraction(value.principal), value.months
    growth = (1 + rate) ** months
    payment = balance / months if not rate else balance * rate * growth / (growth - 1)
    begins, total = loan.valid_from, Fraction(0)
    for month in range(months):
        following = months_later(loan.valid_from, month + 1, zone)
        interest = balance * rate
        total += interest * Fraction(period.overlap(begins, following), following - begins)
        balance -= payment - interest
        begins = following
    return total
