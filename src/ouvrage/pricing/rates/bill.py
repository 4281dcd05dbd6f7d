"""A bill: charges that add up to their total, each with the rule, the quantity and the reason.

Decides how rounding of money and tax become charges of their own, so that nothing is dropped between
the lines and the total. What is not priced is listed beside the charges and is never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import utc_text
from ouvrage.pricing.rates.plan import Money, Tax, Version
from ouvrage.pricing.rates.prepaid import NotRun, Stop
from ouvrage.pricing.rates.quantity import Rate, money_text

CREDITS = ("refund", "rounding")
"""Kinds of charges that may be negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """``amount`` = ``quantity`` in the rate's unit × rate × ``multiplier``, exactly.

    ``kind``: ``usage``, ``used`` and ``unused`` (a reservation's two halves), ``included``, ``free``,
    ``commitment``, ``refund``, ``tax`` or ``rounding``. ``quantity`` is in ``unit``, always exact:
    seconds and not hours, since 3,670 s are no decimal number of hours.
    """

    resource: str
    rule: str
    part: str
    kind: str
    start: int
    end: int
    quantity: Fraction
    unit: str
    rate: Rate | None
    multiplier: Fraction
    amount: Fraction
    because: str
    confidence: str
    grade: Grade

    def as_json(self, currency: str) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        return {
            "resource": self.resource,
            "rule": self.rule,
            "part": self.part,
            "kind": self.kind,
            "from": utc_text(self.start),
            "to": utc_text(self.end),
            "quantity": decimal_text(self.quantity),
            "unit": self.unit,
            "price": None if self.rate is None else self.rate.words(currency),
            "multiplier": decimal_text(self.multiplier),
            "amount": money_text(self.amount),
            "because": self.because,
            "confidence": self.confidence,
            "grade": self.grade.word,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrated:
    """A quantity of the usage that no rule prices: what it costs is not known."""

    resource: str
    quantity: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What was paid in advance, less the charges.

    ``spent_at`` is the last instant that was covered, where charges went on below zero.
    """

    deposited: Fraction
    left: Fraction
    negative: str
    spent_at: int | None = None

    def as_json(self) -> dict[str, str | None]:
        """What ``--json`` prints of it."""
        return {
            "deposited": money_text(self.deposited),
            "left": money_text(self.left),
            "when_negative": self.negative,
            "used_up_at": None if self.spent_at is None else utc_text(self.spent_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """All charges of a usage under a plan, in one currency."""

    plan: str
    currency: str
    charges: tuple[Charge, ...]
    total: Fraction
    tax: Tax
    unrated: tuple[Unrated, ...] = ()
    notes: tuple[str, ...] = ()
    balance: Balance | None = None
    stops: tuple[Stop, ...] = ()
    not_run: tuple[NotRun, ...] = ()

    @property
    def grade(self) -> Grade | None:
        """The weakest grade among the charges; None where there is none."""
        return weakest(charge.grade for charge in self.charges) if self.charges else None

    def as_json(self) -> dict[str, Any]:
        """What ``ouvrage rates apply --json`` prints."""
        return {
            "plan": self.plan,
            "total": money_text(self.total),
            "currency": self.currency,
            "grade": None if self.grade is None else self.grade.word,
            "tax": _tax_json(self),
            "charges": [charge.as_json(self.currency) for charge in self.charges],
            "unrated": [
                {"resource": each.resource, "quantity": each.quantity, "reason": each.reason}
                for each in self.unrated
            ],
            "balance": None if self.balance is None else self.balance.as_json(),
            "stops": [
                {
                    "at": utc_text(each.at),
                    "what": "deleted" if each.deleted else "stopped",
                    "resources": list(each.resources),
                    "because": each.because,
                }
                for each in self.stops
            ],
            "not_run": [
                {
                    "resource": each.resource,
                    "event": each.event,
                    "at": utc_text(each.at),
                    "balance_exhausted_at": utc_text(each.since),
                }
                for each in self.not_run
            ],
            "notes": list(self.notes),
        }


def _tax_json(bill: Bill) -> dict[str, str | None]:
    rate = bill.tax.rate
    contained = None
    if bill.tax.status == "included" and rate is not None:
        contained = money_text(bill.total * rate / (1 + rate))
    stated = None if rate is None else decimal_text(rate)
    return {"status": bill.tax.status, "rate": stated, "contained": contained}


def total_of(charges: Iterable[Charge]) -> Fraction:
    """The sum of the amounts."""
    return sum((charge.amount for charge in charges), Fraction(0))


def completed(charges: list[Charge], version: Version) -> list[Charge]:
    """The charges of a version with its rounding and its tax posted as charges of their own."""
    taxed = charges + _taxes(charges, version.tax)
    return _rounded(taxed, version.money)


def _taxes(charges: list[Charge], tax: Tax) -> list[Charge]:
    if tax.status != "excluded" or tax.rate is None or not charges:
        return []
    base = total_of(charges)
    return [
        replace(
            _beside(charges, "tax", f"{decimal_text(tax.rate * 100)} % of {money_text(base)}"),
            rule=tax.name,
            amount=base * tax.rate,
        )
    ]


def _beside(charges: list[Charge], kind: str, because: str) -> Charge:
    """A charge about other charges: it lasts as long as they do and is worth what they are."""
    return Charge(
        resource="",
        rule=kind,
        part="other",
        kind=kind,
        start=min(charge.start for charge in charges),
        end=max(charge.end for charge in charges),
        quantity=Fraction(1),
        unit="",
        rate=None,
        multiplier=Fraction(1),
        amount=Fraction(0),
        because=because,
        confidence=charges[-1].confidence,
        grade=weakest(charge.grade for charge in charges),
    )


def _rounded(charges: list[Charge], money: Money) -> list[Charge]:
    if money.level == "none" or not charges:
        return charges
    if money.level == "total":
        return charges + _difference(charges, total_of(charges), money, "the total")
    found: list[Charge] = []
    for charge in charges:
        words = f"the charge for {charge.rule}"
        found += [charge, *_difference([charge], charge.amount, money, words)]
    return found


def _difference(charges: list[Charge], amount: Fraction, money: Money, words: str) -> list[Charge]:
    difference = rounded_to(amount, money) - amount
    if not difference:
        return []
    because = f"{words} rounded {money.mode} to {decimal_text(money.step)}"
    posted = _beside(charges, "rounding", because)
    return [
        replace(
            posted, resource=charges[0].resource if len(charges) == 1 else "", amount=difference
        )
    ]


def rounded_to(amount: Fraction, money: Money) -> Fraction:
    """An amount on the step of a plan. ``up`` and ``down`` are away from and towards zero."""
    steps = abs(amount) / money.step
    whole, rest = divmod(steps.numerator, steps.denominator)
    if money.mode == "half-even":
        count = round(steps)
    elif money.mode == "half-up":
        count = whole + (2 * rest >= steps.denominator)
    else:
        count = whole + (rest > 0 if money.mode == "up" else 0)
    return count * money.step * (-1 if amount < 0 else 1)


def bill_faults(bill: Bill) -> Iterable[str]:
    """What does not hold in a bill: lines that miss the total, amounts that are not their product."""
    total = total_of(bill.charges)
    if total != bill.total:
        yield f"the charges add up to {decimal_text(total)}, not to {decimal_text(bill.total)}"
    for charge in bill.charges:
        if charge.amount < 0 and charge.kind not in CREDITS:
            yield f"{charge.rule} of {charge.resource} is negative and no credit"
        if charge.end < charge.start:
            yield f"{charge.rule} of {charge.resource} ends before it begins"
