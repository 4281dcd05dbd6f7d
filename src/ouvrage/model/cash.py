"""What was billed to an owner, what moved in the bank, and the time that support took.

A bill states a cost for a period; a bank line states that money moved on a day. Whether the one pays
the other is found out by reconciling, or said by hand, never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

COSTS = (
    "electricity",
    "cooling",
    "bandwidth",
    "rent",
    "insurance",
    "platform-fee",
    "gas",
    "parts",
    "repair",
    "support",
    "equipment-lease",
    "interest",
    "tax",
    "other",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBill:
    """``about`` was billed ``amount`` (decimal text, without ``tax``) of ``sort`` for the fact's period.

    ``energy_j`` is the energy that an electricity bill states, in joules; ``due`` a day.
    """

    KIND: ClassVar[str] = "owner.cost"
    VERSION: ClassVar[int] = 1

    number: str
    about: str
    sort: str
    what: str
    amount: str
    tax: str | None
    currency: str
    energy_j: int | None
    due: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BankLine:
    """``amount`` (negative: it left) was booked to ``account`` on the day that the fact's period is.

    ``reference`` is the bank's own id of the line where it gives one.
    """

    KIND: ClassVar[str] = "bank.payment"
    VERSION: ClassVar[int] = 1

    account: str
    reference: str
    amount: str
    currency: str
    counterparty: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentMatched:
    """Somebody said that ``payment``, a line of a bank, pays ``amount`` of ``document``, or that it does not.

    Both are named by what stays when they are corrected (a fact's source and natural key; of a loan's
    instalment its number behind ``#``). ``amount`` is in the document's currency and ``took`` what of the
    line it takes, in the line's; both have the sign of what moved, and both are null where the payment is
    not of that document.
    """

    KIND: ClassVar[str] = "bank.match"
    VERSION: ClassVar[int] = 1

    payment: str
    document: str
    amount: str | None
    took: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportTime:
    """Somebody worked ``duration_us`` for ``about`` (and ``tenant``), at ``valid_from``."""

    KIND: ClassVar[str] = "owner.support"
    VERSION: ClassVar[int] = 1

    about: str
    tenant: str | None
    duration_us: int
    what: str
