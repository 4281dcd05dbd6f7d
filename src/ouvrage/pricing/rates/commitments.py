"""Purchases for a term: paid at once or over time, whether used or not, and cancelled early or never.

Decides when a term ends and what an early cancel gives back. The state of a machine plays no part:
the clock of a commitment never stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import PER_US
from ouvrage.pricing.rates.clock import month_us, months_later
from ouvrage.pricing.rates.plan import Commitment, Rule
from ouvrage.pricing.rates.quantity import MONTH, Rate, money_text, seconds_text, time_unit
from ouvrage.pricing.rates.usage import Resource, Row, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """A term bought: its period, its worth at the rate without discount, and the price paid."""

    row: Row
    start: int
    end: int
    listed: Fraction
    paid: Fraction
    cancelled: int | None

    @property
    def words(self) -> str:
        """How the price came about."""
        length = f"{seconds_text(self.end - self.start)} s" if self.end > self.start else "once"
        discount = self.listed - self.paid
        less = f", less {money_text(discount)} discount" if discount else ""
        return f"{length}: {money_text(self.listed)}{less}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """What an early cancel gives back, and how."""

    amount: Fraction
    words: str


def purchases(usage: Usage, resource: Resource, rule: Rule, rate: Rate) -> Iterator[Purchase]:
    """Every purchase of a resource under a rule."""
    assert rule.commitment is not None
    rows = [row for row in resource.rows if row.event in rule.of and row.quantity is not None]
    for row in rows:
        end, listed = _term(usage, row, rule, rate)
        later = [r.at for r in resource.rows if r.event == "cancelled" and r.at >= row.at]
        cancelled = later[0] if later and later[0] < end else None
        yield Purchase(
            row=row,
            start=row.at,
            end=end,
            listed=listed,
            paid=listed * (1 - rule.commitment.discount),
            cancelled=cancelled,
        )


def _term(usage: Usage, row: Row, rule: Rule, rate: Rate) -> tuple[int, Fraction]:
    """Where a term ends, and what it costs at the rate."""
    assert row.quantity is not None
    assert row.unit is not None
    if rate.per is None:
        return row.at, row.quantity * rate.amount
    unit = time_unit(row.unit)
    if unit is None:
        raise OuvrageError(
            "usage/unit",
            f"{row.resource}: {row.event} is in {row.unit}, and its price is per {rate.per}",
            where=(usage.where(row),),
            hint="write the length of the term: 720 h, 90 day, 3 month",
        )
    end = _end(usage, row, unit, rule)
    if rate.per == MONTH and unit == MONTH:
        return end, row.quantity * rate.amount
    per = month_us(rule.calendar, row.at) if rate.per == MONTH else PER_US[rate.per]
    return end, Fraction(end - row.at, per) * rate.amount


def _end(usage: Usage, row: Row, unit: str, rule: Rule) -> int:
    assert row.quantity is not None
    if unit != MONTH:
        return row.at + int(row.quantity * PER_US[unit])
    if rule.calendar.month_us:
        return row.at + int(row.quantity * rule.calendar.month_us)
    if row.quantity.denominator != 1:
        raise OuvrageError(
            "usage/term",
            f"{row.resource}: a term of {row.quantity} months of the calendar has no end",
            where=(usage.where(row),),
            hint="write whole months, or the term in days or hours",
        )
    return months_later(rule.calendar, row.at, int(row.quantity))


def refund(purchase: Purchase, terms: Commitment, at: int) -> Refund:
    """What cancelling at a moment gives back under a commitment's terms."""
    left = Fraction(purchase.end - at, purchase.end - purchase.start)
    unused = purchase.paid * left
    discount = (purchase.listed - purchase.paid) * (1 - left)
    base = {"discount": discount, "unused": unused, "remainder": unused - discount}[terms.fee_on]
    fee = terms.fee * max(base, Fraction(0))
    amount = max(terms.floor, unused - discount - fee)
    words = (
        f"unused {money_text(unused)} − discount received {money_text(discount)} "
        f"− fee {money_text(fee)} ({terms.fee * 100} % of the {terms.fee_on})"
    )
    if unused - discount - fee < terms.floor:
        words += f", never below {money_text(terms.floor)}"
    return Refund(amount=amount, words=words)
