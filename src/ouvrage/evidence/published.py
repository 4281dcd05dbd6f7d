"""Comparisons that others have published, as claims: they never turn into measurements.

Decides what a claim implies (the time per unit behind a price and a cost) and keeps its grade on
everything made from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import fixed
from ouvrage.evidence.claims import Entry, claim_key, interest_words, stated, value_sheet
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.ledger.facts import Fact
from ouvrage.model.claims import Claim, ClaimedComparison, ClaimedOffer

PUBLISHED = "published"
"""The source of the claims that come with this program: everywhere the same facts."""
_HOUR_S = 3600

CLEARML_2023 = Claim(
    name="clearml-2023",
    providers=("Genesis Cloud",),
    subject="Genesis Cloud",
    property="trial of two configurations",
    statement="the dearer host costs less per epoch, because its CPU no longer starves the GPU",
    value=None,
    unit=None,
    said_by="ClearML",
    interest="partner",
    stated_on="2023-03-29",
    read_on="2026-11-30",
    address=None,
    not_shown=(
        "times per epoch, their spread, how many epochs, what was included; the article itself "
        "was not found again, so the four figures are as quoted by others"
    ),
    comparison=ClaimedComparison(
        work="YOLOv8 on VisDrone, RTX 3080",
        unit="epoch",
        currency="USD",
        offers=(
            ClaimedOffer(name="standard", price_per_hour="0.30", cost_per_unit="0.0106"),
            ClaimedOffer(
                name="CPU and memory optimised", price_per_hour="0.36", cost_per_unit="0.0096"
            ),
        ),
    ),
)
CLAIMS = {claim.name: claim for claim in (CLEARML_2023,)}


def claim_called(name: str) -> Claim:
    """The claim of this name. Raises ``OuvrageError`` ``claim/unknown``."""
    if name in CLAIMS:
        return CLAIMS[name]
    near = difflib.get_close_matches(name, CLAIMS, n=1, cutoff=0.0)
    raise OuvrageError(
        "claim/unknown",
        f"no published comparison is called {name!r}",
        hint=f"did you mean {near[0]}?",
    )


def claim_fact(claim: Claim = CLEARML_2023) -> Fact:
    """The fact that somebody claims this; an older program stated the same as version 1."""
    first = f"{PUBLISHED}/{claim.name}" if claim.name in CLAIMS else None
    return stated(claim, source=PUBLISHED, grade=Grade.REPORTED, corrects=first)


def claim_sheet(
    claim: Claim, as_of: int, grade: Grade = Grade.REPORTED, key: str | None = None
) -> Sheet:
    """What a claim states and what follows from it; each figure is as good as the claim.

    ``key`` names the fact that states it, where that is not the one that comes with this program.
    """
    stands_on = (key or claim_key(claim, PUBLISHED),)
    comparison = claim.comparison
    figures = _figures(claim.said_by, comparison, grade, stands_on) if comparison else ()
    return Sheet(object=claim.name, as_of=as_of, figures={f.path: f for f in figures})


def entry_sheet(entry: Entry, as_of: int) -> Sheet:
    """Every figure of a claim in the ledger: its value, its comparison, what follows from them."""
    key = entry.recorded.fact.key
    compared = claim_sheet(entry.claim, as_of, entry.grade, key)
    stated_value = value_sheet(entry, as_of)
    own = entry.claim.name not in CLAIMS
    return replace(
        compared,
        object=f"claim/{entry.claim.name}" if own else entry.claim.name,
        figures={**stated_value.figures, **compared.figures},
    )


def _figures(
    said_by: str, comparison: ClaimedComparison, grade: Grade, key: tuple[str, ...]
) -> Iterable[Figure]:
    currency = comparison.currency
    as_stated = f"as stated by {said_by}"
    for index, offer in enumerate(comparison.offers):
        root = f"offers.{index}"
        price, cost = _numbers(offer)
        yield known(f"{root}.price_per_hour", price, f"{currency}/h", grade, as_stated, facts=key)
        yield known(f"{root}.cost_per_unit", cost, currency, grade, as_stated, facts=key)
        path, method = f"{root}.seconds_per_unit", "cost per unit / price per hour x 3600"
        inputs = (f"{root}.cost_per_unit", f"{root}.price_per_hour")
        if price:
            yield known(path, cost / price * _HOUR_S, "s", grade, method, inputs=inputs)
        else:
            yield unknown(path, "s", method, "a price of nothing implies no time", inputs=inputs)
    if len(comparison.offers) == 2:
        yield from _ratios(comparison, grade)


def _numbers(offer: ClaimedOffer) -> tuple[Fraction, Fraction]:
    return Fraction(Decimal(offer.price_per_hour)), Fraction(Decimal(offer.cost_per_unit))


def _ratios(comparison: ClaimedComparison, grade: Grade) -> Iterable[Figure]:
    (price, cost), (other_price, other_cost) = map(_numbers, comparison.offers)
    rows = (
        ("price_ratio", "price_per_hour", other_price, price),
        ("break_even_speed_up", "price_per_hour", other_price, price),
        ("speed_up", "seconds_per_unit", cost * other_price, other_cost * price),
    )
    for path, of, above, below in rows:
        inputs = (f"offers.0.{of}", f"offers.1.{of}")
        order = "first by the second" if path == "speed_up" else "second by the first"
        method = f"{of} of the {order}"
        if below:
            yield known(path, above / below, "1", grade, method, inputs=inputs)
        else:
            yield unknown(path, "1", method, "nothing can be divided by nothing", inputs=inputs)


def claim_json(claim: Claim, sheet: Sheet) -> dict[str, Any]:
    """A claim as reports carry it."""

    def number(path: str) -> float | None:
        value = sheet.number(path) if path in sheet.figures else None
        return None if value is None else float(fixed(value, 6))

    comparison = claim.comparison
    if comparison is None:
        raise RuntimeError(f"{claim.name} compares nothing")
    return {
        "name": claim.name,
        "said_by": claim.said_by,
        "stated_on": claim.stated_on,
        "interest": interest_words(claim.interest),
        "work": comparison.work,
        "unit": comparison.unit,
        "currency": comparison.currency,
        "grade": Grade.REPORTED.word,
        "offers": [
            {
                "name": offer.name,
                "price_per_hour": offer.price_per_hour,
                "cost_per_unit": offer.cost_per_unit,
                "implied_seconds_per_unit": number(f"offers.{index}.seconds_per_unit"),
            }
            for index, offer in enumerate(comparison.offers)
        ],
        "price_ratio": number("price_ratio"),
        "speed_up": number("speed_up"),
        "break_even_speed_up": number("break_even_speed_up"),
        "not_shown": claim.not_shown,
    }
