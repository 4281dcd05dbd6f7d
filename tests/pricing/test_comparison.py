"""Comparisons: which is cheaper, when that cannot be told, and how both are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ouvrage.base.errors import OuvrageError
from ouvrage.evidence.laws import sheet_breaches
from ouvrage.evidence.published import CLEARML_2023
from ouvrage.metering.run_view import RunView
from ouvrage.pricing.comparison import Comparison, compare
from ouvrage.pricing.unit_cost import sheet_of
from tests.pricing.cases import optimised, spread, standard
from tests.support.runs import AS_OF, CHEAP, DEAR, OTHER_RUN, RUN, busy, end, ends, header, view_of

GOLDEN = Path(__file__).with_name("golden")


def side_by_side(*views: RunView, claim: bool = False) -> Comparison:
    pairs = [(view, sheet_of(view, AS_OF)) for view in views]
    return compare(pairs, CLEARML_2023 if claim else None)


def run(*seconds: float, **changes: Any) -> RunView:
    """A run whose units took these seconds, after one that began at an unknown moment."""
    at, moments = 5.0, [5.0]
    for took in seconds:
        at += took
        moments.append(at)
    return view_of(header(**changes), *busy(120), ends(*moments), end(120))


SLOW, FAST = (4.4, 4.41, 4.42, 4.43, 4.44), (3.3, 3.31, 3.32, 3.33, 3.34)


def texts() -> dict[str, Comparison]:
    return {
        "dearer-wins": side_by_side(standard(), optimised(), claim=True),
        "the-other-way-round": side_by_side(optimised(), standard()),
        "not-distinguishable": side_by_side(standard(), spread()),
        "three": side_by_side(standard(), optimised(), spread()),
    }


@pytest.mark.parametrize("name", texts())
@pytest.mark.parametrize("plain", [False, True])
def test_texts(name: str, plain: bool) -> None:
    found = texts()[name].text(plain=plain)
    assert found == (GOLDEN / f"{name}{'-plain' if plain else ''}.txt").read_text()
    assert not plain or found.isascii()


class TestVerdict:
    def test_the_dearer_wins(self) -> None:
        found = side_by_side(run(*SLOW, price=CHEAP), run(*FAST, price=DEAR, run=OTHER_RUN))
        comparison = found.json()["comparison"]
        assert comparison["price_ratio"] == 1.2
        assert comparison["break_even_speed_up"] == 1.2
        assert comparison["speed_up"] == pytest.approx(4.42 / 3.32, abs=1e-6)
        assert comparison["cost_ratio"] == pytest.approx(1.2 * 3.32 / 4.42, abs=1e-6)
        assert comparison["cheaper"] == OTHER_RUN
        assert [one["run"] for one in found.json()["runs"]] == [RUN, OTHER_RUN]
        assert found.lines()[0] == "The dearer host is the better buy: 9.9 % less per epoch."

    def test_the_dearer_loses_and_it_says_so(self) -> None:
        slower = tuple(seconds - 0.4 for seconds in SLOW)
        found = side_by_side(
            run(*SLOW, price=CHEAP, label="a"), run(*slower, price=DEAR, label="b", run=OTHER_RUN)
        )
        assert found.json()["comparison"]["cheaper"] == RUN
        # 1.2 x 4.02 / 4.42 = 1.0914; 1 - 1 / 1.0914 = 8.4 %
        assert found.lines()[0] == "The dearer host loses: a costs 8.4 % less per epoch."

    def test_at_one_price_the_faster_wins(self) -> None:
        found = side_by_side(
            run(*SLOW, price=CHEAP), run(*FAST, price=CHEAP, label="b", run=OTHER_RUN)
        )
        assert found.lines()[0].startswith("b is the better buy at the same price: 24.9 % less")

    def test_prices_per_other_times_are_compared_by_the_hour(self) -> None:
        minute = {"amount": "0.006", "currency": "EUR", "per": "min"}
        found = side_by_side(run(*SLOW, price=CHEAP), run(*FAST, price=minute, run=OTHER_RUN))
        assert found.json()["comparison"]["price_ratio"] == 1.2

    def test_an_interval_that_includes_one_is_no_verdict(self) -> None:
        same = tuple(seconds / 1.2 for seconds in SLOW)
        found = side_by_side(run(*SLOW, price=CHEAP), run(*same, price=DEAR, run=OTHER_RUN))
        comparison = found.json()["comparison"]
        assert comparison["cheaper"] is None
        assert comparison["distinguishable"] is False
        assert comparison["cost_ratio_low"] <= 1 <= comparison["cost_ratio_high"]
        assert found.lines()[0].startswith("Not distinguishable: ")

    def test_medians_that_contradict_the_pairs_are_no_verdict(self) -> None:
        # most of the second's units are faster, yet its median is slower: two sorts of units
        one = (4.0,) * 11 + (5.0,) * 10
        other = (3.0,) * 10 + (4.01,) * 11
        found = side_by_side(run(*one, price=CHEAP), run(*other, price=CHEAP, run=OTHER_RUN))
        comparison = found.json()["comparison"]
        assert comparison["cheaper"] is None
        assert comparison["why_not"].startswith("the medians and the pairwise")
        assert found.lines()[0].startswith("Not distinguishable: the medians")

    def test_too_few_units_are_no_verdict_and_it_says_whose(self) -> None:
        found = side_by_side(
            run(4.4, 4.4, price=CHEAP, label="a"), run(*FAST, price=DEAR, label="b", run=OTHER_RUN)
        )
        assert found.json()["comparison"]["cheaper"] is None
        assert "a has 2 and b has 5" in found.lines()[0]

    def test_one_command_each_is_too_few(self) -> None:
        one = view_of(header(price=CHEAP), *busy(40), end(40))
        other = view_of(header(price=DEAR, run=OTHER_RUN), *busy(20), end(20))
        found = side_by_side(one, other)
        assert found.json()["comparison"]["cheaper"] is None
        assert found.json()["comparison"]["speed_up"] == 2

    def test_without_prices_only_time_is_compared(self) -> None:
        found = side_by_side(run(*SLOW), run(*FAST, label="b", run=OTHER_RUN))
        comparison = found.json()["comparison"]
        assert (comparison["price_ratio"], comparison["cheaper"]) == (None, None)
        assert (
            found.lines()[0]
            == "No verdict on money, since a price is missing; b is 1.33 × as fast."
        )

    def test_a_free_host_has_no_ratio(self) -> None:
        free = {"amount": "0", "currency": "EUR", "per": "h"}
        found = side_by_side(run(*SLOW, price=free), run(*FAST, price=DEAR, run=OTHER_RUN))
        assert found.json()["comparison"]["price_ratio"] is None
        found = side_by_side(run(*SLOW, price=CHEAP), run(*FAST, price=free, run=OTHER_RUN))
        assert found.json()["comparison"]["price_ratio"] == 0
        assert found.json()["comparison"]["cheaper"] == OTHER_RUN
        assert found.text()

    def test_units_that_nobody_timed_are_said(self) -> None:
        failed = view_of(header(price=CHEAP, label="a"), *busy(9), end(9, 1))
        found = side_by_side(failed, run(*FAST, price=DEAR, run=OTHER_RUN))
        assert "no unit could be timed in a" in found.lines()[0]
        assert found.json()["comparison"]["speed_up"] is None


@pytest.mark.parametrize(
    ("views", "code"),
    [
        ((run(*SLOW),), "compare/one-run"),
        ((run(*SLOW), run(*SLOW)), "compare/one-run"),
        ((run(*SLOW), view_of(header(run=OTHER_RUN), *busy(9), end(9))), "compare/unit"),
        (
            (
                run(*SLOW, price=CHEAP),
                run(*FAST, price=CHEAP | {"currency": "USD"}, run=OTHER_RUN),
            ),
            "compare/currency",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(views: tuple[RunView, ...], code: str) -> None:
    with pytest.raises(OuvrageError) as refused:
        side_by_side(*views)
    assert refused.value.code == code
    assert refused.value.hint


def test_of_three_the_first_is_the_measure() -> None:
    third = run(*(4.9, 4.91, 4.92, 4.93, 4.94), price=CHEAP, run="0192f0c1a2b37c4d8e1fb0b1d2d3e4f7")
    found = side_by_side(
        run(*SLOW, price=CHEAP, label="a"), run(*FAST, price=DEAR, label="b", run=OTHER_RUN), third
    )
    comparison = found.json()["comparison"]
    assert comparison["cheaper"] == OTHER_RUN
    assert comparison["price_ratio"] is None
    assert [pair["price_ratio"] for pair in comparison["pairs"]] == [1.2, 1.0]
    assert found.lines()[0] == "b is the best buy: less per epoch than each of the others."


def test_codes_that_clash_are_lengthened() -> None:
    clash = RUN[:-1] + "6"
    found = side_by_side(run(*SLOW, price=CHEAP), run(*FAST, price=DEAR, run=clash))
    first, second = found.sheet.object.split("+")
    assert first != second
    assert len(first) > 4


def test_every_ratio_leads_back_to_figures_and_facts() -> None:
    found = side_by_side(standard(), optimised())
    keys = {
        key for view in (standard(), optimised()) for kind in view.keys.values() for key in kind
    }
    assert list(sheet_breaches(found.sheet, keys)) == []
    assert found.sheet.number("speed_up") == found.sheet.number("W7X0.against_first.speed_up")


def test_the_published_trial_stands_beside_it_as_a_claim() -> None:
    published = side_by_side(standard(), optimised(), claim=True).json()["comparison"]["published"]
    assert published["grade"] == "reported"
    assert [offer["implied_seconds_per_unit"] for offer in published["offers"]] == [127.2, 96.0]
    assert (published["speed_up"], published["break_even_speed_up"]) == (1.325, 1.2)


def test_a_free_host_costs_all_of_it_less() -> None:
    free = run(*SLOW, price={**DEAR, "amount": "0"}, run=OTHER_RUN)
    found = side_by_side(run(*SLOW, price=CHEAP), free)
    assert found.lines()[0].endswith("costs 100.0 % less per epoch.")


def test_a_run_without_any_unit_does_not_name_what_is_compared() -> None:
    nothing = view_of(header(price=CHEAP, run=OTHER_RUN), *busy(5), end(5, 1))
    for pair in ((run(*SLOW, price=CHEAP), nothing), (nothing, run(*SLOW, price=CHEAP))):
        text = side_by_side(*pair).text()
        assert "seconds per epoch" in text
        assert "per command" not in text
