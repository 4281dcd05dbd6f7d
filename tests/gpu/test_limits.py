"""One contract for power limits through the real binding, on the stand-in, and in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any, Protocol

import pytest

from ouvrage.adapters.limit_port import CardLimits, Refused
from ouvrage.adapters.nvml_twin import LimitsTwin
from ouvrage.meter.limits_child import answer
from tests.support.meter import SOURCES
from tests.support.nvml import Cards

ASK = """
import json, sys
from ouvrage.adapters.nvml_limits import NvmlLimits
from ouvrage.meter.limits_child import answer
library = NvmlLimits()
print(json.dumps([answer(library, words) for words in json.loads(sys.argv[1])]))
"""
UUID = "GPU-00000000-0000-4000-8000-000000000001"


class Subject(Protocol):
    def lose(self, gpu: int) -> None: ...
    def forbid(self) -> None: ...
    def divide(self, gpu: int) -> None: ...
    def ask(self, *questions: tuple[str, ...]) -> list[dict[str, Any]]: ...


class Real:
    def __init__(self, cards: Cards) -> None:
        self.cards = cards
        cards.set(count=2)

    def lose(self, gpu: int) -> None:
        self.cards.set(**{f"gpu{gpu}__lost": 1})

    def forbid(self) -> None:
        self.cards.set(**{"gpu1.rc.power_limit_set": 4})

    def divide(self, gpu: int) -> None:
        self.cards.set(**{f"gpu{gpu}__mig": 1})

    def ask(self, *questions: tuple[str, ...]) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-c", ASK, json.dumps(questions)],
            env={"PYTHONPATH": str(SOURCES), **self.cards.environment},
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
        return json.loads(done.stdout)


class Twin:
    def __init__(self) -> None:
        self.twin = LimitsTwin(2)

    def lose(self, gpu: int) -> None:
        self.twin.lost.add(gpu)

    def forbid(self) -> None:
        self.twin.refusal = Refused("permission", "Insufficient Permissions")

    def divide(self, gpu: int) -> None:
        self.twin.cards[gpu] = replace(self.twin.cards[gpu], mig=True)

    def ask(self, *questions: tuple[str, ...]) -> list[dict[str, Any]]:
        return [answer(self.twin, words) for words in questions]


@pytest.fixture(params=["binding", "twin"])
def subject(request: pytest.FixtureRequest) -> Subject:
    return Twin() if request.param == "twin" else Real(request.getfixturevalue("cards"))


def test_a_limit_is_told_set_and_told_again(subject: Subject) -> None:
    before, done, after = subject.ask(("look",), ("set", UUID, "250000"), ("look",))
    first, second = (CardLimits(**card) for card in before["cards"])
    assert (first.index, second.uuid, second.limit_mw) == (0, UUID, 700_000)
    assert (second.least_mw, second.most_mw, second.default_mw) == (200_000, 700_000, 700_000)
    assert (second.mig, second.persistence, second.processes) == (False, 1, [])
    assert done == {"limit_mw": 250_000}
    assert [card["limit_mw"] for card in after["cards"]] == [700_000, 250_000]


def test_what_is_refused_has_a_kind_and_changes_nothing(subject: Subject) -> None:
    outside, unknown, still = subject.ask(
        ("set", UUID, "100000"), ("set", "GPU-none", "250000"), ("look",)
    )
    assert outside["refused"] == unknown["refused"] == "driver"
    assert still["cards"][1]["limit_mw"] == 700_000
    subject.forbid()
    (forbidden,) = subject.ask(("set", UUID, "250000"))
    assert forbidden["refused"] == "permission"


def test_a_lost_card_is_not_there_and_cannot_be_set(subject: Subject) -> None:
    subject.lose(1)
    looked, done = subject.ask(("look",), ("set", UUID, "250000"))
    assert [card["index"] for card in looked["cards"]] == [0]
    assert done["refused"] == "lost"


def test_a_divided_card_says_so(subject: Subject) -> None:
    subject.divide(1)
    (looked,) = subject.ask(("look",))
    assert [card["mig"] for card in looked["cards"]] == [False, True]
