"""The score of the verdicts: what counts, how sure it is, and that the sets are kept apart."""

from __future__ import annotations

import pytest

from bench.verdicts.cases import DEVELOPMENT, HELD_OUT, Case
from bench.verdicts.page import page
from bench.verdicts.scoring import Outcome, confusion, score, wilson
from ouvrage.metering.timeuse import KEYS


def outcome(expected: str, verdict: str, *, control: bool = False, others: float = 0) -> Outcome:
    case = Case(program="work", expected=expected, why="it is so", control=control)
    return Outcome(
        case=case, verdict=verdict, share=0.5, evidence="seen", times={verdict: 0.5},
        others=others, tries=1,
    )  # fmt: skip


def test_wilson_as_published() -> None:
    # Newcombe (1998), table I: 81 of 263 and 0 of 20
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0, 1)


def test_unknown_is_neither_right_nor_wrong() -> None:
    found = score(
        [outcome("computing", "computing"), outcome("throttled", "unknown"),
         outcome("waiting_cpu", "computing")]
    )  # fmt: skip
    assert (found.right, found.unknown, found.wrong, found.total) == (1, 1, 1, 3)


def test_the_table_counts_each_once() -> None:
    names, told = confusion([outcome("throttled", "unknown"), outcome("computing", "computing")])
    assert names == ["computing", "throttled", "unknown"]
    assert told == {("throttled", "unknown"): 1, ("computing", "computing"): 1}


def test_the_sets_share_nothing_and_hold_every_cause() -> None:
    drawn = {(case.program, case.cause) for case in HELD_OUT}
    assert len(drawn) == len(HELD_OUT)
    assert not drawn & {(case.program, case.cause) for case in DEVELOPMENT}
    scored = [case for case in HELD_OUT if not case.control]
    assert len(scored) >= 40
    assert {case.expected for case in scored} == set(KEYS) - {"unknown"}
    assert {case.expected for case in HELD_OUT if case.control} == {"unknown"}


def test_the_page_counts_controls_and_disturbed_runs_apart() -> None:
    outcomes = [
        outcome("computing", "computing"),
        outcome("computing", "waiting_cpu", others=0.5),
        outcome("unknown", "unknown", control=True),
    ]
    text = page(outcomes, {"`x` with swap 1": "there is no zram device to swap to"})
    assert "1 of 2 right (50 %" in text
    assert "1 of 1 right (100 %" in text
    assert "rightly left unnamed: 1 of 1" in text
    assert "there is no zram device" in text
    assert "found `waiting_cpu`: seen" in text
