"""A bill that was rated and kept: what usage cost under a plan, line by line, with its rounding.

It keeps hashes of the plan and of the usage, so that the same question can be asked again of the
same texts. It is what a plan makes of some usage, not what a provider has invoiced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class BillLine:
    """One charge. ``quantity`` and ``amount`` are exact: decimal text, or ``n/d`` where none ends."""

    resource: str
    rule: str
    kind: str
    valid_from: int
    valid_to: int
    quantity: str
    unit: str
    price: str | None
    amount: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """All charges of some usage under a plan, in one currency, and their total."""

    KIND: ClassVar[str] = "rates.bill"
    VERSION: ClassVar[int] = 1

    plan: str
    plan_sha256: str
    usage_sha256: str
    currency: str
    total: str
    lines: tuple[BillLine, ...]
