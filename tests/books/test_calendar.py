"""The calendar: exact tiling, what counts where statements overlap, and what corrections touch."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.books.calendar import calendar, hours_by_state, leases_of
from ouvrage.books.laws import calendar_breaches
from ouvrage.books.record import owner_record
from ouvrage.model.health import StateMove
from ouvrage.model.occupancy import STATES, DeviceState
from ouvrage.model.records import Withdrawal
from ouvrage.model.sites import DevicePlaced, Node
from tests.books.owner import DAY, HOUR, Owner, day

BEGIN = day("2026-02-01")


def states(owner: Owner, device: str = "n1-gpu0", name: str = "2026-02-01"):
    """(state, hours, cause) of each stretch of a day."""
    found = calendar(owner.record, device, owner.period(name))
    return [(s.state, s.us / HOUR, s.cause) for s in found]


def hours(owner: Owner, device: str = "n1-gpu0", name: str = "2026-02-01"):
    found = hours_by_state(calendar(owner.record, device, owner.period(name)))
    return {state: us / HOUR for state, us in found.items() if us}


def test_the_first_in_order_counts_and_the_rest_is_set_aside():
    owner = Owner().sets_up()
    keys = [owner.state(state, BEGIN, BEGIN + DAY) for state in reversed(STATES)]
    (only,) = calendar(owner.record, "n1-gpu0", owner.period("2026-02-01"))
    assert only.state == "down"
    assert only.facts == (keys[-1],)
    assert set(only.set_aside) == set(keys[:-1])


def test_of_two_that_say_the_same_the_better_grade_counts_then_the_later():
    owner = Owner().sets_up()
    owner.state("free", BEGIN, BEGIN + DAY, Grade.REPORTED, cause="somebody says")
    owner.state("free", BEGIN, BEGIN + DAY, Grade.MEASURED, cause="we saw it")
    owner.state("free", BEGIN + HOUR, BEGIN + DAY, Grade.MEASURED, cause="we saw it again")
    assert states(owner) == [("free", 1, "we saw it"), ("free", 23, "we saw it again")]


def test_time_of_which_no_fact_says_anything_is_unknown_with_that_cause():
    owner = Owner().sets_up()
    owner.state("working", BEGIN + 2 * HOUR, BEGIN + 3 * HOUR)
    assert states(owner) == [
        ("unknown", 2, "no fact says"), ("working", 1, ""), ("unknown", 21, "no fact says"),
    ]  # fmt: skip


def test_a_lease_holds_its_devices_where_nothing_says_that_they_work():
    owner = Owner().sets_up(2)
    owner.leases("l", BEGIN, BEGIN + 10 * HOUR, count=1)
    owner.state("working", BEGIN + HOUR, BEGIN + 4 * HOUR, count=1)
    assert hours(owner) == {"held": 7, "working": 3, "unknown": 14}
    assert hours(owner, "n1-gpu1") == {"unknown": 24}


def test_counts_take_the_lowest_slots_and_leave_the_rest_to_other_counts():
    owner = Owner().sets_up(4)
    owner.state("working", BEGIN, BEGIN + DAY, count=3, channel="vast")
    owner.state("free", BEGIN, BEGIN + DAY, count=1)
    assert [hours(owner, f"n1-gpu{i}") for i in range(4)] == [{"working": 24}] * 3 + [{"free": 24}]


def test_counts_go_round_a_device_that_is_named_as_down():
    owner = Owner().sets_up(3)
    owner.state("down", BEGIN, BEGIN + DAY, device="n1-gpu0", cause="xid 79")
    owner.state("working", BEGIN, BEGIN + DAY, count=2)
    assert [hours(owner, f"n1-gpu{i}") for i in range(3)] == [
        {"down": 24},
        {"working": 24},
        {"working": 24},
    ]


def test_the_same_count_said_twice_is_one_statement_and_those_of_two_leases_add_up():
    owner = Owner().sets_up(4)
    for _ in range(2):
        owner.state("working", BEGIN, BEGIN + DAY, count=1, channel="vast", lease="a")
    owner.state("working", BEGIN, BEGIN + DAY, count=2, channel="vast", lease="b")
    worked = [hours(owner, f"n1-gpu{i}").get("working", 0) for i in range(4)]
    assert worked == [24, 24, 24, 0]


def test_a_lease_keeps_its_devices_when_another_one_ends():
    owner = Owner().sets_up(2)
    owner.leases("first", BEGIN, BEGIN + 5 * HOUR)
    owner.leases("second", BEGIN + HOUR, BEGIN + 20 * HOUR, tenant="ben")
    found = calendar(owner.record, "n1-gpu1", owner.period("2026-02-01"))
    assert [(s.lease, s.us / HOUR) for s in found] == [(None, 1), ("second", 19), (None, 4)]


def test_more_leases_than_devices_are_told_and_not_counted_twice():
    owner = Owner().sets_up(1)
    owner.leases("a", BEGIN, BEGIN + 5 * HOUR)
    owner.leases("b", BEGIN + HOUR, BEGIN + 3 * HOUR, tenant="ben")
    homeless = leases_of(owner.record, "n1", owner.period("2026-02-01")).homeless
    assert [each.value.lease for each in homeless] == ["b"]
    assert hours(owner) == {"held": 5, "unknown": 19}


def test_a_device_is_owned_from_its_placing_to_its_removal_and_a_slot_holds_one():
    owner = Owner()
    owner.sets_up(0)
    placed = DevicePlaced(device="old", node="n1", model=None, slot=0)
    owner.says(placed, BEGIN + 2 * HOUR)
    owner.says(DevicePlaced(device="new", node="n1", model=None, slot=0), BEGIN + 10 * HOUR)
    owner.state("free", BEGIN, BEGIN + DAY)
    assert hours(owner, "old") == {"free": 8}
    assert hours(owner, "new") == {"free": 14}


def test_a_device_that_moves_is_in_one_machine_at_a_time():
    owner = Owner().sets_up(1).sets_up(0, node="n2")
    owner.says(DevicePlaced(device="n1-gpu0", node="n2", model=None, slot=None), BEGIN + 6 * HOUR)
    owner.state("working", BEGIN, BEGIN + DAY, node="n1")
    owner.state("down", BEGIN, BEGIN + DAY, node="n2")
    assert states(owner) == [("working", 6, ""), ("down", 18, "")]


def test_outside_the_service_of_its_machine_a_device_is_not_counted():
    owner = Owner()
    owner.sets_up(0)
    owner.said.pop()
    owner.says(Node(node="n1", site="s"), BEGIN + 4 * HOUR, BEGIN + 8 * HOUR)
    owner.says(DevicePlaced(device="d", node="n1", model=None, slot=None))
    assert hours(owner, "d") == {"unknown": 4}


@pytest.mark.parametrize(
    ("name", "length"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-03", 743)]
)
def test_days_and_months_are_as_long_as_the_clocks_of_the_zone_make_them(name, length):
    owner = Owner(zone="Europe/Paris").sets_up()
    assert hours(owner, name=name) == {"unknown": length}


def test_a_corrected_fact_changes_only_the_stretches_that_name_it():
    owner = Owner().sets_up()
    wrong = owner.state("working", BEGIN, BEGIN + 8 * HOUR)
    owner.state("free", BEGIN + 8 * HOUR, BEGIN + DAY)
    before = calendar(owner.record, "n1-gpu0", owner.period("2026-02-01"))
    state = DeviceState(device=None, node="n1", count=None, state="down", cause="late news", channel=None,
                        tenant=None, lease=None)  # fmt: skip
    owner.says(state, BEGIN, BEGIN + 8 * HOUR, corrects=wrong)
    after = calendar(owner.record, "n1-gpu0", owner.period("2026-02-01"))
    assert [s.state for s in after] == ["down", "free"]
    assert after[1] == before[1]
    owner.says(Withdrawal(why="it did work"), BEGIN, corrects=owner.said[-1].fact.key)
    assert calendar(owner.record, "n1-gpu0", owner.period("2026-02-01")) == before


@st.composite
def owners(draw: st.DrawFn) -> Owner:
    """A machine of up to four GPUs with anything said about it, sense or not."""
    owner = Owner(zone=draw(st.sampled_from(("UTC", "Europe/Paris", "America/New_York"))))
    owner.sets_up(draw(st.integers(1, 4)))
    hour = st.integers(-30, 60)
    for _ in range(draw(st.integers(0, 10))):
        begins = BEGIN + draw(hour) * HOUR
        ends = begins + draw(st.integers(1, 40)) * HOUR
        if draw(st.integers(0, 3)) == 0:
            owner.leases(f"l{draw(st.integers(0, 3))}", begins, ends, count=draw(st.integers(1, 3)))
        else:
            device = draw(st.sampled_from((None, None, "n1-gpu0", "n1-gpu9")))
            owner.state(
                draw(st.sampled_from(STATES)), begins, ends,
                draw(st.sampled_from((Grade.MEASURED, Grade.METERED, Grade.REPORTED))),
                device=device, node=None if device else "n1",
                count=None if device else draw(st.sampled_from((None, 1, 2, 3))),
                channel=draw(st.sampled_from((None, "vast"))),
            )  # fmt: skip
    return owner


@settings(max_examples=100, deadline=None)
@given(owners(), st.randoms(use_true_random=False))
def test_whatever_is_said_the_states_tile_the_calendar_in_any_order_of_arrival(owner, random):
    period = owner.period("2026-02-01..2026-02-03")
    shuffled = list(owner.said)
    random.shuffle(shuffled)
    record, again = owner.record, owner_record(shuffled)
    for device in {each.value.device for each in record.devices}:
        assert not list(calendar_breaches(record, device, period))
        found = calendar(record, device, period)
        assert found[0].from_us == period.from_us
        assert found[-1].to_us == period.to_us
        assert all(a.to_us == b.from_us for a, b in pairwise(found))
        assert calendar(again, device, period) == found


@settings(max_examples=40, deadline=None)
@given(owners(), st.integers(1, 47))
def test_two_parts_of_a_period_have_the_hours_of_the_whole(owner, cut):
    whole = owner.period("2026-02-01..2026-02-03")
    middle = whole.from_us + cut * HOUR
    later = type(whole)(from_us=middle, to_us=whole.to_us, name="later", zone=whole.zone)
    for device in {each.value.device for each in owner.record.devices}:
        parts = [
            hours_by_state(calendar(owner.record, device, part))
            for part in (whole.until(middle), later)
        ]
        together = {state: parts[0][state] + parts[1][state] for state in parts[0]}
        assert together == hours_by_state(calendar(owner.record, device, whole))


def test_what_is_said_of_a_device_stays_with_it_and_does_not_fall_on_its_successor():
    owner = Owner()
    owner.sets_up(0)
    owner.says(DevicePlaced(device="old", node="n1", model=None, slot=0), BEGIN)
    owner.says(DevicePlaced(device="new", node="n1", model=None, slot=0), BEGIN + 10 * HOUR)
    owner.state("down", BEGIN, BEGIN + DAY, device="old")
    owner.state("working", BEGIN, BEGIN + DAY, count=1)
    assert hours(owner, "old") == {"down": 10}
    assert hours(owner, "new") == {"working": 14}


def test_a_count_goes_to_the_devices_that_stand_there():
    owner = Owner()
    owner.sets_up(0)
    owner.says(DevicePlaced(device="a", node="n1", model=None, slot=0), BEGIN, BEGIN + 6 * HOUR)
    owner.says(DevicePlaced(device="b", node="n1", model=None, slot=1), BEGIN)
    owner.state("working", BEGIN, BEGIN + DAY, count=1)
    assert hours(owner, "a") == {"working": 6}
    assert hours(owner, "b") == {"unknown": 6, "working": 18}


def test_what_was_fenced_is_down_until_it_is_found_well_with_its_reason():
    owner = Owner().sets_up(2)
    owner.state("working", BEGIN, BEGIN + DAY, Grade.MEASURED)
    path = (
        ("unknown", "fenced", 2, "xid is CRITICAL (xid-95)"),
        ("fenced", "draining", 2, "what runs there may end"),
        ("draining", "repairing", 5, "gpu_reset: the first rung"),
        ("repairing", "verifying", 6, "gpu_reset was done"),
        ("verifying", "healthy", 7, "every check finds it well"),
    )
    for epoch, (before, after, at, why) in reversed(list(enumerate(path, 1))):
        owner.says(
            StateMove(
                node="n1", device="n1-gpu0", from_state=before, to_state=after, actor="automation",
                reason=why, evidence=("f",), epoch=epoch,
            ),
            from_us=BEGIN + at * HOUR, to_us=BEGIN + at * HOUR,
        )  # fmt: skip
    assert states(owner) == [
        ("working", 2, ""), ("down", 5, "xid is CRITICAL (xid-95)"), ("working", 17, "")
    ]  # fmt: skip
    assert hours(owner, "n1-gpu1") == {"working": 24}


def test_a_window_of_maintenance_is_of_every_device_and_lasts_until_it_ended():
    owner = Owner().sets_up(2)
    owner.says(
        StateMove(
            node="n1", device=None, from_state="healthy", to_state="maintenance", actor="sam",
            reason="maintenance: new fans", evidence=(), epoch=1,
        ),
        from_us=BEGIN + 20 * HOUR, to_us=BEGIN + 20 * HOUR,
    )  # fmt: skip
    for device in ("n1-gpu0", "n1-gpu1"):
        assert hours(owner, device)["maintenance"] == 4
