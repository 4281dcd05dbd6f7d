"""Moves between states, fences and their holders: the laws, whatever is repeated, reordered or late."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.grades import Grade
from ouvrage.health.fences import Fences, changes, fences_of, wanted
from ouvrage.health.findings import Belief, Finding
from ouvrage.health.laws import LAWS
from ouvrage.health.states import MOVES, Standing, Wish, begun, booted, moved
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.health import STATES, Remedy, StateMove, Verdict
from ouvrage.model.machines import FENCE_HOLDERS, FenceSet
from tests.support.facts import SOURCE, recorded

START = replace(begun("n1", None, "boot-1", 0), state="healthy")


def wish(
    to: str,
    epoch: int = 0,
    actor: str = "automation",
    boot: str | None = "boot-1",
    reason: str = "because",
    evidence: tuple[str, ...] = ("f1",),
) -> Wish:
    return Wish(
        to_state=to, actor=actor, reason=reason, evidence=evidence, boot=boot, epoch=epoch, at_us=5
    )


def walk(standing: Standing, *states: str, actor: str = "automation") -> Standing:
    for state in states:
        outcome = moved(standing, wish(state, standing.epoch, actor, standing.boot))
        assert outcome.move is not None, outcome.why_not
        standing = outcome.standing
    return standing


def test_the_whole_way_round() -> None:
    end = walk(START, "suspect", "fenced", "draining", "repairing", "verifying", "healthy")
    assert (end.state, end.epoch) == ("healthy", 6)
    assert walk(START, "fenced", "awaiting_hands").state == "awaiting_hands"


def test_every_state_can_be_left_but_retired_and_all_are_known() -> None:
    assert MOVES.keys() == set(STATES)
    assert [state for state, to in MOVES.items() if not to] == ["retired"]
    reached = {to for targets in MOVES.values() for to in targets}
    assert reached == set(STATES)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (wish("fenced", epoch=7), "epoch"),
        (wish("fenced", boot="boot-0"), "boot"),
        (wish("fenced", actor=""), "actor"),
        (wish("fenced", reason=" "), "reason"),
        (wish("fenced", evidence=()), "evidence"),
        (wish("maintenance"), "person"),
        (wish("retired"), "person"),
        (wish("verifying"), "nothing goes"),
        (wish("nonsense", actor="operator"), "nothing goes"),
    ],
)
def test_a_move_that_is_none_says_why(made: Wish, why: str) -> None:
    outcome = moved(START, made)
    assert outcome.move is None
    assert outcome.standing == START
    assert why in (outcome.why_not or "")


def test_automation_cannot_skip_the_verification_and_an_operator_can() -> None:
    fenced = walk(START, "fenced")
    assert moved(fenced, wish("healthy", fenced.epoch)).move is None
    assert moved(fenced, wish("healthy", fenced.epoch, actor="alice", evidence=())).move is not None
    retired = walk(START, "retired", actor="alice")
    assert moved(retired, wish("healthy", retired.epoch, actor="alice")).move is None


def test_an_event_of_an_older_boot_cancels_no_fresh_fence() -> None:
    fenced = walk(booted(START, "boot-2"), "fenced")
    late = moved(fenced, wish("verifying", fenced.epoch, boot="boot-1"))
    assert late.move is None
    assert "an older boot" in (late.why_not or "")


def test_a_boot_that_is_over_does_not_come_back() -> None:
    later = booted(booted(START, "boot-2"), "boot-3")
    assert booted(later, "boot-1") == later
    assert booted(later, "boot-3") == later
    assert later.past == ("boot-1", "boot-2")


WISHES = st.lists(
    st.builds(
        wish,
        st.sampled_from([*STATES, "nonsense"]),
        st.integers(0, 6),
        st.sampled_from(["automation", "alice", ""]),
        st.sampled_from(["boot-1", "boot-2", "boot-3", None]),
        st.sampled_from(["because", ""]),
        st.sampled_from([("f1",), ()]),
    )
    | st.sampled_from(["boot-1", "boot-2", "boot-3"]),
    max_size=40,
)


@given(WISHES, st.integers(1, 3))
def test_whatever_is_repeated_or_late_the_moves_follow_one_another(
    steps: list[Wish | str], times: int
) -> None:
    standing, moves = START, list[StateMove]()
    for step in steps * times:
        if isinstance(step, str):
            standing = booted(standing, step)
            continue
        before = standing
        outcome = moved(before, step)
        standing = outcome.standing
        if outcome.move is None:
            assert standing == before
            assert outcome.why_not
            continue
        assert (step.epoch, step.boot in (before.boot, None)) == (before.epoch, True)
        assert standing.epoch == before.epoch + 1
        assert moved(standing, step).move is None
        if step.actor == "automation" and step.to_state == "healthy":
            assert before.state in ("suspect", "verifying")
        moves.append(outcome.move)
    assert not [breach for law in LAWS for breach in law.breaches(as_records(*moves))]


def as_records(*values: object) -> list[Recorded]:
    facts = [
        fact_of(
            value, source=SOURCE, id=f"f{n}", subject="n1", valid_from=n, valid_to=None, grade=Grade.MEASURED
        )
        for n, value in enumerate(values)
    ]  # fmt: skip
    return recorded(*facts)


def move(from_state: str, to_state: str, epoch: int, reason: str = "because") -> StateMove:
    return StateMove(
        node="n1", device=None, from_state=from_state, to_state=to_state, actor="alice", reason=reason,
        evidence=(), epoch=epoch,
    )  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        (move("healthy", "fenced", 2),),
        (move("healthy", "fenced", 1), move("healthy", "suspect", 2)),
        (move("healthy", "fenced", 1), move("fenced", "draining", 1)),
        (move("healthy", "broken", 1),),
        (move("healthy", "fenced", 1, reason=""),),
        (
            Verdict(node="n1", device=None, check="xid", verdict="BAD", code="1", evidence=(),
                    action="none", since_us=0, boot="b", epoch=0, shadow=False),
        ),
        (
            Remedy(node="n1", device=None, rung="kick", outcome="done", verified=None, dry_run=False,
                   by="a", why="", epoch=1),
        ),
        (
            Remedy(node="n1", device=None, rung="reboot", outcome="dry_run", verified=True, dry_run=True,
                   by="a", why="", epoch=1),
        ),
    ],
)  # fmt: skip
def test_facts_that_break_a_law_are_named(values: tuple[object, ...]) -> None:
    assert [breach for law in LAWS for breach in law.breaches(as_records(*values))]


def fence(holder: str, held: bool = True, device: str | None = None, node: str = "n1") -> FenceSet:
    return FenceSet(node=node, device=device, holder=holder, held=held, why="because", by="x")


def test_it_is_free_when_the_last_holder_lets_go() -> None:
    facts = [fence("automation"), fence("operator"), fence("automation", held=False)]
    assert fences_of(facts).holders("n1") == {"operator"}
    assert not fences_of(facts).free("n1", "GPU-1")
    assert fences_of([*facts, fence("operator", held=False)]).free("n1")


def test_one_gpu_can_be_fenced_and_the_others_stay_free() -> None:
    fences = fences_of([fence("automation", device="GPU-1")])
    assert not fences.free("n1", "GPU-1")
    assert fences.free("n1", "GPU-2")
    assert fences.free("n1")


FENCES = st.lists(
    st.builds(
        fence,
        st.sampled_from(FENCE_HOLDERS),
        st.booleans(),
        st.sampled_from([None, "GPU-1", "GPU-2"]),
    ),
    max_size=20,
)


@given(FENCES)
def test_a_place_is_held_by_exactly_those_whose_last_word_was_to_hold(
    facts: list[FenceSet],
) -> None:
    fences = fences_of(facts)
    for device in (None, "GPU-1", "GPU-2"):
        last = {(f.device, f.holder): f.held for f in facts if f.device in (None, device)}
        assert fences.holders("n1", device) == {
            holder for (_, holder), held in last.items() if held
        }
    assert fences_of([each for fact in facts for each in (fact, fact)]) == fences


def finding(
    fence_: str = "now",
    device: str | None = "GPU-1",
    action: str = "gpu_reset",
    shadow: bool = False,
) -> Finding:
    return Finding(
        belief=Belief.XID, verdict="CRITICAL", rule="xid-48", reason="because", device=device,
        fence=fence_, action=action, shadow=shadow,
    )  # fmt: skip


def test_what_automation_wants_kept_away() -> None:
    assert set(wanted("n1", [finding()], {})) == {("n1", "GPU-1")}
    tied = {"GPU-1": ("GPU-2",)}
    assert set(wanted("n1", [finding()], tied)) == {("n1", "GPU-1"), ("n1", "GPU-2")}
    assert set(wanted("n1", [finding(action="reboot")], tied)) == {("n1", None)}
    assert set(wanted("n1", [finding(device=None)], {})) == {("n1", None)}
    assert not wanted("n1", [finding("none"), finding(shadow=True)], {})


def test_automation_lets_go_of_its_own_and_only_once_verified() -> None:
    held = fences_of([fence("automation", device="GPU-1"), fence("operator", device="GPU-2")])
    assert changes(held, {}, [], "agent") == []
    gone = changes(held, {}, [("n1", "GPU-1"), ("n1", "GPU-2")], "agent")
    assert [(f.device, f.held) for f in gone] == [("GPU-1", False)]
    again = changes(held, {("n1", "GPU-1"): "still"}, [("n1", "GPU-1")], "agent")
    assert again == []
    new = changes(Fences(held={}), {("n1", None): "why"}, [], "agent")
    assert [(f.device, f.held, f.holder, f.why) for f in new] == [(None, True, "automation", "why")]
