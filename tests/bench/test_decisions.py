"""Decisions about simulated owners against the truth of their worlds: a few always, all of them in the soak."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.decisions.page import LEAST, MOST, page
from bench.decisions.scoring import FIGURES, coverage, outcome, outcomes
from bench.verdicts.scoring import wilson
from ouvrage.planning.decide import ACTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "decisions-scored.md"


def test_a_few_owners_are_judged_as_their_truth_is():
    scored = outcomes(range(500, 508), 45, 1)
    held = sum(coverage(scored, figure)[0] for figure in FIGURES)
    assert held >= 0.7 * len(FIGURES) * len(scored)
    assert all(each.decided in ACTIONS and each.lost >= -0.5 for each in scored)
    assert scored[0] == outcome(500, 45)
    told = page({45: scored})
    assert "| best ↓ decided → |" in told
    assert told.count("of 8: **") == len(FIGURES) + 1


def test_the_page_holds_what_it_promises():
    told = PAGE.read_text("utf-8")
    table = told.partition("## How often")[2].partition("## What")[0]
    shares = [float(each) / 100 for each in re.findall(r"\*\*([0-9.]+)%\*\*", table)]
    assert len(shares) == 2 * len(FIGURES)
    assert all(LEAST <= share <= MOST for share in shares)
    assert all(int(each) >= 200 for each in re.findall(r"of ([0-9]+): \*\*", told))


@pytest.mark.soak
@pytest.mark.parametrize("window", [90, 30])
def test_intervals_hold_the_truth_as_often_as_they_say(window: int):
    scored = outcomes(range(1000, 1240), window, 2)
    for figure in FIGURES:
        low, high = wilson(*coverage(scored, figure))
        assert low <= MOST, (figure, low, high)
        assert high >= LEAST, (figure, low, high)
