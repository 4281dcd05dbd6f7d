"""Medians, intervals and ratios against tables and against counting."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.metering.statistics import (
    _mann_whitney,
    _median_rank,
    _shift_rank,
    median,
    median_interval,
    ratio_interval,
    thinned,
)


def numbers(*values: int) -> list[Fraction]:
    return [Fraction(value) for value in values]


def test_median() -> None:
    assert median(numbers(3, 1, 2)) == 2
    assert median(numbers(4, 1, 2, 3)) == Fraction(5, 2)
    with pytest.raises(ValueError, match="no median"):
        median([])


@pytest.mark.parametrize(
    ("n", "rank"),
    # Two-sided 95 % ranks of the sign test: Conover, Practical Nonparametric Statistics, table A3.
    [(5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (100, 40)],
)
def test_ranks_of_the_median_interval(n: int, rank: int) -> None:
    assert _median_rank(n) == rank


def test_the_approximation_for_many_values_joins_the_exact_rule() -> None:
    assert _median_rank(1000) == 469
    assert _median_rank(1001) == 469


def test_few_values_give_their_range_with_its_true_confidence() -> None:
    interval = median_interval(numbers(5, 3, 4))
    assert interval is not None
    assert (interval.low, interval.high) == (3, 5)
    assert interval.confidence == Fraction(3, 4)  # 1 - 2/2^3
    assert median_interval(numbers(5)) is None


def test_six_values_reach_95_percent() -> None:
    interval = median_interval(numbers(1, 2, 3, 4, 5, 6))
    assert interval is not None
    assert interval.confidence == Fraction(31, 32)


@pytest.mark.parametrize(
    ("m", "n", "rank"),
    # Critical values of U at two-sided 5 %, plus 1: Mann and Whitney's tables; 0: there is none.
    [
        (3, 3, 0),
        (2, 8, 1),
        (4, 4, 1),
        (5, 5, 3),
        (6, 6, 6),
        (8, 8, 14),
        (10, 10, 24),
        (20, 20, 128),
    ],
)
def test_ranks_of_the_ratio_interval(m: int, n: int, rank: int) -> None:
    assert _shift_rank(m, n) == rank


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 5), (4, 4)])
def test_the_null_distribution_is_what_counting_gives(m: int, n: int) -> None:
    counted = [0] * (m * n + 1)
    for places in combinations(range(m + n), m):
        counted[sum(places) - m * (m - 1) // 2] += 1
    assert _mann_whitney(m, n) == tuple(counted)


def test_the_approximation_is_near_the_exact_rank() -> None:
    assert _shift_rank(25, 25) == 212
    assert _shift_rank(26, 26) == pytest.approx(231, abs=2)  # 230.6 by the exact distribution


def test_ratio_of_samples_that_differ_by_a_factor() -> None:
    interval = ratio_interval(numbers(10, 11, 12, 13), numbers(20, 22, 24, 26))
    assert interval is not None
    assert (interval.low, interval.high) == (Fraction(20, 13), Fraction(26, 10))


def test_too_few_or_not_positive_values_have_no_ratio() -> None:
    assert ratio_interval(numbers(1, 2, 3), numbers(1, 2, 3)) is None
    assert ratio_interval([], numbers(1, 2, 3)) is None
    assert ratio_interval(numbers(0, 2, 3, 4), numbers(1, 2, 3, 4)) is None


def test_many_values_are_thinned_evenly() -> None:
    assert list(thinned(numbers(*range(1000))))[:3] == [0, 5, 10]
    interval = ratio_interval(numbers(*range(1000, 2000)), numbers(*range(2000, 4000)))
    assert interval is not None
    assert "thinned" in interval.method


VALUES = st.lists(st.integers(1, 10**9).map(Fraction), min_size=4, max_size=40)


@given(VALUES)
def test_the_interval_holds_the_median(values: list[Fraction]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert interval.low <= median(values) <= interval.high


@given(VALUES, VALUES)
def test_the_ratio_turned_round_is_its_inverse(
    first: list[Fraction], second: list[Fraction]
) -> None:
    one, other = ratio_interval(first, second), ratio_interval(second, first)
    assert one is not None
    assert other is not None
    assert one.low <= one.high
    assert float(one.low * other.high) == pytest.approx(1)


@given(VALUES)
def test_a_sample_is_not_distinguishable_from_itself(values: list[Fraction]) -> None:
    interval = ratio_interval(values, values)
    assert interval is not None
    assert interval.low <= 1 <= interval.high
