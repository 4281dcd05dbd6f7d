"""The laws of pricing hold, and each of them can fail."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.evidence.figures import Figure, Sheet
from ouvrage.metering.run_view import run_views
from ouvrage.pricing import laws
from ouvrage.pricing.laws import LAWS, cost_breaches
from ouvrage.pricing.unit_cost import sheet_of
from tests.support.runs import AS_OF, CHEAP, busy, end, ends, header, recorded, view_of, written

LEDGER = recorded(written(header(price=CHEAP), *busy(25), ends(5, 10, 15, 20), end(25)))
(VIEW,) = run_views(LEDGER).values()
SHEET = sheet_of(VIEW, AS_OF)


def tampered(path: str, **changes: object) -> Sheet:
    figure = replace(SHEET[path], **changes)
    return replace(SHEET, figures={**SHEET.figures, path: figure})


def test_they_hold() -> None:
    assert [law.breaches(LEDGER) for law in LAWS] == [[] for _ in LAWS]
    assert [law.breaches([]) for law in LAWS] == [[] for _ in LAWS]


@pytest.mark.parametrize(
    "path", ["cost.total", "cost_per_unit.all_in", "cost_per_unit.marginal", "cost_per_unit.high"]
)
def test_a_cost_that_is_not_price_times_time_is_found(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laws, "sheet_of", lambda view, as_of: tampered(path, value=Fraction(1)))
    (breach, *_) = LAWS[1].breaches(LEDGER)
    assert breach.law == "pricing/costs-recompute"


def test_a_cost_without_a_price_is_found() -> None:
    view = view_of(header(), *busy(25), ends(5, 10, 15, 20), end(25))
    assert [path for path, _ in cost_breaches(view, SHEET)] == [
        "cost.total", "cost_per_unit.marginal", "cost_per_unit.all_in",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": ("nowhere",)}, "does not exist"),
        ({"facts": ("source/none",)}, "not in the ledger"),
        ({"inputs": (), "facts": ()}, "stands on nothing"),
        ({"shares": {}}, "do not add up"),
        ({"value": None, "why": None}, "without a reason"),
    ],
)
def test_a_figure_that_does_not_stand_is_found(
    changes: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laws, "sheet_of", lambda view, as_of: tampered("units", **changes))
    found = LAWS[0].breaches(LEDGER)
    assert any(words in breach.found for breach in found)
    assert all(breach.law == "pricing/figures-stand" for breach in found)


def test_a_grade_better_than_its_shares_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    weak: Figure = SHEET["cost.total"]
    better = tampered("units", shares=weak.shares)
    monkeypatch.setattr(laws, "sheet_of", lambda view, as_of: better)
    assert any("not the weakest" in breach.found for breach in LAWS[0].breaches(LEDGER))
