"""A file of evidence is read whole or refused with the place of the mistake."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

import ouvrage
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.evidence.laws import LAWS
from ouvrage.evidence.reading import facts_in
from ouvrage.ledger.admission import admit
from ouvrage.ledger.facts import Fact, Recorded
from tests.adapters.test_public_records_fuzz import ODD, places_in, with_value

FILE = Path(ouvrage.__file__).parent / "evidence_data" / "genesis-volta.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text("utf-8"))


def read(document: Any) -> list[Fact]:
    return facts_in(document, file="f.json", source="s")


def changed(part: str, **fields: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document[part][0].update(fields)
    return document


def test_the_shipped_example_is_whole():
    facts = read(DOCUMENT)
    assert len(facts) == len({fact.key for fact in facts}) == 17
    records = [Recorded(seq=n, recorded_at=n, fact=fact) for n, fact in enumerate(facts, 1)]
    assert [b for law in LAWS for b in law.breaches(records)] == []
    assert {fact.grade for fact in facts} == {Grade.REPORTED}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "found a JSON list, expected an object"),
        ({"claim": []}, "the file.claim: found a field of this name"),
        ({"claims": {}}, "the file.claims: found dict, expected a list"),
        ({"claims": [1]}, "the file.claims[0]: found int, expected an object"),
        ({"published": ["x"]}, "the file.published: found 'x'"),
        ({"published": [["x"]]}, "the file.published: found ['x']"),
        (changed("claims", said_by=" "), "claims[0].said_by: found an empty text"),
        (changed("claims", value=3), "claims[0].value: found 3, expected a text"),
        (changed("claims", providers=[]), "claims[0].providers: found []"),
        (changed("claims", providers=["-"]), "claims[0]: the claim belongs to no provider"),
        (changed("claims", interest="friend"), "claims[0]: 'friend' is no interest"),
        (changed("claims", stated_on="2026-13-01"), "claims[0]: '2026-13-01' is no date"),
        (changed("claims", stated_on="2027-01-01"), "before it was stated"),
        (changed("claims", grade="measured"), "claims[0]: a claim is never measured"),
        (changed("claims", grade="metered"), "claims[0]: a claim is never metered"),
        (changed("claims", grade="gold"), "claims[0].grade: found 'gold'"),
        (changed("claims", unit="h"), "claims[0]: a unit without a value"),
        (changed("claims", unit="h", value="long"), "claims[0]: 'long' h is no number"),
        (changed("claims", valeu="3"), "claims[0].valeu: found a field of this name"),
        (changed("observations", at="yesterday"), "observations[0].at: found 'yesterday'"),
        (changed("observations", status="200"), "observations[0].status: found '200'"),
        (changed("observations", status=404), "says what was found though nothing answered"),
        (changed("observations", findings=[{"property": "p", "outcome": "maybe"}]), "'maybe'"),
        (changed("observations", answer="x"), "observations[0].answer: found a field"),
        (changed("searches", searched_on="1.1.26"), "searches[0]: '1.1.26' is no date"),
        (changed("questions", question=""), "questions[0].question: found an empty text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_told_with_its_place(document: Any, told: str):
    with pytest.raises(OuvrageError) as refused:
        read(document)
    assert told in refused.value.message
    assert refused.value.hint
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    "inputs", [pytest.param(150), pytest.param(20_000, marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_any_file_is_read_or_refused(inputs: int) -> None:
    places = places_in(DOCUMENT)
    for seed in range(inputs):
        draw = random.Random(seed)
        path = draw.choice(places)
        document = with_value(DOCUMENT, path, draw.choice(ODD if path else ODD[1:]))
        for fact in _facts_or_none(document):
            assert fact.grade not in (Grade.MEASURED, Grade.METERED), f"seed {seed}"


def _facts_or_none(document: Any) -> list[Fact]:
    """What a ledger would take; nothing where the file, or a name in it, is refused in words."""
    try:
        facts = read(document)
        for fact in facts:
            admit(fact)
    except OuvrageError:
        return []
    return facts
