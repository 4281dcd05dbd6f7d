"""The ladder's rungs, one after another, and where a person comes in."""

from __future__ import annotations

import pytest

from ouvrage.health.ladder import AUTOMATIC, TO_DO, Step, Tried, next_step, runbook_of
from ouvrage.model.health import ACTIONS, RUNGS
from tests.health.rules import BOUNDS

DAY = 86_400_000_000
ALL = frozenset(AUTOMATIC)


def tried(
    rung: str, verified: bool | None = False, outcome: str = "done", at: int = 0, dry: bool = False
) -> Tried:
    return Tried(rung=rung, at_us=at, outcome=outcome, verified=verified, dry_run=dry)


def step(
    action: str,
    *history: Tried,
    on: frozenset[str] = ALL,
    now: int = DAY,
    rule: str = "",
    observer: bool = False,
) -> Step:
    found = next_step(action, history, now, on, BOUNDS, rule=rule, observer=observer)
    assert found is not None
    return found


def test_the_whole_ladder_each_rung_twice_and_then_a_person() -> None:
    history: list[Tried] = []
    climbed: list[str] = []
    while not (last := step("gpu_reset", *history)).hands:
        climbed.append(last.rung)
        history.append(tried(last.rung))
    assert climbed == [rung for rung in AUTOMATIC for _ in range(2)]
    assert last.rung == "replace"


@pytest.mark.parametrize("outcome", ["failed", "refused"])
def test_a_rung_that_could_not_be_done_is_not_tried_again(outcome: str) -> None:
    assert step("gpu_reset", tried("gpu_reset", outcome=outcome)).rung == "reboot"


def test_a_rung_that_helped_begins_a_new_ladder_at_what_is_asked() -> None:
    assert step("gpu_reset", tried("reboot", verified=True)).rung == "gpu_reset"


def test_it_never_goes_down_within_a_ladder() -> None:
    assert step("gpu_reset", tried("reboot")).rung == "reboot"


def test_a_lost_gpu_is_not_rebooted_twice() -> None:
    assert step("reboot", tried("reboot"), rule="xid-79").rung == "power_cycle"
    assert step("reboot", tried("reboot"), rule="xid-48").rung == "reboot"


def test_a_rung_that_is_not_turned_on_is_only_said_and_climbs_nothing() -> None:
    first = step("gpu_reset", on=frozenset())
    assert (first.rung, first.dry_run, first.hands) == ("gpu_reset", True, True)
    said = tried("gpu_reset", verified=None, outcome="dry_run", dry=True)
    assert step("gpu_reset", said, said, said, on=frozenset()) == first


def test_five_ladders_in_a_week_call_a_person() -> None:
    ladders = [tried("gpu_reset", verified=True, at=n * DAY) for n in range(5)]
    sixth = step("gpu_reset", *ladders, now=5 * DAY)
    assert (sixth.rung, sixth.hands) == ("person", True)
    assert "5 ladders" in sixth.why
    assert step("gpu_reset", *ladders, now=8 * DAY).rung == "gpu_reset"


def test_on_a_machine_that_others_run_the_ladder_is_a_person() -> None:
    assert step("gpu_reset", observer=True).rung == "person"


@pytest.mark.parametrize("action", ["none", "look", "restart_job", "drain", "update_software"])
def test_what_is_no_rung_of_a_machine_climbs_nothing(action: str) -> None:
    assert next_step(action, (), 0, ALL, BOUNDS) is None


@pytest.mark.parametrize("action", ["replace", "person"])
def test_what_hands_alone_can_do_is_asked_of_hands(action: str) -> None:
    assert (step(action).rung, step(action).hands) == (action, True)


def test_every_action_has_words_and_every_rung_a_page() -> None:
    assert TO_DO.keys() == set(ACTIONS) - {"none"}
    assert [runbook_of(rung) for rung in RUNGS] == [rung.replace("_", "-") for rung in RUNGS]
    assert runbook_of("look") is None
