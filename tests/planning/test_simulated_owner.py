"""The simulated owner: the same seed the same facts, all of them marked, and a truth that holds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR
from ouvrage.model.earnings import Earning
from ouvrage.model.meters import EnergyRead
from ouvrage.model.occupancy import DeviceState
from ouvrage.planning.simulated_owner import simulated_owner
from ouvrage.planning.simulated_world import DEMO, GPUS, start_of, truth


def test_the_same_seed_states_the_same_and_all_of_it_is_simulated():
    first, again = simulated_owner(DEMO, 3, days=60), simulated_owner(DEMO, 3, days=60)
    assert [each.id for each in first] == [each.id for each in again]
    assert {each.grade for each in first} == {Grade.SIMULATED}
    assert len({each.natural for each in first}) == len(first)
    other = simulated_owner(DEMO, 4, days=60)
    assert {each.id for each in other} != {each.id for each in first}


def test_every_hour_of_every_gpu_has_one_state_through_changes_of_the_clock():
    stated = simulated_owner(DEMO, 1)
    spans: dict[str, list[tuple[int, int]]] = {}
    for each in stated:
        if isinstance(each.value, DeviceState) and each.valid_to is not None:
            spans.setdefault(each.value.device or "", []).append((each.valid_from, each.valid_to))
    assert len(spans) == GPUS + 1  # one was replaced
    total = sum(end - begin for each in spans.values() for begin, end in each)
    assert total == GPUS * (start_of(365) - start_of(0))
    for each in spans.values():
        each.sort()
        assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(each))


def test_what_was_sold_is_what_was_earned_for_and_what_the_meter_saw():
    stated = simulated_owner(DEMO, 2, days=40)
    working = sum(
        (each.valid_to or 0) - each.valid_from
        for each in stated
        if isinstance(each.value, DeviceState) and each.value.state == "working"
    )
    sold = sum(each.value.sold_us or 0 for each in stated if isinstance(each.value, Earning))
    assert sold == working
    energy = sum(each.value.energy_j for each in stated if isinstance(each.value, EnergyRead))
    owned = GPUS * (start_of(40) - start_of(0)) // HOUR
    hours = working / HOUR
    watt_hours = hours * DEMO.load_w + (owned - hours) * DEMO.idle_w
    assert energy / 3600 == pytest.approx(watt_hours, rel=0.005)


def test_the_truth_of_a_world_without_chance_can_be_reckoned_by_hand():
    still = replace(
        DEMO, anchors=4, leaves_day=400, fails=9, anchor_price=Fraction("0.50"), own_fee=Fraction(0),
        support_per_day=0.0, borrowed=Fraction(0), cut_day=400,
    )  # fmt: skip
    row = truth(still, 59, 90)  # March, with one hour less; two hours of maintenance in it
    hours = 4 * (31 * 24 - 1)
    assert row.owned * 31 == pytest.approx(hours)
    assert row.sold * 31 == pytest.approx(hours - 8)
    assert row.revenue * 31 == pytest.approx((hours - 8) * 0.5)
    kwh = ((hours - 8) * still.load_w + 8 * still.idle_w) / 1000
    assert row.power * 31 == pytest.approx(kwh * 0.21 * 1.08)
    assert row.depreciation * 31 == pytest.approx((2400 + 4 * 1650) / 60)
    assert row.line * 31 == pytest.approx(39)


def test_the_truth_is_what_many_draws_come_to():
    sold = truth(DEMO, 0, 30).sold * 30
    drawn = [
        sum(
            each.value.sold_us or 0
            for each in simulated_owner(DEMO, seed, days=30)
            if isinstance(each.value, Earning)
        )
        / HOUR
        for seed in range(12)
    ]
    mean = sum(drawn) / len(drawn)
    spread = (sum((each - mean) ** 2 for each in drawn) / 11 / 12) ** 0.5
    assert abs(mean - sold) < 4 * spread
