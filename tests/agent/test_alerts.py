"""What is worth a message: each change once, its end once, UNKNOWN only when it lasts, nothing lost while nobody listens."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ouvrage.agent.probing.alerts import (
    GIVEN_UP_US,
    UNKNOWN_US,
    Desk,
    is_over,
    news_of,
    tried,
    words_of,
)
from ouvrage.agent.probing.now import CheckNow, Now
from ouvrage.health.findings import weight
from ouvrage.model.health import CRITICAL, OK, UNKNOWN, VERDICTS, WARN

AT = 1_900_000_000_000_000
BOTH = ("webhook", "mail")


def check(
    verdict: str, device: str | None = "gpu0", *, since_us: int = AT, shadow: bool = False
) -> CheckNow:
    return CheckNow(
        check="gpu", device=device, verdict=verdict, code="gpu-hot", action="look", since_us=since_us,
        latched=False, shadow=shadow, reasons=("it is hot",), evidence=(),
    )  # fmt: skip


def view(*checks: CheckNow, at_us: int = AT) -> Now:
    return Now(
        node="n1", boot="b", at_us=at_us, monotonic_us=at_us - AT, epoch=0, observer=False, probes=(),
        checks=checks,
    )  # fmt: skip


def changes(desk: Desk) -> list[tuple[str, str, str]]:
    return [
        (each["place"], each["was"], each["verdict"])
        for waiting in desk.waiting
        for each in waiting.message["changes"]
    ]


@given(st.lists(st.sampled_from([OK, WARN, CRITICAL]), max_size=12))
def test_what_is_told_in_turn_is_what_counted_in_turn(verdicts: list[str]) -> None:
    desk = Desk()
    for at, verdict in enumerate(verdicts):
        for _ in range(2):  # the same view twice says nothing twice
            desk = news_of(desk, view(check(verdict), at_us=AT + at), BOTH)
    turns = [OK] + [v for at, v in enumerate(verdicts) if v != (verdicts[at - 1] if at else OK)]
    assert changes(desk) == [("gpu gpu0", was, now) for was, now in itertools.pairwise(turns)]
    ids = [each.message["id"] for each in desk.waiting]
    assert len(set(ids)) == len(ids)


def test_what_came_together_is_one_message_with_the_gravest_first() -> None:
    desk = news_of(Desk(), view(check(WARN, "gpu1"), check(CRITICAL), check(OK, "gpu2")), BOTH)
    (waiting,) = desk.waiting
    assert changes(desk) == [("gpu gpu0", OK, CRITICAL), ("gpu gpu1", OK, WARN)]
    assert (waiting.left, waiting.message["verdict"]) == (BOTH, CRITICAL)
    assert words_of(waiting.message)[0] == "n1: gpu gpu0 is CRITICAL and 1 more"


def test_the_unknown_and_what_is_on_trial() -> None:
    assert (
        news_of(Desk(), view(check(UNKNOWN), check(CRITICAL, "gpu1", shadow=True)), BOTH) == Desk()
    )
    lasts = view(check(UNKNOWN), at_us=AT + UNKNOWN_US)
    assert changes(news_of(Desk(), lasts, BOTH)) == [("gpu gpu0", OK, UNKNOWN)]
    assert news_of(Desk(), view(check(WARN)), BOTH, CRITICAL) == Desk()
    assert weight(UNKNOWN) < weight(CRITICAL), (
        "so that it is not told where only the worst is wanted"
    )
    assert news_of(Desk(), lasts, BOTH, CRITICAL) == Desk()


def test_a_part_that_is_gone_is_told_as_over() -> None:
    desk = news_of(news_of(Desk(), view(check(CRITICAL)), BOTH), view(at_us=AT + 1), BOTH)
    assert changes(desk)[-1] == ("gpu gpu0", CRITICAL, OK)
    assert not desk.told


def test_who_does_not_listen_is_asked_later_and_later_for_a_week() -> None:
    (each,) = news_of(Desk(), view(check(CRITICAL)), BOTH).waiting
    pauses: list[int] = []
    for _ in range(12):
        each = tried(each, {"mail": "no answer"}, AT)
        pauses.append(each.due_us - AT)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (10_000_000, 600_000_000)
    assert (each.left, each.said) == (("mail",), "mail: no answer")
    assert not is_over(each, AT + GIVEN_UP_US)
    assert is_over(each, AT + GIVEN_UP_US + 1)
    assert is_over(replace(each, left=()), AT)
    assert set(VERDICTS) == {OK, WARN, CRITICAL, UNKNOWN}
