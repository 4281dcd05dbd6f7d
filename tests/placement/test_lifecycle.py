"""What becomes of a job after each attempt, and what becomes of GPUs that are held and idle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.model.work import CAUSES, ENDED, OUTCOMES
from ouvrage.placement.idle import Held, IdlePolicy, judge
from ouvrage.placement.lifecycle import PATIENCE, Next, Past, after, avoided, billed
from tests.placement.worlds import MINUTE

NOW = 10**15


def _after(
    *outcomes: str, retries: int = 0, cause: str = "program", cancelled: bool = False
) -> Next:
    past = [Past(node=f"n{n}", outcome=outcome, cause=cause) for n, outcome in enumerate(outcomes)]
    return after(past, retries=retries, ended_us=NOW, cancelled=cancelled)


@pytest.mark.parametrize(
    ("outcomes", "retries", "cause", "state", "code", "paid"),
    [
        (("done",), 0, "program", "done", "job/done", True),
        (("failed",), 0, "program", "failed", "job/failed", True),
        (("failed",), 1, "program", "waiting", "job/failed", True),
        (("failed", "failed"), 1, "program", "failed", "job/failed", True),
        (("out of memory",), 1, "program", "waiting", "job/out-of-memory", True),
        (("out of memory",), 0, "program", "failed", "job/out-of-memory", True),
        (("time limit",), 9, "program", "failed", "job/time-limit", True),
        (("cancelled",), 9, "tenant", "cancelled", "job/cancelled", True),
        (("idle",), 9, "tenant", "cancelled", "job/idle", True),
        (("budget",), 9, "tenant", "cancelled", "job/budget", True),
        (("preempted",), 0, "platform", "waiting", "job/preempted", True),
        (("hardware",), 0, "hardware", "waiting", "job/hardware", False),
        (("failed",), 0, "hardware", "waiting", "job/hardware", False),
        (("lost",), 0, "unknown", "waiting", "job/lost", False),
        (("never started",), 0, "platform", "waiting", "job/never-started", False),
        (("never started",), 9, "program", "failed", "job/never-started", False),
        (("never started",), 9, "tenant", "failed", "job/never-started", False),
        (("failed",), 0, "platform", "waiting", "job/platform", False),
        (("lost",) * PATIENCE, 0, "unknown", "failed", "job/gave-up", False),
    ],
)
def test_each_outcome(
    outcomes: tuple[str, ...], retries: int, cause: str, state: str, code: str, paid: bool
):
    told = _after(*outcomes, retries=retries, cause=cause)
    assert (told.state, told.code, told.billed) == (state, code, paid)
    assert told.words


@pytest.mark.parametrize(
    ("outcome", "restart", "state", "code"),
    [
        ("done", "always", "waiting", "job/restart"),
        ("done", "on-failure", "done", "job/done"),
        ("failed", "on-failure", "waiting", "job/restart"),
        ("unhealthy", "on-failure", "waiting", "job/restart"),
        ("unhealthy", "never", "failed", "job/unhealthy"),
        ("time limit", "always", "failed", "job/time-limit"),
        ("cancelled", "always", "cancelled", "job/cancelled"),
        ("budget", "always", "cancelled", "job/budget"),
    ],
)
def test_a_service_is_started_again_where_it_asks(
    outcome: str, restart: str, state: str, code: str
):
    past = [Past(node="a", outcome=outcome, cause="program")]
    told = after(past, retries=0, ended_us=NOW, restart=restart)
    assert (told.state, told.code) == (state, code)
    assert after(past, retries=0, ended_us=NOW, restart=restart, cancelled=True).state != "waiting"


def test_a_service_that_went_well_for_long_is_started_again_soon():
    def pause(*ran_us: int) -> int:
        past = [Past(node="a", outcome="failed", cause="program", ran_us=us) for us in ran_us]
        return after(past, retries=0, ended_us=0, restart="always").not_before_us

    short = 10**6
    assert pause(short) < pause(short, short) < pause(short, short, short)
    assert pause(short, short, 3600 * 10**6) == pause(short)


def test_a_node_whose_hardware_failed_it_is_never_tried_again():
    past = [
        Past(node="a", outcome="hardware", cause="hardware"),
        Past(node="b", outcome="failed", cause="program"),
        Past(node="c", outcome="lost", cause="hardware"),
    ]
    assert avoided(past) == ("a", "c")
    told = after(past, retries=0, ended_us=NOW)
    assert (told.state, told.not_on, told.not_before_us) == ("waiting", ("a", "c"), NOW)


def test_a_machine_s_failure_uses_up_no_retry():
    past = [Past(node="a", outcome="hardware", cause="hardware")] * 3
    failed = Past(node="b", outcome="failed", cause="program")
    assert after([*past, failed], retries=1, ended_us=NOW).state == "waiting"
    assert after([*past, failed, failed], retries=1, ended_us=NOW).state == "failed"


def test_tries_come_further_and_further_apart():
    pauses = [_after(*["failed"] * n, retries=100).not_before_us - NOW for n in range(1, 12)]
    assert pauses[:3] == [10_000_000, 20_000_000, 40_000_000]
    assert pauses[-1] == 10 * MINUTE
    assert _after("preempted", cause="platform").not_before_us == NOW


def test_a_cancelled_job_is_not_tried_again_but_one_that_was_done_is_done():
    assert _after("hardware", cause="hardware", cancelled=True).state == "cancelled"
    assert _after("preempted", cause="platform", cancelled=True).state == "cancelled"
    assert _after("done", cancelled=True).state == "done"


PASTS = st.lists(
    st.builds(
        Past,
        node=st.sampled_from("abc"),
        outcome=st.sampled_from(OUTCOMES),
        cause=st.sampled_from(CAUSES),
    ),
    min_size=1,
    max_size=9,
)


@given(PASTS, st.integers(0, 3), st.booleans())
def test_whatever_happened_there_is_one_next_state(past: list[Past], retries: int, cancelled: bool):
    told = after(past, retries=retries, ended_us=NOW, cancelled=cancelled)
    assert told.state in ("waiting", *ENDED)
    assert (told.not_before_us >= NOW) == (told.state == "waiting")
    assert told.billed == billed(past[-1])
    wanted = ("done", "cancelled", "idle", "budget", "preempted")
    if past[-1].cause == "hardware" and past[-1].outcome not in wanted:
        assert not told.billed
        assert past[-1].node in told.not_on
        assert told.state == ("cancelled" if cancelled else "waiting")


@given(st.integers(0, 5), st.sampled_from(CAUSES[1:]))
def test_no_job_is_tried_for_ever_without_ever_starting(retries: int, cause: str):
    past: list[Past] = []
    for n in range(60):
        past.append(
            Past(node=f"n{n if cause == 'hardware' else 0}", outcome="never started", cause=cause)
        )
        if after(past, retries=retries, ended_us=NOW).state != "waiting":
            break
    assert cause == "hardware" or len(past) <= PATIENCE
    assert cause != "hardware" or len(avoided(past)) == len(
        past
    )  # each time another node: they run out


POLICY = IdlePolicy(warn_after_us=15 * MINUTE, notice_us=5 * MINUTE)


def _judge(
    idle: int | None,
    *,
    agreed: int | None = None,
    warned: int | None = None,
    gpus: int = 1,
    now: int = 100,
):
    held = Held(
        attempt="a",
        gpus=gpus,
        idle_us=None if idle is None else idle * MINUTE,
        stop_idle_us=None if agreed is None else agreed * MINUTE,
        warned_us=None if warned is None else warned * MINUTE,
    )
    told = judge(held, POLICY, now * MINUTE)
    return told.action, None if told.stop_at_us is None else told.stop_at_us / MINUTE


def test_idle_gpus_are_warned_of_and_stopped_only_where_that_was_agreed():
    assert _judge(14) == ("none", None)
    assert _judge(15) == ("warn", None)
    assert _judge(500, warned=50) == ("none", None)
    assert _judge(15, agreed=30) == ("warn", 115)
    assert _judge(29, agreed=30, warned=86) == ("none", 101)
    assert _judge(30, agreed=30, warned=85) == ("stop", 100)
    assert _judge(300, agreed=30) == ("warn", 105)  # never without a warning
    assert _judge(302, agreed=30, warned=98) == ("none", 103)
    assert _judge(5, agreed=10) == ("warn", 105)  # in time for what was agreed


def test_what_nobody_measured_is_not_idle():
    assert _judge(None, agreed=1, warned=1) == ("none", None)
    assert _judge(500, gpus=0, agreed=1, warned=1) == ("none", None)
    assert (
        judge(
            Held(attempt="a", gpus=1, idle_us=10**12, stop_idle_us=None, warned_us=None),
            IdlePolicy(warn_after_us=None),
            1,
        ).action
        == "none"
    )
