"""A node's own figures: gathered, waiting on the disk, sent in order; nothing lost, nothing made up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.gpu_port import NAMES
from ouvrage.agent import telemetry
from ouvrage.agent.link import Away, Link, Refused
from ouvrage.agent.telemetry import Cards, Moments, NodeReader, Spool, Telemetry, card_row
from ouvrage.base.ids import uuid7
from ouvrage.wire.samples import Batch, decode
from tests.ingest.sending import START, node_key
from tests.ingest.test_samples import numbers
from tests.support.server import Running


def source(number: int) -> str:
    return uuid7(START + number * 1000, number << 12)


def moments(at_us: int, many: int = 3) -> Moments:
    made = Moments()
    for n in range(many):
        made.add(at_us + n * 1_000_000, {"cpu_permille": n, "memory_mib": 5}, {})
    return made


def waiting(spool: Spool) -> Iterator[Batch]:
    while first := spool.first():
        yield decode(first[1])
        first[0].unlink()


def test_moments_become_a_batch_and_what_was_not_read_is_missing() -> None:
    made = Moments()
    made.add(START, {"cpu_permille": None, "memory_mib": 100}, {})
    made.add(START + 5, {"cpu_permille": 7, "memory_mib": 101}, {"GPU-b": {"power_mw": 9}})
    made.add(START - 99, {"cpu_permille": 8, "memory_mib": None}, {"GPU-a": {"power_mw": 1}})
    batch = made.cut(source(1), 1)
    assert batch is not None
    assert batch.times == (START, START + 5, START + 6)  # the clock was put back
    assert batch.devices == ("GPU-a", "GPU-b")
    assert batch.node == {"cpu_permille": [None, 7, 8], "memory_mib": [100, 101, None]}
    assert batch.gpu == {"power_mw": [None, None, 1, None, 9, None]}
    assert made.cut(source(1), 2) is None


def test_this_machine_says_how_busy_it_is() -> None:
    row = NodeReader().read()
    assert row["memory_mib"] is not None and row["memory_mib"] > 0
    assert row["cpu_permille"] is None or 0 <= row["cpu_permille"] <= 1000


def test_a_cards_reading_in_the_columns_of_telemetry() -> None:
    said: dict[str, int | None] = dict.fromkeys(NAMES)
    said |= {"busy_percent": 97, "memory_used_bytes": 10 << 20, "power_usage_mw": 300_000}
    said |= {"energy_mj": 5, "temperature_c": 251}
    assert card_row([said[name] for name in NAMES]) == {
        "busy_percent": 97, "memory_mib": 10, "power_mw": 300_000, "energy_mj": 5,
        "temperature_c": None,
    }  # fmt: skip


def test_cards_that_say_nothing_for_a_while_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10_000_000]
    monkeypatch.setattr(telemetry, "monotonic_us", lambda: now[0])
    monkeypatch.setattr(telemetry.nvml_place, "is_here", lambda _: False)
    cards = Cards()
    cards._feed = type("Quiet", (), {"read": lambda *_: None})()  # type: ignore[assignment]  # a child that says nothing
    cards.hear({"k": "gpu", "about": {"index": 0, "uuid": "GPU-x"}}, now[0])
    cards.hear({"k": "read", "t": now[0], "v": [[1] * len(NAMES), None]}, now[0])
    assert list(cards.read()) == ["GPU-x"]
    now[0] += 2_000_001
    assert cards.read() == {}


def test_what_waits_is_bounded_and_the_newest_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "MOST_WAITING", 10)
    spool = Spool(tmp_path, source(1))
    for number in range(14):
        spool.keep(moments(START + number * 10_000_000).cut)
    left = list(waiting(spool))
    assert 5 <= len(left) <= 10
    assert [each.sequence for each in left] == list(range(1, len(left) + 1))
    assert left[-1].times[0] == START + 130_000_000
    assert len({each.source for each in left}) == 1


@pytest.mark.property
@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["kept", "sent", "started again", "begun anew"]), max_size=14))
def test_each_source_is_sent_without_a_gap(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    place = tmp_path_factory.mktemp("spool")
    numbers = iter(range(1, 100))
    spool = Spool(place, source(next(numbers)))
    last: dict[str, int] = {}
    kept = sent = 0

    def send() -> None:
        nonlocal sent
        if first := spool.first():
            batch = decode(first[1])
            assert batch.sequence == last.get(batch.source, 0) + 1
            last[batch.source] = batch.sequence
            assert batch.times[0] == START + sent * 10_000_000
            sent += 1
            first[0].unlink()

    for step in steps:
        if step == "kept":
            spool.keep(moments(START + kept * 10_000_000).cut)
            kept += 1
        elif step == "sent":
            send()
        elif step == "started again":
            spool = Spool(place, source(next(numbers)))
        else:
            spool.begin_anew(source(next(numbers)))
    while spool.first():
        send()
    assert sent == kept


class Server:
    """What a link reaches: it keeps what it takes, and says what it is told to."""

    def __init__(self) -> None:
        self.had: list[Batch] = []
        self.says: list[Exception] = []

    def samples(self, content: bytes) -> None:
        if self.says:
            raise self.says.pop(0)
        self.had.append(decode(content))


def refused(code: str, status: int = 409) -> Refused:
    return Refused(status, {"code": code, "message": "no", "hint": None})


@pytest.mark.parametrize(
    "says",
    [
        Away("gone"),
        refused("token/unknown", 401),
        refused("samples/gap"),
        refused("samples/bad", 422),
    ],
)
def test_whatever_the_server_says_the_rest_arrives(tmp_path: Path, says: Exception) -> None:
    server: Any = Server()
    sender = Telemetry(tmp_path, server)
    for number in range(3):
        sender._spool.keep(moments(START + number * 10_000_000).cut)
    server.says.append(says)
    taken = sender._send()
    waits = isinstance(says, Away) or (isinstance(says, Refused) and says.status == 401)
    assert taken == (not waits)
    sender._send()
    first = 1 if isinstance(says, Refused) and says.code == "samples/bad" else 0
    assert [each.times[0] for each in server.had] == [
        START + number * 10_000_000 for number in range(first, 3)
    ]
    assert [each.sequence for each in server.had] == list(range(1, 4 - first))


def test_a_node_speaks_to_a_server(
    tmp_path: Path, platform_server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "BATCH_US", 1)
    node, key = node_key(platform_server)
    link = Link(platform_server.url)
    link.use(key)
    sender = Telemetry(tmp_path, link)
    sender.start()
    from tests.support.meter import until

    until(lambda: len(numbers(platform_server).get(node, [])) >= 2, "two batches")
    sender.stop()
    again = Telemetry(tmp_path, link)  # sends what the one before left, before its own
    assert again._send() and again._spool.first() is None
    link.close()
    kept = numbers(platform_server)[node]
    assert kept == list(range(1, len(kept) + 1))
