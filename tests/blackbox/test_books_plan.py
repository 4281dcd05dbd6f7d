"""From an empty home to a month held against its plan, in two versions, exactly."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.blackbox.test_reconcile_close import OCTOBER, SET_UP
from tests.feeds.vast import one_machine

PLAN = (
    "own",
    "plan",
    "2025-10",
    "--of",
    "site:garage",
    "--sell",
    "vast=1200@0.30",
    "--cost",
    "electricity=150",
)


@pytest.fixture
def october(ouvrage: Home, tmp_path: Path) -> Home:
    """A machine with a month of earnings, sold all the time."""
    (tmp_path / "october.json").write_text(
        one_machine(dict.fromkeys(OCTOBER, (11.7, 0.1, 0.0, 0.0)))
    )
    for words in (
        SET_UP,
        ("import", "vast-earnings", "october.json", "--machine", "35798=node-3"),
        ("own", "state", "node:node-3", "working", "--channel", "vast", "--from", "2025-10-01", "--to", "2025-11-01"),
    ):  # fmt: skip
        done = ouvrage.inside(*words)
        assert done.code == 0, done.out + done.err
    return ouvrage


def test_a_month_is_held_against_its_plan_and_the_parts_add_up(october: Home):
    said = october.inside(*PLAN, "--cost", "fee=54")
    assert said.first == (
        "plan of site:garage for 2025-10, version 1: 1200.0 h sold bring 360.00 USD; less 204.00 of costs, "
        "156.00 are left: recorded."
    )
    done = october.inside("books", "pnl", "--month", "2025-10")
    assert re.search(
        r"  plan      [+-]\d+\.\d\d against the plan of site:garage \(version 1 ○\): price [+-]\d+\.\d\d · "
        r"volume \+\d+\.\d\d · mix 0 · efficiency [+-]\d+\.\d\d · fixed 0",
        done.out,
    ), done.out
    assert "not in the plan, and not compared: depreciation 100.00" in done.out
    (plan,) = october.inside("books", "pnl", "--month", "2025-10", "--json").json["plans"]
    parts = {name: Fraction(value) for name, value in plan["parts"].items()}
    assert sum(parts.values()) == Fraction(plan["difference"])
    assert parts["price"] == Fraction("365.8") - 1488 * Fraction("0.30")
    assert not set(october.inside("books", "pnl", "--month", "2025-10", "--plain").out) & set(
        "●◐○◌"
    )


def test_a_plan_said_again_is_its_next_version_and_the_old_one_stays_in_the_ledger(october: Home):
    assert october.inside(*PLAN).code == 0
    facts = october.facts()
    assert october.inside(*PLAN).first.endswith("said before.")
    assert october.facts() == facts
    again = october.inside(*PLAN, "--cost", "rent=45", "--json").json
    assert (again["version"], again["result"]) == (2, "corrected")
    assert "version 2, 1200.0 h sold until 2025-11-01" in october.inside("own", "show").out
    first = october.inside("own", "withdraw", "plan/site:garage/2025-10", "--why", "a guess")
    assert first.code == 0, first.err
    found = october.inside("books", "pnl", "--month", "2025-10", "--json").json
    assert found["plans"] == []
    assert october.inside(*PLAN, "--json").json["version"] == 3
    assert "nothing broken" in october.inside("verify").first


def test_nodes_have_plans_of_their_own_and_a_year_counts_by_its_time(october: Home):
    assert october.inside(*PLAN).code == 0
    year = (
        "own",
        "plan",
        "2025",
        "--of",
        "node:node-3",
        "--sell",
        "8760@0.25",
        "--cost",
        "electricity=1460",
    )
    assert october.inside(*year).code == 0
    site, node = october.inside("books", "pnl", "--month", "2025-10", "--json").json["plans"]
    assert (site["about"], node["about"]) == ("site:garage", "node:node-3")
    assert Fraction(node["planned"]) == 744 * Fraction("0.25") - 124
    assert (site["whole_period"], node["whole_period"]) == (True, False)
    whole = october.inside("books", "pnl", "--by", "site", "--month", "2025-10").out
    assert "node:node-3" not in whole
    assert "in proportion to its time" in october.inside("books", "pnl", "--month", "2025-10").out


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--sell", "vast=many@1"), "own/amount"),
        (("--sell", "500"), "own/plan"),
        (("--sell", "vast=1@0.30"), "own/plan"),
        (("--cost", "electric=3"), "own/plan"),
        (("--cost", "rent=3", "--cost", "rent=4"), "own/plan"),
        (("--cost", "rent=3 EUR"), "own/amount"),
        (("--of", "channel:vast"), "own/about"),
    ],
)
def test_what_is_no_plan_is_refused(october: Home, more: tuple[str, ...], code: str):
    facts = october.facts()
    done = october.inside(*PLAN, *more)
    assert done.code == 2
    assert f"error[{code}]" in done.err
    assert "hint:" in done.err
    assert october.facts() == facts


def test_a_statement_as_json_is_one_value(october: Home):
    assert october.inside(*PLAN).code == 0
    assert json.loads(october.inside("books", "pnl", "--json").out)["plans"]
