"""A dossier: what belongs in it, in which order, what disagrees, and what none of it shows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, utc_us
from ouvrage.evidence.claims import (
    CLAIMED,
    asked,
    claims_in,
    provider_key,
    searched,
    stated,
    value_sheet,
)
from ouvrage.evidence.dossier import (
    Item,
    compatible,
    contradictions,
    dossier,
    open_questions,
    providers_in,
)
from ouvrage.evidence.dossier_text import dossier_json, dossier_markdown, dossier_text
from ouvrage.evidence.laws import LAWS
from ouvrage.evidence.observations import absent, observed, present, seal, unanswered
from ouvrage.evidence.published import CLEARML_2023, claim_fact, entry_sheet
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.claims import Claim, ComparisonClaim
from ouvrage.model.observations import Finding, Observation, Question, Search
from ouvrage.model.records import Withdrawal

NOW = utc_us("2026-11-30T00:00:00Z")
CLAIM = Claim(
    name="c1",
    providers=("Genesis Cloud",),
    subject="AS1",
    property="holder",
    statement="it is held by A",
    value="A",
    unit=None,
    said_by="X",
    interest="independent",
    stated_on="2026-10-01",
    read_on="2026-11-01",
    address=None,
    not_shown="use",
    comparison=None,
)
OBSERVATION = Observation(
    providers=(),
    subject="AS1",
    place="P",
    address="http://localhost/",
    made_by="this home",
    asked_us=NOW - DAY,
    answered_us=NOW - DAY,
    page_us=None,
    status=200,
    fault=None,
    sha256=seal(b"x").sha256,
    size_bytes=1,
    answer=seal(b"x").answer,
    findings=(absent("holder", Grade.REPORTED),),
    not_shown="all else",
)


def records(*facts: Fact) -> list[Recorded]:
    return [Recorded(seq=n, recorded_at=n, fact=fact) for n, fact in enumerate(facts, 1)]


def claimed(grade: Grade = Grade.REPORTED, **changes: object) -> Fact:
    return stated(replace(CLAIM, **changes), source="s", grade=grade)


def seen(grade: Grade = Grade.MEASURED, id: str = "o", **changes: object) -> Fact:
    return observed(replace(OBSERVATION, **changes), source="s", id=id, grade=grade)


def unchecked(value: Observation | Claim, grade: Grade) -> list[Recorded]:
    fact = fact_of(value, source="s", id="x", subject="x", valid_from=0, valid_to=None, grade=grade)
    return records(fact)


def broken(entries: list[Recorded]) -> set[str]:
    return {breach.law for law in LAWS for breach in law.breaches(entries)}


def test_what_was_observed_of_a_named_subject_belongs_in_it():
    found = dossier("genesis-cloud", records(claimed(), seen()), NOW)
    assert found.provider == "Genesis Cloud"
    assert [item.name for item in found.items] == ["c1", "o"]
    other = dossier("genesis-cloud", records(claimed(), seen(subject="AS2")), NOW)
    assert [item.name for item in other.items] == ["c1"]


def test_two_values_of_one_property_are_both_shown():
    (pair,) = dossier("GenesisCloud", records(claimed(), seen()), NOW).contradictions
    assert (pair.first.value, pair.second.outcome) == ("A", "absent")
    assert not pair.same_day


@pytest.mark.parametrize(
    ("value", "unit", "differ"),
    [
        ("B", None, True),
        (" a ", None, False),
        ("A", None, False),
        (None, None, False),
    ],
)
def test_spelling_is_no_contradiction(value: str | None, unit: str | None, differ: bool):
    second = claimed(name="c2", value=value, unit=unit)
    assert bool(dossier("genesiscloud", records(claimed(), second), NOW).contradictions) == differ


@pytest.mark.parametrize(
    ("first", "second", "fit"),
    [
        (("0.30", "USD/h"), ("0.3", "USD/h"), True),
        (("0.30", "USD/h"), ("0.49", "USD/h"), False),
        (("0.30", "USD/h"), ("0.49", "EUR/h"), True),
        (("A, B", None), ("B, A", None), True),
        (("A, B", None), ("A", None), False),
        (("0", "prefixes"), ("none", None), True),
        (("0", "prefixes"), ("3", "prefixes"), False),
    ],
)
def test_which_values_can_both_hold(
    first: tuple[str, str | None], second: tuple[str, str | None], fit: bool
):
    facts = [claimed(name=str(n), value=v, unit=u) for n, (v, u) in enumerate((first, second))]
    one, two = dossier("genesiscloud", records(*facts), NOW).items
    assert compatible(one, two) == compatible(two, one) == fit


def test_no_answer_contradicts_nothing():
    silent = seen(status=404, fault="HTTP 404", findings=(unanswered("holder", Grade.LISTED),))
    found = dossier("genesiscloud", records(claimed(), silent), NOW)
    assert found.contradictions == ()
    assert found.items[1].outcome == "no answer"
    assert any("No answer proves nothing" in sentence for sentence in found.limits)


VALUES = st.one_of(st.none(), st.sampled_from(["0", "1", "1.0", "a", "A", "a, b", "b, a", "no"]))


@given(st.lists(st.tuples(VALUES, st.sampled_from(["x", "y"])), max_size=6))
def test_contradictions_are_symmetric_and_never_of_one_thing_with_itself(
    values: list[tuple[str | None, str]],
):
    facts = [
        claimed(name=str(n), value=value, property=about) for n, (value, about) in enumerate(values)
    ]
    items = dossier("genesiscloud", records(*facts), NOW).items
    found = contradictions(items)
    for pair in found:
        assert pair.first.property == pair.second.property
        assert pair.first.key != pair.second.key
        assert None not in (pair.first.value, pair.second.value)
    assert len(found) == len(contradictions(items[::-1]))


def test_age_counts_from_the_statement_or_where_undated_from_the_day_it_was_read():
    facts = (claimed(stated_on=None), claimed(name="c2", stated_on="2026-01-01", value=None))
    found = dossier("genesiscloud", records(*facts), NOW, 90 * DAY)
    assert [item.name for item in found.stale] == ["c2"]
    assert [item.dated for item in found.items] == [True, False]
    assert len(dossier("genesiscloud", records(*facts), NOW, 20 * DAY).stale) == 2


def test_questions_are_open_until_withdrawn():
    question = asked(
        Question(providers=("Genesis Cloud",), question="Who pays?", asked_on="2026-11-30"),
        source="s",
    )
    assert [q.question for q in open_questions("genesis", records(question))] == []
    assert [q.question for q in open_questions("Genesis-Cloud", records(question))] == ["Who pays?"]
    closed = fact_of(
        Withdrawal(why="known now"),
        source="s",
        id="w",
        subject=question.subject,
        valid_from=0,
        valid_to=None,
        grade=Grade.REPORTED,
        corrects=question.key,
    )
    assert open_questions("Genesis-Cloud", records(question, closed)) == ()


def test_searches_are_told_with_place_and_date():
    search = searched(
        Search(providers=("g",), words="terms", place="the web", searched_on="2026-11-29"),
        source="s",
    )
    found = dossier("g", records(search), NOW)
    assert "2026-11-29  terms, in the web" in dossier_text(found, plain=True)
    assert any("A search that found nothing proves nothing" in each for each in found.limits)


def test_the_forms_say_the_same():
    found = dossier("genesiscloud", records(claimed(), seen()), NOW)
    text = " ".join(dossier_text(found, plain=True).split())
    markdown, document = dossier_markdown(found), dossier_json(found)
    for sentence in found.limits:
        assert sentence in text
        assert sentence in markdown
    assert document["limits"] == list(found.limits)
    assert document["grades"]["measured"] == ["o"]
    assert document["grades"]["reported"] == ["c1", "o"]
    assert document["outcomes"] == {"present": 1, "absent": 1, "no answer": 0}


def test_markup_and_control_characters_do_no_harm():
    fact = claimed(statement="<b>*x*</b>\x1b[31m")
    found = dossier("genesiscloud", records(fact), NOW)
    assert "\x1b" not in dossier_text(found, plain=False)
    assert "\\<b\\>\\*x\\*" in dossier_markdown(found)


@pytest.mark.parametrize("grade", CLAIMED)
def test_a_figure_from_a_claim_keeps_its_grade(grade: Grade):
    (entry,) = claims_in(records(claimed(grade, value="2.5", unit="USD/h")))
    figure = value_sheet(entry, NOW)["value"]
    assert (figure.value, figure.unit, figure.grade) == (Fraction("2.5"), "USD/h", grade)
    assert figure.facts == ("s/claim/c1",)
    compared = replace(entry, claim=replace(entry.claim, comparison=CLEARML_2023.comparison))
    assert {f.grade for f in entry_sheet(compared, NOW).figures.values()} == {grade}


@pytest.mark.parametrize("grade", [Grade.MEASURED, Grade.METERED])
def test_a_claim_never_becomes_a_measurement(grade: Grade):
    assert broken(unchecked(CLAIM, grade)) == {"evidence/claims-stay-claims"}
    assert broken(unchecked(CLAIM, Grade.LISTED)) == set()


def test_a_claim_that_is_not_whole_breaks_a_law():
    assert broken(unchecked(replace(CLAIM, interest="friend"), Grade.REPORTED)) == {
        "evidence/claims-readable"
    }


@pytest.mark.parametrize(
    ("changes", "grade"),
    [
        ({"answer": None, "sha256": None, "size_bytes": None}, Grade.MEASURED),
        ({"status": 404}, Grade.MEASURED),
        ({"fault": "cut short"}, Grade.MEASURED),
        ({"sha256": "0" * 64}, Grade.MEASURED),
        ({"size_bytes": 2}, Grade.MEASURED),
        ({"answer": "?"}, Grade.MEASURED),
        ({"answer": "eA=="}, Grade.MEASURED),
        ({}, Grade.METERED),
        ({"findings": (present("holder", "A", Grade.MEASURED),)}, Grade.MEASURED),
        (
            {
                "findings": (
                    Finding(property="p", outcome="absent", value="3", unit=None, grade="reported"),
                )
            },
            Grade.MEASURED,
        ),
        (
            {
                "findings": (
                    Finding(property="p", outcome="maybe", value=None, unit=None, grade="gold"),
                )
            },
            Grade.MEASURED,
        ),
    ],
    ids=str,
)
def test_an_observation_that_says_more_than_was_answered_breaks_a_law(
    changes: dict[str, object], grade: Grade
):
    assert broken(unchecked(replace(OBSERVATION, **changes), grade)) == {"evidence/observations"}
    assert broken(unchecked(OBSERVATION, Grade.MEASURED)) == set()


def test_version_1_is_still_read():
    assert CLEARML_2023.comparison
    old = ComparisonClaim(
        name="clearml-2023",
        statement=CLEARML_2023.statement,
        said_by="ClearML",
        interest="a partner of the provider",
        stated_on="2023-03-29",
        read_on="2026-11-30",
        work=CLEARML_2023.comparison.work,
        unit="epoch",
        currency="USD",
        offers=CLEARML_2023.comparison.offers,
        not_shown="times",
    )
    fact = fact_of(
        old,
        source="published",
        id="clearml-2023",
        subject="clearml-2023",
        valid_from=0,
        valid_to=None,
        grade=Grade.REPORTED,
    )
    (entry,) = claims_in(records(fact))
    sheet = entry_sheet(entry, NOW)
    assert sheet.number("speed_up") == Fraction("1.325")
    assert sheet["offers.0.price_per_hour"].facts == ("published/clearml-2023",)
    assert broken(records(fact)) == set()
    both = records(fact, claim_fact())
    assert broken(both) == set()
    (kept,) = dossier("genesiscloud", both, NOW).items
    assert kept.key == "published/claim/clearml-2023"


def test_names_of_providers():
    assert provider_key("Genesis Cloud") == provider_key("genesis-cloud") == "genesiscloud"
    assert providers_in(records(claimed())) == {"genesiscloud": "Genesis Cloud"}


def test_an_item_is_ordered_by_what_it_speaks_of():
    late = seen(id="late", asked_us=NOW - 3 * DAY, page_us=NOW - 100 * DAY)
    items: tuple[Item, ...] = dossier("genesiscloud", records(claimed(), late), NOW).items
    assert [item.name for item in items] == ["late", "c1"]
