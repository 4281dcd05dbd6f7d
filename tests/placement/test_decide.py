"""Plans for worlds small enough to plan by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from ouvrage.model.selling import Placed
from ouvrage.placement.decide import Plan, grant, plan
from ouvrage.placement.explain import explain
from ouvrage.placement.order import aged, spell, standing_of
from ouvrage.placement.snapshot import Hold, Lease, Needs, Node, Policy, Share, Snapshot, Waiting
from tests.placement.worlds import HOUR, MINUTE, NOW, job, node, placed, running

N4 = node("n4", gpus=4, cpus=8)


def _plan(*waiting: Waiting, nodes: tuple[Node, ...] = (N4,), **more: Any) -> Plan:
    return plan(Snapshot(nodes=nodes, waiting=waiting, **more), NOW)


def _started(made: Plan) -> list[str]:
    return [start.job for start in made.starts]


def _code(made: Plan, name: str) -> str:
    return next(why.code for why in made.waits if why.job == name)


def _words(made: Plan, name: str) -> str:
    return next(why.words for why in made.waits if why.job == name)


def test_whole_gpus_and_cores_by_number():
    made = _plan(job("a", gpus=2, cpus=3), job("b", at=1, gpus=2, cpus=5))
    assert [s.placed.devices for s in made.starts] == [("n4-g0", "n4-g1"), ("n4-g2", "n4-g3")]
    assert [s.placed.cpus for s in made.starts] == [(0, 1, 2), (3, 4, 5, 6, 7)]


def test_gpus_of_one_job_are_of_one_model():
    mixed = replace(
        N4, devices=(*N4.devices[:2], *(replace(d, model="H100") for d in N4.devices[2:]))
    )
    made = _plan(job("a", gpus=3), job("b", gpus=2, gpu="NVIDIA H100"), nodes=(mixed,))
    assert _started(made) == ["b"]
    assert made.starts[0].placed.devices == ("n4-g2", "n4-g3")
    assert _words(made, "a") == "asks for 3 GPUs; the most on any one node is 2"


def test_the_fullest_node_is_filled_first_and_cpu_work_goes_where_no_gpu_is():
    nodes = (N4, node("plain", cpus=8), node("n2", gpus=2, cpus=8))
    made = _plan(job("c", cpus=2), job("g", at=1, gpus=1), nodes=nodes)
    assert [s.placed.node for s in made.starts] == ["plain", "n2"]


def test_standing_goes_before_fair_share_and_priority_orders_ones_own():
    shares = (Share(project="p", used_us=9 * HOUR), Share(project="q"))
    waiting = (
        job("q1", project="q", gpus=4, standing=0),
        job("p1", project="p", gpus=4, standing=1),
        job("p2", project="p", gpus=4, standing=1, priority=5, at=9),
    )
    assert _started(_plan(*waiting, shares=shares)) == ["p2"]
    level = tuple(replace(each, standing=0) for each in waiting)
    assert _started(_plan(*level, shares=shares)) == ["q1"]


def test_what_begins_counts_at_once_so_that_projects_take_turns():
    jobs = [job(f"p{n}", project="p", at=n, gpus=1) for n in range(4)]
    jobs += [job(f"q{n}", project="q", at=10 + n, gpus=1) for n in range(4)]
    assert sorted(_started(_plan(*jobs))) == ["p0", "p1", "q0", "q1"]
    double = (Share(project="q", weight=Fraction(3)), Share(project="p"))
    assert sorted(_started(_plan(*jobs, shares=double))) == ["p0", "q0", "q1", "q2"]
    none = (Share(project="p", weight=Fraction(0)),)
    assert sorted(_started(_plan(*jobs, shares=none))) == ["q0", "q1", "q2", "q3"]


def test_a_short_job_goes_before_one_that_cannot_start_yet_and_a_long_one_does_not():
    busy = running("r", placed(N4, devices=2, cpus=1), NOW + HOUR)
    waiting = (
        job("big", at=0, gpus=4),
        job("long", at=1, gpus=1),
        job("short", at=2, gpus=1, time_limit_us=50 * MINUTE),
        job("late", at=3, gpus=1, time_limit_us=60 * MINUTE),
        job("cpu", at=4, cpus=2),
    )
    made = _plan(*waiting, running=(busy,))
    assert _started(made) == ["short", "cpu"]
    assert _code(made, "big") == "placement/waits-gpu"
    assert _code(made, "long") == _code(made, "late") == "placement/behind"
    assert _words(made, "big").endswith("at latest at 1970-02-11T17:00:00.000000Z") is False
    assert "it can start at the latest at 1970-02-11T17:00:00" in _words(made, "big")
    assert _words(made, "long") == "could start, but 1 job is ahead and would have to wait longer"
    told = explain(Snapshot(nodes=(N4,), waiting=waiting, running=(busy,)), "big", NOW)
    assert told is not None
    assert told.latest_us == NOW + HOUR
    assert [(m.resource, m.needed, m.free) for m in told.missing] == [("gpu", 4, 1)]
    assert told.lines()[0].startswith("It waits for 4 GPUs")


def test_with_no_limit_on_what_runs_only_what_the_first_does_not_need_is_used():
    busy = running("r", placed(N4, devices=2, cpus=1), None)
    made = _plan(
        job("big", gpus=4, cpus=4),
        job("short", at=1, gpus=1, time_limit_us=MINUTE),
        job("cores", at=2, cpus=3),
        job("one", at=3, cpus=1),
        running=(busy,),
    )
    assert _started(made) == ["cores"]
    told = explain(
        Snapshot(nodes=(N4,), waiting=(job("big", gpus=4),), running=(busy,)), "big", NOW
    )
    assert told is not None
    assert told.latest_us is None
    assert "no time limit" in told.latest_why


LEASE = Lease(
    lease="L",
    kind="term",
    project="p",
    placed=placed(N4, devices=2, cpus=4, memory=8000),
    until_us=None,
)


def test_a_lease_keeps_its_place_and_its_queue_keeps_its_order():
    inside = running("in", placed(N4, devices=1, cpus=1), None, lease="L")
    made = _plan(
        job("wide", at=0, lease="L", gpus=2),
        job("small", at=1, lease="L", gpus=1),
        job("outside", at=0, gpus=3),
        leases=(LEASE,),
        running=(inside,),
    )
    assert not made.starts
    assert _code(made, "wide") == "placement/lease-busy"
    assert _words(made, "wide") == "waits for 2 GPUs in its lease: 1 free"
    assert _code(made, "small") == "placement/lease-behind"
    assert _words(made, "small") == "waits its turn in its lease: 1 of your jobs is ahead"
    assert _code(made, "outside") == "placement/waits-gpu"
    first = _plan(
        job("wide", at=0, lease="L", gpus=2),
        job("small", at=1, priority=1, lease="L", gpus=1),
        leases=(LEASE,),
    )
    assert [(s.job, s.lease, s.placed.devices) for s in first.starts] == [
        ("small", "L", ("n4-g0",))
    ]


def test_what_can_never_run_in_a_lease_holds_nobody_up():
    made = _plan(
        job("huge", at=0, lease="L", gpus=3),
        job("ready", at=1, lease="L", gpus=1),
        job("lost", lease="M", gpus=1),
        leases=(LEASE,),
    )
    assert _started(made) == ["ready"]
    assert _words(made, "huge") == "asks for 3 GPUs; its lease has 2"
    assert _code(made, "lost") == "placement/lease-gone"
    ended = replace(LEASE, until_us=NOW)
    assert _code(_plan(job("j", lease="L"), leases=(ended,)), "j") == "placement/lease-gone"


def test_an_unlisted_node_keeps_its_leases_and_a_fenced_one_starts_nothing():
    shut = replace(N4, listed=False)
    made = _plan(job("in", lease="L", gpus=1), job("out", gpus=1), nodes=(shut,), leases=(LEASE,))
    assert _started(made) == ["in"]
    assert _code(made, "out") == "placement/unlisted"
    fenced = replace(N4, fenced=True)
    made = _plan(job("in", lease="L", gpus=1), job("out", gpus=1), nodes=(fenced,), leases=(LEASE,))
    assert [why.code for why in made.waits] == ["placement/fenced"] * 2
    device = replace(N4, devices=(replace(N4.devices[0], fenced=True), *N4.devices[1:]))
    made = _plan(job("in", lease="L", gpus=1), job("out", gpus=4), nodes=(device,), leases=(LEASE,))
    assert made.starts[0].placed.devices == ("n4-g1",)
    assert _code(made, "out") == "placement/fenced"


@pytest.mark.parametrize(
    ("waiting", "code"),
    [
        (job("j", needs=Needs(gpus=5)), "placement/never-fits"),
        (job("j", needs=Needs(gpus=1, gpu="H100")), "placement/never-fits"),
        (job("j", needs=Needs(isolation="podman")), "placement/isolation"),
        (job("j", needs=Needs(nodes=("elsewhere",))), "placement/not-here"),
        (job("j", not_on=("n4",)), "placement/failed-everywhere"),
        (job("j", not_before_us=NOW + 1), "placement/paused"),
        (job("j", holds=(Hold(kind="budget", words="spent"),)), "placement/budget"),
        (
            job("j", holds=(Hold(kind="budget", words="x"), Hold(kind="dependency", words="y"))),
            "placement/dependency",
        ),
    ],
)
def test_a_job_that_cannot_start_says_why(waiting: Waiting, code: str):
    assert _code(_plan(waiting), "j") == code


def test_with_no_machine_that_is_the_reason():
    assert _words(_plan(job("j"), nodes=()), "j") == "no machine has been enrolled yet"


def _soft(name: str, first: int, **more: Any):
    where = placed(N4, devices=2, cpus=2, first=2 * first, skip=2 * first)
    return running(name, where, interruptible=True, notice_us=2 * MINUTE, **more)


def test_the_newest_interruptible_work_of_lower_standing_makes_room():
    soft = (_soft("old", 0, started_us=NOW - 5 * HOUR), _soft("new", 1, started_us=NOW - HOUR))
    made = _plan(job("firm", gpus=2, standing=standing_of(interruptible=False)), running=soft)
    assert [(p.attempt, p.for_job, p.notice_us) for p in made.preempt] == [
        ("a-new", "firm", 2 * MINUTE)
    ]
    assert _code(made, "firm") == "placement/notice"
    equal = _plan(job("other", gpus=2, standing=0), running=soft)
    assert not equal.preempt
    own = _plan(job("own", gpus=2, priority=1), running=soft)
    assert [p.attempt for p in own.preempt] == ["a-new"]
    off = _plan(job("firm", gpus=2, standing=1), running=soft, policy=Policy(preemption=False))
    assert not off.preempt


def test_nothing_is_interrupted_twice_nor_where_the_place_is_free_soon_anyway():
    for ends in (None, NOW + 9 * HOUR):
        leaving = (_soft("old", 0), _soft("new", 1, ends=ends, stopping=True))
        made = _plan(job("firm", gpus=2, standing=1), running=leaving)
        assert not made.preempt
        assert made.waits[0].detail["by"] == NOW + 2 * MINUTE + Policy().turnover_us
    soon = (_soft("old", 0, ends=NOW + 4 * MINUTE), _soft("new", 1))
    assert not _plan(job("firm", gpus=2, standing=1), running=soon).preempt


def test_an_interruptible_term_lease_ends_as_a_whole():
    soft = replace(
        LEASE, interruptible=True, notice_us=MINUTE, placed=placed(N4, devices=4, cpus=8)
    )
    inside = running("in", placed(N4, devices=1, cpus=1), None, lease="L", interruptible=True)
    made = _plan(job("firm", gpus=1, standing=1), leases=(soft,), running=(inside,))
    assert [(p.attempt, p.lease) for p in made.preempt] == [(None, "L")]
    told = replace(soft, stopping=True)
    again = _plan(job("firm", gpus=1, standing=1), leases=(told,), running=(inside,))
    assert not again.preempt
    assert again.waits[0].detail["by"] == NOW + MINUTE + Policy().turnover_us


def test_a_lease_is_granted_where_nothing_waiting_needs_the_place():
    snapshot = Snapshot(nodes=(N4,))
    whole = grant(snapshot, Needs(gpus=2, cpus=4), None, NOW)
    assert isinstance(whole, Placed)
    busy = (running("r", placed(N4, devices=2, cpus=1), NOW + HOUR),)
    queued = replace(snapshot, waiting=(job("big", gpus=4),), running=busy)
    refused = grant(queued, Needs(gpus=1), None, NOW)
    assert not isinstance(refused, Placed)
    assert refused.code == "placement/behind"
    short = grant(queued, Needs(gpus=1), NOW + 30 * MINUTE, NOW)
    assert isinstance(short, Placed)
    never = grant(snapshot, Needs(gpus=9), None, NOW)
    assert not isinstance(never, Placed)
    assert never.code == "placement/never-fits"


def test_use_halves_with_age_and_a_spell_is_the_sum_of_its_parts():
    week = 168 * HOUR
    assert aged(1000, 0, week, week) == 500
    assert aged(1000, 0, 2 * week, week) == 250
    whole = spell(1_000_000, 0, 10 * HOUR, 20 * HOUR, week)
    parts = sum(spell(1_000_000, n * HOUR, (n + 1) * HOUR, 20 * HOUR, week) for n in range(10))
    assert abs(whole - parts) <= 10
    assert spell(250_000, 0, HOUR, HOUR, 10**6 * week) == pytest.approx(HOUR / 4, rel=1e-6)
    kept = aged(spell(500_000, 0, HOUR, HOUR, week), HOUR, 30 * HOUR, week)
    assert kept == pytest.approx(spell(500_000, 0, HOUR, 30 * HOUR, week), abs=2)
