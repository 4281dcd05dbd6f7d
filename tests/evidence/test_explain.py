"""From a printed figure back to the ledger."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.evidence.explain import Explanation, exact_text, explanation
from ouvrage.metering.run_view import run_views
from ouvrage.pricing.unit_cost import sheet_of
from tests.support.runs import AS_OF, CHEAP, RUN, SOURCE, busy, end, ends, header, recorded, written

RECORDS = recorded(written(header(price=CHEAP), *busy(100), ends(6, 10, 14, 18, 22), end(100)))
(VIEW,) = run_views(RECORDS).values()
SHEET = sheet_of(VIEW, AS_OF)


def explained(path: str) -> Explanation:
    return explanation(SHEET, path, RECORDS)


def test_a_cost_leads_to_its_price_and_its_marks() -> None:
    assert explained("cost_per_unit.marginal").lines() == [
        "X7X0:cost_per_unit.marginal@2025-12-01T14:40:00.000000Z",
        "  0.000333333333 EUR ? assumed",
        "  how: price x median of the time per unit",
        "  from price.amount",
        "    0.3 EUR/h ? assumed",
        "    how: as typed on the command line",
        f"    fact #1 run.started {SOURCE}/{RUN}/start, measured, recorded 2025-12-01T14:40:00.000000Z",
        "  from seconds_per_unit.median",
        "    4 s ● measured",
        f"    how: {SHEET['seconds_per_unit.median'].method}",
        f"    fact #12 run.marks {SOURCE}/{RUN}/marks/0, measured, recorded 2025-12-01T14:40:00.000000Z",
        f"    fact #14 run.ended {SOURCE}/{RUN}/end, measured, recorded 2025-12-01T14:40:00.000000Z",
    ]


def test_many_facts_are_summed_up_in_text_and_whole_in_json() -> None:
    found = explained("coverage")
    assert any(line.strip() == "fact and 6 more, #6 to #11" for line in found.lines())
    assert [fact["seq"] for fact in found.json()["facts"]] == list(range(2, 12))
    assert found.json()["facts"][0]["kind"] == "run.window"


def test_mixed_grades_show_their_shares() -> None:
    from dataclasses import replace

    from ouvrage.base.grades import Grade

    mixed = replace(
        SHEET["wall_s"],
        grade=Grade.ASSUMED,
        shares={Grade.MEASURED: Fraction(3, 4), Grade.ASSUMED: Fraction(1, 4)},
    )
    found = explanation(replace(SHEET, figures={"wall_s": mixed}), "wall_s", RECORDS)
    assert found.lines(plain=True)[1] == "  100 s (assumed: 75.0 % measured, 25.0 % assumed)"
    assert found.json()["grade_shares"] == {"measured": 0.75, "assumed": 0.25}


def test_an_unknown_value_says_why() -> None:
    found = explained("energy_j")
    assert "  unknown" in found.lines()
    assert found.lines()[-1].startswith("  unknown, because: ")
    assert found.json()["value"] is None


def test_a_fact_that_is_missing_is_said() -> None:
    found = explanation(SHEET, "price.amount", RECORDS[1:])
    assert found.missing == (f"{SOURCE}/{RUN}/start",)
    assert found.lines()[-1].endswith("is not in the ledger")


@pytest.mark.parametrize(
    ("path", "near"),
    [("cost_per_unit.margin", "cost_per_unit.marginal"), ("median", "seconds_per_unit.median")],
)
def test_a_path_that_does_not_exist_is_refused_with_near_ones(path: str, near: str) -> None:
    with pytest.raises(OuvrageError) as refused:
        explained(path)
    assert refused.value.code == "figure/unknown"
    assert near in (refused.value.hint or "")


@pytest.mark.parametrize("path", list(SHEET.figures))
def test_every_figure_is_explained_down_to_facts(path: str) -> None:
    found = explained(path)
    json.dumps(found.json(), allow_nan=False)
    assert found.json()["value"] == exact_text(SHEET[path])
    assert found.missing == ()
    assert all(line.isprintable() for line in found.lines())
    if SHEET[path].value is not None:
        assert _facts(found)


def _facts(found: Explanation) -> int:
    return len(found.facts) + sum(_facts(part) for part in found.inputs)
