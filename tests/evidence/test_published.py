"""The published trial of 29 March 2023: four figures claimed, three implied."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.evidence.laws import LAWS, sheet_breaches
from ouvrage.evidence.published import (
    CLEARML_2023,
    claim_called,
    claim_fact,
    claim_json,
    claim_sheet,
)
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.model.claims import Claim, ClaimedOffer

SHEET = claim_sheet(CLEARML_2023, 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("offers.0.price_per_hour", "0.30"),
        ("offers.0.cost_per_unit", "0.0106"),
        ("offers.1.price_per_hour", "0.36"),
        ("offers.1.cost_per_unit", "0.0096"),
        ("offers.0.seconds_per_unit", "127.2"),  # 0.0106 / 0.30 x 3600
        ("offers.1.seconds_per_unit", "96"),  # 0.0096 / 0.36 x 3600
        ("price_ratio", "1.2"),
        ("break_even_speed_up", "1.2"),
        ("speed_up", "1.325"),
    ],
)
def test_figures(path: str, value: str) -> None:
    assert SHEET.number(path) == Fraction(value)
    assert SHEET[path].grade is Grade.REPORTED


def test_the_fact() -> None:
    fact = claim_fact()
    assert fact.grade is Grade.REPORTED
    assert read(fact) == CLEARML_2023
    assert fact.sha256 == claim_fact().sha256
    assert list(sheet_breaches(SHEET, {fact.key})) == []


def test_names() -> None:
    assert claim_called("clearml-2023") is CLEARML_2023
    with pytest.raises(OuvrageError) as refused:
        claim_called("clearml")
    assert refused.value.code == "claim/unknown"
    assert "clearml-2023" in (refused.value.hint or "")


def test_a_claim_of_one_offer_or_of_a_free_one_has_no_ratios() -> None:
    assert CLEARML_2023.comparison
    offers = CLEARML_2023.comparison.offers
    one = comparing(offers[:1])
    assert claim_json(one, claim_sheet(one, 0))["speed_up"] is None
    free = ClaimedOffer(name="free", price_per_hour="0", cost_per_unit="0")
    both = comparing((free, free))
    document = claim_json(both, claim_sheet(both, 0))
    assert document["price_ratio"] is None
    assert document["offers"][0]["implied_seconds_per_unit"] is None


def comparing(offers: tuple[ClaimedOffer, ...]) -> Claim:
    assert CLEARML_2023.comparison
    return replace(CLEARML_2023, comparison=replace(CLEARML_2023.comparison, offers=offers))


def stated(grade: Grade, price: str = "0.30") -> list[Recorded]:
    offer = ClaimedOffer(name="a", price_per_hour=price, cost_per_unit="0.01")
    fact = fact_of(
        comparing((offer,)),
        source="s",
        id="c",
        subject="c",
        valid_from=0,
        valid_to=None,
        grade=grade,
    )
    return [Recorded(seq=1, recorded_at=0, fact=fact)]


def broken(records: list[Recorded]) -> set[str]:
    return {breach.law for law in LAWS for breach in law.breaches(records)}


def test_the_laws_hold_and_can_fail() -> None:
    assert broken(stated(Grade.REPORTED)) == set()
    assert broken(stated(Grade.MEASURED)) == {"evidence/claims-stay-claims"}
    assert broken(stated(Grade.REPORTED, price="cheap")) == {"evidence/claims-readable"}
    entry = stated(Grade.REPORTED)[0]
    torn = replace(entry, fact=replace(entry.fact, payload="{}"))
    assert broken([torn]) == {"evidence/claims-readable"}
