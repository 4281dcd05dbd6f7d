"""Tokens read from answers as they pass, times in buckets, and sums that add up."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.ledger.kinds import from_plain, payload_of
from ouvrage.metering.answers import LONGEST, Answered, AnswerReader
from ouvrage.metering.latency import P95, bucket_of, quantile_us, upper_us
from ouvrage.metering.service_use import Exchange, Tally
from ouvrage.model.work import ServiceUsed


def event(**told: object) -> bytes:
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def read(kind: str, data: bytes, size: int) -> tuple[Answered, list[bool]]:
    reader = AnswerReader(kind)
    said = [reader.take(data[at : at + size]) for at in range(0, len(data), size)]
    return reader.answered(), said


CHAT = (
    event(choices=[{"delta": {"role": "assistant"}}])
    + event(choices=[{"delta": {"content": "a"}}])
    + event(choices=[{"delta": {"content": "bé"}}])
    + event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 2})
    + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("text/event-stream; charset=utf-8", CHAT, (9, 2, 2)),
        ("text/event-stream", event(choices=[{"text": "x"}]) * 3, (None, None, 3)),
        ("text/event-stream", event(delta="x") + event(response={"usage": {"input_tokens": 1, "output_tokens": 4}}), (1, 4, 1)),
        ("application/json", b'{"usage": {"prompt_tokens": 3, "completion_tokens": 8}}', (3, 8, 0)),
        ("application/json", b'{"usage": {"prompt_tokens": -3, "completion_tokens": true}}', (None, None, 0)),
        ("application/json", b"[1, 2]", (None, None, 0)),
        ("application/json", b'{"usage": 4, "choices"', (None, None, 0)),
        ("text/event-stream", b"data: {\ndata: []\ndata: {\"choices\": [3, {\"delta\": 1}]}\n", (None, None, 0)),
        ("text/html", CHAT, (None, None, 0)),
    ],
)  # fmt: skip
def test_tokens_are_what_the_server_says_however_the_answer_is_cut(
    kind: str, data: bytes, told: tuple[object, ...], size: int
) -> None:
    found, said = read(kind, data, size)
    assert (found.tokens_in, found.tokens_out, found.pieces) == told
    assert any(said) == (found.pieces > 0)


def test_an_answer_that_is_too_long_is_passed_on_unread() -> None:
    found, _ = read(
        "application/json", b'{"usage": {"completion_tokens": 8}}' + b" " * LONGEST, 1 << 16
    )
    assert found.tokens_out is None


@given(st.integers(0, 2**60))
def test_a_bucket_holds_what_is_in_it_to_an_eighth(us: int) -> None:
    top = upper_us(bucket_of(us))
    assert us <= top
    assert top - us <= us // 8
    assert bucket_of(top) == bucket_of(us)
    assert bucket_of(top + 1) == bucket_of(us) + 1


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.integers(1, 100))
def test_a_quantile_is_never_better_than_it_was(lengths: list[int], percent: int) -> None:
    counts: dict[int, int] = {}
    for us in lengths:
        counts[bucket_of(us)] = counts.get(bucket_of(us), 0) + 1
    share = Fraction(percent, 100)
    rank = -(-len(lengths) * percent // 100)
    true = sorted(lengths)[max(rank, 1) - 1]
    found = quantile_us(counts, share)
    assert found is not None
    assert true <= found <= true + true // 8


def test_nothing_has_no_quantile() -> None:
    assert quantile_us({}, P95) is None


def exchange(status: int | None, tokens: int | None, took: int = 1000, pieces: int = 0) -> Exchange:
    answered = Answered(tokens_in=tokens, tokens_out=tokens, pieces=pieces)
    return Exchange(
        status=status, answered=answered, bytes_in=1, bytes_out=2, first_us=10, token_us=None, took_us=took
    )  # fmt: skip


def test_sums_add_up_through_their_facts() -> None:
    one, other = Tally(), Tally()
    for each in (exchange(200, 5), exchange(500, None), exchange(None, None, pieces=4)):
        one.note(each)
    other.note(exchange(200, 7, took=9))
    whole = Tally()
    for each in (one, other):
        fact = each.fact("a", "j")
        whole.add(from_plain(ServiceUsed, json.loads(payload_of(fact))))
    assert (whole.requests, whole.failed, whole.counted, whole.pieces) == (4, 2, 2, 4)
    assert (whole.tokens_out, whole.bytes_in, sum(whole.took.values())) == (12, 4, 3)
    assert whole.unit == ("token", 12)
    whole.note(exchange(200, None))
    assert whole.unit == ("request", 3)
