"""Time of a cluster's GPUs by state and cause: each cause where it belongs, and all of it the calendar, to the microsecond."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.time import HOUR
from ouvrage.books.fleet import demand
from ouvrage.books.period import Period
from tests.fleet.fleets import DAY, START, Cluster, at


def test_idle_time_has_its_cause():
    lab = Cluster().node("n1").node("n2").whole()
    lab.job(1, 0, 24, gpus=3)
    lab.event("n2", "DOWN", 0, 6, "no power").event("n2", "IDLE+DRAIN", 6, 12).reserved(
        "n2", 12, 18
    )
    assert lab.hours() == {
        "working": 72,
        "down no power": 24,
        "idle+drain fan": 24,
        "reservation course": 24,
        demand.NOBODY: 24 + 24,
    }


def test_what_is_not_known_whole_is_unknown_and_nothing_before_a_node_stood_there():
    lab = Cluster().node("n1", since=at(12)).whole(18)
    assert lab.hours() == {demand.NOBODY: 24, "unknown": 24}
    lab.node("n1", gpus=0, listed=False, since=at(20))
    assert lab.hours() == {demand.NOBODY: 24, "unknown": 8}


def test_a_waiting_job_that_fits_that_does_not_and_one_held_by_a_rule():
    lab = Cluster().node("n1").whole().job(1, 0, 12, gpus=2, cpus=2)
    assert lab.job(2, None, 6, gpus=1, state="CANCELLED").hours()[demand.NOT_YET] == 12
    lab = Cluster().node("n1").whole().job(1, 0, 12, gpus=2)
    assert lab.job(2, 12, 24, gpus=4).hours()[demand.TOO_FEW] == 24
    lab = Cluster().node("n1").whole().job(1, 0, 12, gpus=2, cpus=16)
    assert lab.job(2, 12, 24, gpus=1).hours()[demand.CORES] == 24
    lab = Cluster().node("n1").whole().job(1, 0, 12, gpus=2, memory_kib=60_000 * 1024)
    assert lab.job(2, 12, 24, gpus=1, asked_kib=8_000 * 1024).hours()[demand.MEMORY] == 24
    lab = Cluster().node("n1").whole().job(1, 0, 12, gpus=2)
    held = lab.job(2, 12, 24, gpus=1, reason="QOSMaxGRESPerUser").hours()
    assert held[f"{demand.HELD}: QOSMaxGRESPerUser"] == 24


def test_a_job_of_several_nodes_needs_them_at_once():
    lab = (
        Cluster()
        .node("n1")
        .node("n2")
        .whole()
        .job(1, 0, 6, "n1", 4)
        .job(2, 6, 12, "n2", 4, submit=6)
    )
    lab.job(3, 12, 13, "n1,n2", 8)
    found = lab.hours()
    assert found[demand.AT_ONCE] == 24 + 24
    assert demand.NOT_YET not in found
    lab.job(4, 14, 15, "n1,n2", 8, submit=13)
    assert lab.hours()[demand.NOT_YET] == 8


def test_who_waits_for_other_nodes_or_for_no_gpu_or_is_not_due_waits_for_none_of_these():
    lab = Cluster().node("n1").whole()
    lab.job(1, None, 24, gpus=1, partition="other", state="CANCELLED")
    lab.job(2, None, 24, gpus=0, state="CANCELLED")
    lab.job(3, 20, 21, gpus=1, eligible_us=at(20))
    lab.job(4, None, 24, gpus=1, state="PENDING", eligible_us=None, reason="Dependency")
    assert lab.hours() == {"working": 1, demand.NOBODY: 95}


def test_more_gpus_than_a_node_has_are_not_made_up():
    lab = Cluster().node("n1", gpus=2).whole().job(1, 0, 12, gpus=2).job(2, 0, 12, gpus=2)
    assert lab.hours() == {"working": 24, demand.NOBODY: 24}


_hour = st.integers(0, 48).map(lambda half: half / 2)
_span = st.tuples(_hour, _hour).map(sorted)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_calendar_is_told_to_the_microsecond(data: st.DataObject):
    lab = Cluster()
    names = [f"n{number}" for number in range(1, data.draw(st.integers(1, 3)) + 1)]
    for name in names:
        lab.node(
            name,
            data.draw(st.integers(0, 4)),
            data.draw(st.sampled_from([("gpu",), ("gpu", "debug"), ()])),
        )
        if data.draw(st.booleans()):
            lab.node(name, data.draw(st.integers(0, 4)), since=at(data.draw(_hour)) + 7)
    if data.draw(st.booleans()):
        lab.whole(data.draw(_hour))
    for number in range(data.draw(st.integers(0, 8))):
        (begins, ends), submit = data.draw(_span), data.draw(_hour)
        nodes = ",".join(
            data.draw(st.lists(st.sampled_from([*names, "elsewhere"]), unique=True, max_size=3))
        )
        started = data.draw(st.booleans())
        lab.job(
            data.draw(st.integers(1, 5)), begins + 1e-7 * number if started else None, ends, nodes or None,
            data.draw(st.sampled_from([None, 0, 1, 2, 3, 8])), submit=submit, cpus=data.draw(st.integers(0, 16)),
            state=data.draw(st.sampled_from(["COMPLETED", "RUNNING", "PENDING", "REQUEUED", "NODE_FAIL"])),
            partition=data.draw(st.sampled_from(["gpu", "debug,gpu", "x"])),
            reason=data.draw(st.sampled_from([None, "AssocGrpGRES", "Dependency"])),
        )  # fmt: skip
    for _ in range(data.draw(st.integers(0, 3))):
        begins, ends = data.draw(_span)
        state = data.draw(st.sampled_from(["DOWN*", "DRAIN", "MIXED+DRAIN", "MAINT"]))
        lab.event(
            data.draw(st.sampled_from(names)),
            state,
            begins,
            data.draw(st.sampled_from([None, ends])),
        )
        if begins < ends:
            lab.reserved(",".join(names), begins, ends)
    cut = data.draw(st.integers(1, 24 * HOUR))
    whole = lab.time()
    first = lab.time(Period(from_us=START, to_us=START + cut, name="x", zone="UTC"))
    rest = lab.time(Period(from_us=START + cut, to_us=DAY.to_us, name="y", zone="UTC"))
    assert first.owned_us + rest.owned_us == whole.owned_us
    for state, us in whole.by_state().items():
        assert first.by_state().get(state, 0) + rest.by_state().get(state, 0) == us


def test_the_order_of_statements_changes_nothing():
    lab = (
        Cluster()
        .node("n1")
        .node("n2")
        .whole()
        .job(1, 0, 6, "n1", 4)
        .job(2, 6, 12, "n2", 4, submit=6)
    )
    lab.job(3, 12, 13, "n1,n2", 8).event("n1", "DRAIN", 13, 20)
    before = lab.time()
    for ours in lab.said.values():
        Random(1).shuffle(ours)
    assert sorted(map(repr, lab.time().spent)) == sorted(map(repr, before.spent))
