"""Blocks of days drawn again: what an interval is made of, and that it is the same every time."""

from __future__ import annotations

import pytest

from ouvrage.planning.chance import Chance
from ouvrage.planning.intervals import STUDENT_95, draw


def test_splitmix64_as_published():
    # The first values for seed 0 and 1234567 in the reference implementation of SplitMix64
    chance = Chance(0)
    assert [chance.bits() for _ in range(2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    assert Chance(1234567).bits() == 6457827717110365317


def test_draws_follow_from_the_words_alone_and_are_even():
    assert [Chance.of("a").unit() for _ in range(2)] == [Chance.of("a").unit()] * 2
    assert Chance.of("a").bits() != Chance.of("b").bits()
    chance = Chance(5)
    counts = [0] * 7
    for _ in range(7000):
        counts[chance.below(7)] += 1
    assert all(850 < count < 1150 for count in counts)
    waits = [chance.exponential(3.0) for _ in range(5000)]
    assert sum(waits) / len(waits) == pytest.approx(3.0, rel=0.06)


def test_days_that_are_all_alike_have_no_width():
    found = draw([[2.0, 4.0]] * 30, Chance(1)).range(lambda row: row[1] / row[0])
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)


def test_an_interval_is_about_as_wide_as_the_theory_of_independent_days_says():
    # With blocks of one day the bootstrap of a mean has the spread s / sqrt(n)
    chance = Chance(3)
    days = [[chance.unit()] for _ in range(400)]
    found = draw(days, Chance(4), block=1).range(lambda row: row[0])
    mean = sum(day[0] for day in days) / 400
    spread = (sum((day[0] - mean) ** 2 for day in days) / 400 / 400) ** 0.5
    assert found.value == pytest.approx(mean)
    assert found.high - found.low == pytest.approx(2 * 1.697 * spread, rel=0.1)


def test_days_that_hang_together_make_it_wider():
    days = [[float(index // 7 % 2)] for index in range(84)]
    together = draw(days, Chance(1)).range(lambda row: row[0])
    apart = draw(days, Chance(1), block=1).range(lambda row: row[0])
    assert together.high - together.low > 1.6 * (apart.high - apart.low)


def test_few_blocks_widen_by_students_quantile():
    days = [[float(index)] for index in range(28)]
    assert draw(days, Chance(1)).widen == pytest.approx((4 / 3) ** 0.5 * STUDENT_95[2] / 1.645)
    assert draw(days[:14], Chance(1)).widen == pytest.approx(2**0.5 * STUDENT_95[0] / 1.645)
