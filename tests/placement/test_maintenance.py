"""Windows of maintenance to come: what would run into one waits, is told so, and holds up nobody who would not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ouvrage.model.selling import Placed
from ouvrage.placement.decide import grant, plan
from ouvrage.placement.explain import explain
from ouvrage.placement.snapshot import Lease, Needs, Policy, Snapshot, Waiting
from tests.placement.worlds import HOUR, MINUTE, NOW, job, node, placed, running

BEGINS, OVER = NOW + 2 * HOUR, NOW + 3 * HOUR
N4 = node("n4", gpus=4, cpus=8, windows=((BEGINS, OVER),))
ROUND = Policy().turnover_us


def started(snapshot: Snapshot) -> list[str]:
    return [each.job for each in plan(snapshot, NOW).starts]


def test_what_would_run_into_a_window_waits_and_what_would_not_starts() -> None:
    jobs = (
        job("endless", gpus=1),
        job("long", at=1, gpus=1, time_limit_us=2 * HOUR),
        job("fits", at=2, gpus=1, time_limit_us=2 * HOUR - ROUND),
        job("grace", at=3, gpus=1, time_limit_us=2 * HOUR - ROUND, grace_us=1),
    )
    world = Snapshot(nodes=(N4,), waiting=jobs)
    made = plan(world, NOW)
    assert [each.job for each in made.starts] == ["fits"]
    assert {each.code for each in made.waits} == {"placement/maintenance"}
    words = {each.job: each.words for each in made.waits}
    assert words["endless"].startswith("would run into maintenance: it has no time limit, and ")
    assert "its time limit is 2 h" in words["long"]
    assert "1970-02-11T18:00:00" in words["long"]
    assert "or waits until 1970-02-11T19:00:00" in words["long"]


def test_explain_says_when_the_window_is_over_and_on_which_node_it_is() -> None:
    world = Snapshot(nodes=(N4,), waiting=(job("endless", gpus=1),))
    told = explain(world, "endless", NOW)
    assert told is not None
    assert (told.latest_us, told.latest_why) == (
        OVER, "the maintenance that it would run into is over then",
    )  # fmt: skip
    assert told.lines()[0].startswith("It would run into maintenance")
    assert told.as_json(owner=True)["nodes"][0]["maintenance"] == [
        "1970-02-11T18:00:00.000000Z", "1970-02-11T19:00:00.000000Z",
    ]  # fmt: skip
    assert "nodes" not in told.as_json()


def test_a_node_without_a_window_is_taken_and_one_whose_window_is_past_too() -> None:
    waiting = (job("endless", gpus=2),)
    free = node("n9", gpus=2, cpus=8)
    made = plan(Snapshot(nodes=(N4, free), waiting=waiting), NOW)
    assert [each.placed.node for each in made.starts] == ["n9"]
    past = replace(N4, windows=((NOW - HOUR, NOW),))
    assert started(Snapshot(nodes=(past,), waiting=waiting)) == ["endless"]


@pytest.mark.parametrize(("gap", "at"), [(HOUR, OVER), (30 * MINUTE, OVER + 2 * HOUR)])
def test_the_promised_moment_is_after_as_many_windows_as_it_takes(gap: int, at: int) -> None:
    """An hour's work fits between two windows, or does not."""
    windows = ((BEGINS, OVER), (OVER + gap + ROUND, OVER + 2 * HOUR))
    busy = running("r", placed(N4, devices=4, cpus=8), BEGINS - 30 * MINUTE)
    waiting = (job("hour", gpus=1, time_limit_us=HOUR),)
    world = Snapshot(nodes=(replace(N4, windows=windows),), waiting=waiting, running=(busy,))
    (why,) = plan(world, NOW).waits
    assert (why.code, why.detail["by"]) == ("placement/waits-gpu", at)


def test_work_before_the_window_does_not_wait_for_what_waits_for_its_end() -> None:
    """Eight that wait for the end of it keep the node from then on, not until then."""
    endless = [job(f"endless{n}", at=n, gpus=4) for n in range(9)]
    short = [job(f"short{n}", at=20 + n, gpus=2, time_limit_us=HOUR) for n in range(2)]
    assert started(Snapshot(nodes=(N4,), waiting=(*endless, *short))) == ["short0", "short1"]


def test_nobody_is_interrupted_for_what_could_not_start_then() -> None:
    soft = running("r", placed(N4, devices=4, cpus=8), None, interruptible=True)
    firm = job("firm", gpus=4, standing=1)
    assert not plan(Snapshot(nodes=(N4,), waiting=(firm,), running=(soft,)), NOW).preempt
    brief = replace(firm, time_limit_us=HOUR)
    assert plan(Snapshot(nodes=(N4,), waiting=(brief,), running=(soft,)), NOW).preempt


def test_in_a_lease_too_and_what_is_held_there_holds_up_nobody() -> None:
    lease = Lease(
        lease="L", kind="term", project="p", placed=placed(N4, devices=2, cpus=4), until_us=None
    )
    jobs: tuple[Waiting, ...] = (
        job("endless", gpus=1, lease="L"), job("short", at=1, gpus=1, lease="L", time_limit_us=HOUR),
    )  # fmt: skip
    made = plan(Snapshot(nodes=(N4,), leases=(lease,), waiting=jobs), NOW)
    assert [each.job for each in made.starts] == ["short"]
    assert [(each.job, each.code) for each in made.waits] == [("endless", "placement/maintenance")]
    ends = replace(lease, until_us=BEGINS)
    assert started(Snapshot(nodes=(N4,), leases=(ends,), waiting=jobs)) == ["endless", "short"]


def test_a_lease_with_an_end_is_not_promised_through_maintenance() -> None:
    world = Snapshot(nodes=(N4,))
    through = grant(world, Needs(gpus=1), OVER + HOUR, NOW)
    assert not isinstance(through, Placed)
    assert through.code == "placement/maintenance"
    assert through.words
    assert isinstance(grant(world, Needs(gpus=1), BEGINS - ROUND, NOW), Placed)
    assert isinstance(grant(world, Needs(gpus=1), None, NOW), Placed)
