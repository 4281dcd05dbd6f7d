"""A row of a cloud's bill in FOCUS, the FinOps Open Cost and Usage Specification, as it was exported.

Kept whole and unjudged: what a row means for anybody's books, and which rows contradict themselves, is
decided by those who read it. A literal ``NULL`` and an empty cell are both null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusCharge:
    """One charge over the fact's period (FOCUS ChargePeriodStart to ChargePeriodEnd).

    Costs (``billed``, ``effective``, ``listed``, ``contracted``) are decimal texts in ``currency``;
    ``list_unit_price`` is per ``pricing_unit``, of which ``pricing_quantity`` were charged. ``columns`` are
    all others that are not null, as the text of a canonical JSON object.
    """

    KIND: ClassVar[str] = "focus.charge"
    VERSION: ClassVar[int] = 1

    provider: str | None
    category: str
    charge_class: str | None
    currency: str
    billed: str | None
    effective: str | None
    listed: str | None
    contracted: str | None
    list_unit_price: str | None
    pricing_quantity: str | None
    pricing_unit: str | None
    consumed_quantity: str | None
    columns: str
