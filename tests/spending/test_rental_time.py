"""The time of a rental divides exactly, whatever ran on it, and alarms follow from it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.metering.rental_view import RentalView, Stay, rental_time, rental_views
from ouvrage.metering.run_view import run_views
from ouvrage.pricing.alarms import HANG_LEAST_US, LiveRun, alarms_due
from ouvrage.pricing.spending_laws import SPENDING_LAWS
from tests.support.attempts import SECOND, in_ledger, rental_facts, run_facts
from tests.support.facts import OTHER
from tests.support.spools import STARTED, run_id


def _stays(*spans: tuple[int, int]) -> list[Stay]:
    return [Stay(run=str(n), from_us=a, to_us=b) for n, (a, b) in enumerate(spans)]


@pytest.mark.parametrize(
    ("spans", "working", "before", "between", "after"),
    [
        ((), 0, 100, 0, 0),
        (((20, 50),), 30, 20, 0, 50),
        (((0, 100),), 100, 0, 0, 0),
        (((-50, 20), (80, 200)), 40, 0, 60, 0),
        (((10, 30), (20, 50)), 40, 10, 0, 50),
        (((10, 20), (60, 70)), 20, 10, 40, 30),
        (((200, 300),), 0, 100, 0, 0),
    ],
)
def test_paid_time_is_working_or_held(
    spans: tuple[tuple[int, int], ...], working: int, before: int, between: int, after: int
):
    time = rental_time(0, 100, _stays(*spans))
    assert (time.working_us, time.before_us, time.between_us, time.after_us) == (
        working,
        before,
        between,
        after,
    )


def test_runs_at_once_share_the_time_that_they_overlap():
    time = rental_time(0, 100, _stays((0, 30), (20, 60), (20, 30)))
    assert time.shares == {
        "0": 20 + Fraction(10, 3),
        "1": 30 + Fraction(10, 3),
        "2": Fraction(10, 3),
    }


_SPANS = st.lists(st.tuples(st.integers(-50, 150), st.integers(-50, 150)).map(sorted), max_size=8)


@given(_SPANS, st.integers(0, 60), st.integers(0, 60))
def test_nothing_of_the_paid_time_is_lost(spans: list[list[int]], start: int, length: int):
    time = rental_time(start, start + length, _stays(*((a, b) for a, b in spans)))
    assert time.working_us + time.held_us == time.paid_us == length
    assert sum(time.shares.values(), Fraction(0)) == time.working_us
    assert min(time.working_us, time.before_us, time.between_us, time.after_us) >= 0
    ticks = {t for a, b in spans for t in range(max(a, start), min(b, start + length))}
    assert time.working_us == len(ticks)


def test_a_rental_holds_its_machines_runs_and_those_added():
    records = in_ledger(
        rental_facts(1, 0, 100), rental_facts(2, 0, 100, machine=None, runs=(1,)), run_facts(1, 10)
    )
    (run,) = run_views(records).values()
    first, second = rental_views(records).values()
    assert first.holds(run.run, run.source)
    assert not first.holds(run.run, OTHER)
    assert second.holds(run.run, OTHER)
    assert not second.holds(run_id(2), run.source)


def test_the_law_finds_a_rental_that_ends_before_it_begins():
    law = next(law for law in SPENDING_LAWS if law.name == "pricing/rental-adds-up")
    assert not law.breaches(in_ledger(rental_facts(1, 0, 100), run_facts(1, 10)))
    assert law.breaches(in_ledger(rental_facts(1, 100, 0)))


# Alarms

NOW = STARTED + 3600 * SECOND
IDLE = 900 * SECOND


def _rental(end_s: int | None = None) -> RentalView:
    return next(iter(rental_views(in_ledger(rental_facts(1, 0, end_s))).values()))


def _live(last_s: int | None, median_s: int | None) -> LiveRun:
    return LiveRun(
        run=run_id(1),
        code="R7K2",
        unit="epoch",
        last_unit_us=None if last_s is None else STARTED + last_s * SECOND,
        median_us=None if median_s is None else Fraction(median_s * SECOND),
    )


def _due(view: RentalView, ends: list[int], live: list[LiveRun], now: int = NOW) -> list[str]:
    past = [STARTED + end * SECOND for end in ends]
    found = alarms_due(view, past, live, now, idle_us=IDLE, hang_factor=Fraction(10))
    return [f"{alarm.sort} {(alarm.since_us - STARTED) // SECOND}" for alarm in found]


@pytest.mark.parametrize(
    ("ends", "live", "due"),
    [
        ([], [], ["idle 0"]),
        ([100, 2000], [], ["ended 2000"]),
        ([2701], [], []),
        ([2700], [], ["ended 2700"]),
        ([], [_live(3000, 50)], ["hang 3000"]),
        ([], [_live(3100, 50)], []),
        ([], [_live(3545, 1)], []),  # 55 s: a meter hands on late
        ([], [_live(3539, 1)], ["hang 3539"]),
        ([], [_live(None, None)], []),  # nothing is known, so nothing is said
        ([100], [_live(None, None)], []),
    ],
)
def test_what_must_be_told(ends: list[int], live: list[LiveRun], due: list[str]):
    assert _due(_rental(), ends, live) == due


def test_nothing_is_told_about_a_machine_that_was_given_back():
    assert _due(_rental(end_s=1000), [100], []) == []
    assert _due(_rental(end_s=4000), [100], []) == ["ended 100"]


def test_the_same_trouble_is_the_same_alarm():
    def ids(now: int, last: int) -> str:
        (alarm,) = alarms_due(
            _rental(), [], [_live(last, 5)], now, idle_us=IDLE, hang_factor=Fraction(10)
        )
        return alarm.id

    assert ids(NOW, 3000) == ids(NOW + 50 * SECOND, 3000)
    assert ids(NOW, 3000) != ids(NOW, 3001)
    assert HANG_LEAST_US == 60 * SECOND


def test_a_rental_is_as_good_as_the_word_of_whoever_states_it():
    assert _rental().grade is Grade.REPORTED
