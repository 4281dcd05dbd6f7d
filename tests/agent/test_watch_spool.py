"""The spool: what was added is sent once, whatever is torn, killed, full or away meanwhile."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ouvrage.agent.probing import spool as spool_module
from ouvrage.agent.probing.asking import Answer
from ouvrage.agent.probing.deliver import deliver, into_store
from ouvrage.agent.probing.readings import Readings
from ouvrage.agent.probing.spool import FILE, RESERVE, Spool
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import HealthEvent
from ouvrage.store.store import open_store


def said(number: int) -> Stated:
    event = HealthEvent(
        node="n1", device=None, code=str(number), count=1, boot="b", first_monotonic_us=number,
        last_monotonic_us=number, line="x",
    )  # fmt: skip
    return Stated(
        natural=f"event/{number}", value=event, subject="node:n1", valid_from=number,
        valid_to=number, grade=Grade.MEASURED,
    )  # fmt: skip


class Receiver:
    """Takes facts, or is away for so many calls."""

    def __init__(self, away: int = 0, lost_answers: int = 0) -> None:
        self.away, self.lost_answers = away, lost_answers
        self.keys: list[str] = []

    def __call__(self, facts: Sequence[Fact]) -> None:
        if self.away:
            self.away -= 1
            raise ConnectionRefusedError
        self.keys += [fact.key for fact in facts if fact.key not in self.keys]
        if self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionResetError


def test_facts_are_sent_in_order_and_once(tmp_path: Path) -> None:
    spool, receiver = Spool(tmp_path / "s"), Receiver()
    assert spool.empty or spool.waiting() is None
    spool.add([said(n) for n in range(5)])
    spool.add([said(n) for n in range(5, 9)])
    assert deliver(spool, receiver) == 9
    assert [key.split("/")[2] for key in receiver.keys] == [str(n) for n in range(9)]
    assert deliver(spool, receiver) == 0
    assert spool.empty


def test_memory_alone_wakes_nobody_and_hides_no_fact(tmp_path: Path) -> None:
    spool, receiver = Spool(tmp_path / "s"), Receiver()
    spool.add([said(1)], {"number": 1})
    spool.add([], {"number": 2})
    assert not spool.empty, "a fact waits before what is remembered"
    assert deliver(spool, receiver) == 1
    spool.add([], {"number": 3})
    assert spool.empty
    assert Spool(tmp_path / "s").memory() == {"number": 3}
    spool.add([said(2)])
    assert deliver(spool, receiver) == 1


def test_a_week_away_loses_nothing(tmp_path: Path) -> None:
    """Many facts, a receiver that refuses again and again, and processes that come and go."""
    receiver = Receiver(away=60, lost_answers=3)
    for number in range(160):
        Spool(tmp_path / "s").add([said(number)], {"number": number})
        if number % 2:
            with suppress(OSError):
                deliver(Spool(tmp_path / "s"), receiver)
    while not Spool(tmp_path / "s").empty:
        try:
            deliver(Spool(tmp_path / "s"), receiver)
        except OSError:
            continue
    assert len(receiver.keys) == 160


def test_a_line_torn_by_a_power_cut_was_told_to_nobody(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s")
    spool.add([said(1)], {"number": 1})
    spool.add([said(2)], {"number": 2})
    path = tmp_path / "s" / FILE
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, whole.rindex(b"\n", 0, -1), -7):
        path.write_bytes(whole[:cut])
        again = Spool(tmp_path / "s")
        assert again.memory() == {"number": 1}, "what was not stated is not remembered as stated"
        waiting = again.waiting()
        assert waiting is not None
        assert [fact.id.split("/")[1] for fact in waiting.facts] == ["1"]
    Spool(tmp_path / "s").add([said(3)])
    waiting = Spool(tmp_path / "s").waiting()
    assert waiting is not None
    assert [fact.id.split("/")[1] for fact in waiting.facts] == ["1", "3"]


def test_what_the_store_has_is_dropped_and_the_memory_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_COMPACT_BYTES", 2_000)
    spool = Spool(tmp_path / "s")
    for number in range(20):
        spool.add([said(number)], {"number": number})
    receiver = Receiver()
    deliver(spool, receiver)
    assert (tmp_path / "s" / FILE).stat().st_size < 200
    assert Spool(tmp_path / "s").memory() == {"number": 19}
    spool.add([said(20)])
    deliver(spool, receiver)
    assert len(receiver.keys) == 21


def test_the_store_takes_each_fact_once_though_it_is_sent_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s")
    spool.add([said(n) for n in range(4)])
    home = tmp_path / "home"
    home.mkdir()
    waiting = spool.waiting()
    assert waiting is not None
    into_store(home)(waiting.facts)
    assert deliver(spool, into_store(home)) == 4
    with open_store(home / "ouvrage.db") as store:
        assert len(store.records(kind="health.event")) == 4


def test_on_a_full_disk_readings_go_first_then_the_reserve_and_facts_last(tmp_path: Path) -> None:
    """The limit on a file's size stands in for the disk's: the kernel refuses a write in the same way."""
    gone: list[str] = []
    readings = Readings(tmp_path / "s")
    spool = Spool(tmp_path / "s", lambda: bool(gone.append("readings")) or readings.give_room())
    values = {"gpus": [{"uuid": "g", "temperature_c": 40}]}
    told = {"gpu": Answer(probe="gpu", at_us=1, monotonic_us=1, took_us=0, values=values)}
    readings.take(told, 1, 1)
    assert list((tmp_path / "s/readings").iterdir())
    spool.add([said(1)])
    before = (tmp_path / "s" / FILE).read_bytes()
    with _largest_file(len(before) + 10):
        with pytest.raises(OSError, match="File too large"):
            spool.add([said(2)])
        readings.take(told, 10**9, 10**9)
    assert not list((tmp_path / "s/readings").glob("*.ndjson")) or readings.dropped
    assert gone
    assert readings.dropped >= 1
    assert not (tmp_path / "s" / RESERVE).exists()
    assert (tmp_path / "s" / FILE).read_bytes() == before, "half a line is no line"
    spool.add([said(2)])
    receiver = Receiver()
    assert deliver(spool, receiver) == 2


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    import signal

    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)


def test_processes_that_add_at_once_keep_their_lines_apart(tmp_path: Path) -> None:
    Spool(tmp_path / "s")
    children: list[int] = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            for each in range(25):
                Spool(tmp_path / "s").add([said(1000 * number + each)])
            os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    receiver = Receiver()
    assert deliver(Spool(tmp_path / "s"), receiver) == 100
    assert len(receiver.keys) == 100


def test_memories_alone_neither_wait_nor_pile_up(tmp_path: Path) -> None:
    """A kernel that talks on and on is remembered every few seconds, though nothing is stated."""
    spool, receiver = Spool(tmp_path / "s"), Receiver()
    spool.add([said(1)], {"number": 0})
    deliver(spool, receiver)
    for number in range(100):
        spool.add([], {"number": number, "padding": "x" * 50_000})
        assert spool.empty, "no process is started for it"
    assert (tmp_path / "s" / FILE).stat().st_size < 3 << 20
    assert (Spool(tmp_path / "s").memory() or {})["number"] == 99
    spool.add([said(2)], {"number": 100})
    assert deliver(Spool(tmp_path / "s"), receiver) == 1


def test_a_week_away_keeps_the_facts_and_one_memory(tmp_path: Path) -> None:
    receiver = Receiver()
    for number in range(300):
        spool = Spool(tmp_path / "s")
        if number == 150:  # some were had before the server went away
            waiting = spool.waiting(50)
            assert waiting is not None
            receiver(waiting.facts)
            spool.had(waiting.place)
        place = spool.waiting(1)
        spool.add([said(number)], {"number": number, "padding": "x" * 50_000})
        if number % 50 == 49 and place is not None:
            spool.had(place.place)  # what a file that is no more was had up to says nothing
            receiver(place.facts)
    size = (tmp_path / "s" / FILE).stat().st_size
    assert size < 3 << 20, "not 300 memories of 50 kB"
    assert (Spool(tmp_path / "s").memory() or {})["number"] == 299
    deliver(Spool(tmp_path / "s"), receiver)
    assert sorted(int(key.split("/")[2]) for key in receiver.keys) == list(range(300))


@pytest.mark.parametrize("sort", ["first line", "zeros", "a bit", "had"])
def test_a_disk_that_spoils_a_byte_stops_nothing(tmp_path: Path, sort: str) -> None:
    """What was spoilt is put aside; every other fact arrives, and new ones are taken."""
    spool, receiver = Spool(tmp_path / "s"), Receiver()
    for number in range(3):
        spool.add([said(number)], {"number": number})
    path = tmp_path / "s" / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    at = 0 if sort == "first line" else 2
    if sort == "had":
        (tmp_path / "s" / "spool.had").write_bytes(b'["spool"]')
    elif sort == "a bit":
        lines[at] = lines[at].replace(b"first_monotonic", b"worst_monotonic")
    else:
        lines[at] = bytes(len(lines[at]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    spool = Spool(tmp_path / "s")
    assert (spool.memory() or {})["number"] == 2
    spool.add([said(3)])
    deliver(spool, receiver)
    told = [key.split("/")[2] for key in receiver.keys]
    assert told == (["0", "2", "3"] if at == 2 and sort != "had" else ["0", "1", "2", "3"])
    assert spool.empty
    assert (tmp_path / "s" / "spool.spoilt").exists() == (sort != "had")
    assert deliver(Spool(tmp_path / "s"), receiver) == 0
