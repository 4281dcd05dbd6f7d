"""A claim: something somebody else asserts. It never turns into a measurement.

It keeps who said it, what they gain by it and what they left out, so that a reader can weigh it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedOffer:
    """One configuration of a claimed comparison: decimal texts in ``currency``."""

    name: str
    price_per_hour: str
    cost_per_unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A published comparison of configurations by cost per unit.

    ``interest`` is what the claimant has in it (vendor, partner, independent, ourselves);
    ``not_shown`` says what the claim leaves open.
    """

    KIND: ClassVar[str] = "evidence.claim"
    VERSION: ClassVar[int] = 1

    name: str
    statement: str
    said_by: str
    interest: str
    stated_on: str
    read_on: str
    work: str
    unit: str
    currency: str
    offers: tuple[ClaimedOffer, ...]
    not_shown: str
