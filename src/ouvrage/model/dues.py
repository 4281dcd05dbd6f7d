"""What tenants owe and have paid, and how much they allow: charges, payments, budgets, invoices.

A charge is a rated amount with the rule that made it. A running cost is computed and is no fact; when a lease ends (and at the
end of each month for one that runs on) its charges become facts, once, and the invoice is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

BUDGET_ACTIONS = ("warn", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseCharge:
    """One line of what a lease cost in the fact's period. ``amount`` is decimal text, exact, before tax.

    ``rule`` names the plan's rule, ``words`` says how it was applied, ``price`` is the one price that made it (``0.30 EUR/h``; None
    where there are several), ``quantity`` and ``unit`` what it was applied to, exact. A credit is negative and names in ``credits``
    the charge that it gives back.
    """

    KIND: ClassVar[str] = "platform.charge"
    VERSION: ClassVar[int] = 1

    charge: str
    org: str
    project: str
    lease: str
    attempt: str | None
    job: str | None
    amount: str
    currency: str
    rule: str
    words: str
    price: str | None
    quantity: str
    unit: str
    credits: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A tenant paid ``amount`` in (a top-up, a transfer), or was paid back (negative)."""

    KIND: ClassVar[str] = "platform.payment"
    VERSION: ClassVar[int] = 1

    payment: str
    org: str
    amount: str
    currency: str
    reference: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A project may spend ``amount`` in each ``period`` (``day``, ``month``, ``total``); None lifts it.

    Warnings come at 50, 80 and 100 %; ``action`` ``stop`` ends work at 100 % after its checkpoint.
    """

    KIND: ClassVar[str] = "platform.budget"
    VERSION: ClassVar[int] = 1

    org: str
    project: str
    amount: str | None
    currency: str
    period: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantInvoice:
    """An invoice that was issued at ``issued_us`` over the fact's period, of these charges; never edited after.

    ``net`` is the charges and ``rounding`` together, in whole cents (or what the currency has); ``tax`` is ``tax_rate`` of it,
    ``total`` both. A credit note is one whose charges are credits; ``credits`` names the invoice that it corrects.
    """

    KIND: ClassVar[str] = "platform.invoice"
    VERSION: ClassVar[int] = 1

    invoice: str
    number: str
    issued_us: int
    org: str
    currency: str
    rounding: str
    net: str
    tax: str
    tax_rate: str
    total: str
    charges: tuple[str, ...]
    credits: str | None
