"""What passes beside the watch takes turns, and waits for no turn for ever."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ouvrage.agent.probing.passing import HASTE_US, PATIENCE_US, Passing
from ouvrage.agent.probing.repairs import Repairs


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes of those started, None while they run."""
    codes: list[Any] = []

    class Child:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.place = len(codes)
            codes.append(None)

        def poll(self) -> int | None:
            return codes[self.place]

    monkeypatch.setattr("ouvrage.agent.probing.passing.subprocess.Popen", Child)
    return codes


def test_one_waits_for_another_and_not_for_ever(started: list[int]) -> None:
    one = Passing(["it"])
    assert not one.start(0, free=False)
    assert not one.start(PATIENCE_US - 1, free=False)
    assert not started
    assert one.start(PATIENCE_US, free=False)
    assert len(started) == 1
    started[0] = 0
    assert one.ended() == 0
    assert one.ended() is None, "an end is told once"
    assert not one.start(PATIENCE_US + 1, free=False), "it waits anew for the next turn"
    assert one.start(PATIENCE_US + 2, free=True)


def test_a_look_is_held_up_for_a_while_alone(started: list[int]) -> None:
    one = Passing(["it"])
    assert not one.holds(0)
    assert one.start(0, free=True)
    assert (one.holds(HASTE_US - 1), one.holds(HASTE_US), one.runs) == (True, False, True)


def test_a_repair_waits_less_in_trouble(started: list[int]) -> None:
    repairs = Repairs(["it"])
    repairs.look(0, False, free=True)
    started[0] = 0
    repairs.look(HASTE_US, True, free=False)
    assert len(started) == 1
    repairs.look(2 * HASTE_US, True, free=False)
    assert len(started) == 2


def test_old_trouble_is_asked_about_each_minute_and_a_change_makes_it_new(
    started: list[int],
) -> None:
    repairs, s = Repairs(["it"]), 1_000_000
    at: list[int] = []
    for now in range(0, 1500 * s, s):
        before = len(started)
        repairs.look(now, True, counting="a" if now < 1200 * s else "b")
        if len(started) > before:
            at.append(now // s)
            started[-1] = 0
    assert at[:3] == [0, 15, 30]
    assert [b - a for a, b in pairwise(at) if 660 < a < 1100] == [60] * 7
    assert {b - a for a, b in pairwise(at) if a > 1200} == {15}
