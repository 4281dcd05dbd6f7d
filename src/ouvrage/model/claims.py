"""A claim: something somebody asserts. It never turns into a measurement.

It keeps who said it, what they gain by it and what they left out, so that a reader can weigh it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

INTERESTS = ("vendor", "partner", "independent", "ourselves")
"""What a claimant can have in a claim; the words are explained in ``docs/concepts/glossary.md``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedOffer:
    """One configuration of a claimed comparison: decimal texts in ``currency``."""

    name: str
    price_per_hour: str
    cost_per_unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedComparison:
    """Configurations that a claim compares by what a ``unit`` of ``work`` costs on each."""

    work: str
    unit: str
    currency: str
    offers: tuple[ClaimedOffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement that somebody makes about ``subject``.

    ``subject`` is what it is about (``AS209045``, ``Volta``) and ``providers`` are those whose
    dossiers it belongs in; ``property`` names what is stated of the subject, so that two claims can
    be set against each other; ``value`` is its value where it has one, a decimal text where
    ``unit`` is given. ``interest`` is what the claimant has in it: ``vendor``, ``partner``,
    ``independent`` or ``ourselves``. ``stated_on`` is the date of the statement, null where it is
    undated; ``read_on`` the date on which it was read at ``address``; ``not_shown`` says what the
    claim does not show. ``comparison`` holds the figures of a published comparison.
    """

    KIND: ClassVar[str] = "evidence.claim"
    VERSION: ClassVar[int] = 2

    name: str
    providers: tuple[str, ...]
    subject: str
    property: str
    statement: str
    value: str | None
    unit: str | None
    said_by: str
    interest: str
    stated_on: str | None
    read_on: str
    address: str | None
    not_shown: str
    comparison: ClaimedComparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonClaim:
    """A published comparison of configurations by cost per unit.

    Read only: newer programs state it as version 2, which holds all of it in ``comparison``.
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
