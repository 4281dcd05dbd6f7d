"""The agent and its children killed at any moment: each fault is a fact once, with all its lines, and a verdict once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ouvrage.adapters.clock import monotonic_us
from ouvrage.agent.probing.deliver import deliver, into_store
from ouvrage.agent.probing.heart import last_beat
from ouvrage.agent.probing.now import Now, read_now
from ouvrage.agent.probing.spool import Spool
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.kinds import read
from ouvrage.store.store import open_store
from tests.support.meter import SOURCES, until
from tests.support.nvml import Cards, build, compiler
from tests.support.stopped_machine import Tree

AGO_US = 400_000_000
"""Faults are stamped so long ago that they are over when they are read: nobody waits for it."""


class Watched:
    """``ouvrage agent run`` on a tree."""

    def __init__(self, place: Path, environment: dict[str, str] | None = None) -> None:
        self.tree = Tree(place / "root")
        self.state, self.home = place / "state", place / "home"
        self.process: subprocess.Popen[bytes] | None = None
        self._place = place
        self._environment = {
            **os.environ, **(environment or {}), "PYTHONPATH": str(SOURCES), "OUVRAGE_HOME": str(self.home),
        }  # fmt: skip

    def start(self, node: str = "n1") -> None:
        words = [sys.executable, "-m", "ouvrage", "agent", "run", "--state", str(self.state)]
        words += ["--node", node, "--root", str(self.tree.root)]
        with (self._place / "said.txt").open("ab") as said:
            self.process = subprocess.Popen(words, env=self._environment, stdout=said, stderr=said)

    def children(self) -> list[int]:
        assert self.process is not None
        with suppress(OSError):
            path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
            return [int(word) for word in Path(path).read_text().split()]
        return []

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(20)

    def words(self) -> str:
        return (self._place / "said.txt").read_text()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


@pytest.mark.parametrize(
    "kills", [pytest.param(20), pytest.param(500, marks=pytest.mark.soak)], ids=["20", "500"]
)
def test_killed_at_any_moment_each_fault_is_a_fact_once(watched: Watched, kills: int) -> None:
    """Every other time a child, else the agent; faults come all the while, some lines of one before and after a kill."""
    chance = random.Random(20261201)
    wanted: Counter[str] = Counter()
    watched.start()
    for number in range(kills):
        bus = f"0000:{0x20 + number % 0xD0:02x}:{number // 0xD0:02x}"
        for _ in range(1 + number % 3):
            at = monotonic_us() - AGO_US
            watched.tree.log(f"NVRM: Xid (PCI:{bus}): 79, pid={number}, name=a, gone", at)
        wanted[bus] = 1 + number % 3
        assert watched.process is not None
        with suppress(subprocess.TimeoutExpired):
            watched.process.wait(chance.uniform(0.0, 0.5))
        children = watched.children()
        if number % 2 and children:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(children), signal.SIGKILL)
        else:
            watched.kill()
            watched.start()
    _settled(watched, wanted)
    assert watched.stop() == 0, watched.words()
    spool = Spool(watched.state)
    deliver(spool, into_store(watched.home))
    with open_store(watched.home / "ouvrage.db") as store:
        events = [read(entry.fact) for entry in store.records(kind="health.event")]
        verdicts = [read(entry.fact) for entry in store.records(kind="health.verdict")]
        assert store.records(kind="ledger.conflict") == []
    assert Counter({e.device: e.count for e in events}) == wanted
    assert len(events) == len(wanted), "each fault once"
    critical = Counter(v.device for v in verdicts if v.check == "xid" and v.verdict == "CRITICAL")
    assert critical == Counter(dict.fromkeys(wanted, 1)), "each verdict once"


def _settled(watched: Watched, wanted: Counter[str]) -> None:
    def there() -> bool:
        now = read_now(watched.state)
        found = {c.device for c in now.checks if c.check == "xid"} if now else set()
        return found >= set(wanted)

    until(there, f"every fault in the view\n{watched.words()[-2000:]}")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiler() is None:
        pytest.skip("no C compiler here to build the stand-in for libnvidia-ml.so.1")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.mark.parametrize("sort", ["hang", "crash"])
def test_a_driver_that_hangs_or_crashes_stops_neither_heart_nor_probes(
    library: Path, tmp_path: Path, sort: str
) -> None:
    """From the first look on: its GPUs are UNKNOWN and the rest of the machine is watched as ever."""
    cards = Cards(library, tmp_path / "nvml-state")
    cards.set(count=2, **{sort: 1})
    watched = Watched(tmp_path, cards.environment)
    watched.start()
    try:
        until(lambda: (now := read_now(watched.state)) and _of(now, "gpu"), watched.words())
        now = read_now(watched.state)
        assert now is not None
        assert _of(now, "gpu") == {"UNKNOWN"}
        assert _of(now, "link") == {"OK"}
        fault = next(p.fault for p in now.probes if p.name == "gpu")
        assert ("no answer within" if sort == "hang" else "by signal 11") in (fault or "")
        beat = last_beat(watched.state)
        assert beat is not None
        assert monotonic_us() - beat["monotonic_us"] < 6_000_000
    finally:
        assert watched.stop() == 0


def _of(now: Now, check: str) -> set[str]:
    return {each.verdict for each in now.checks if each.check == check}


def test_a_second_watch_of_one_directory_is_refused(watched: Watched) -> None:
    watched.start()
    until(lambda: read_now(watched.state), watched.words())
    second = Watched.__new__(Watched)
    second.__dict__ |= {**watched.__dict__, "process": None}
    second.start()
    assert second.process is not None
    assert second.process.wait(20) == 2
    assert "agent/watching" in watched.words()
    assert watched.stop() == 0


def test_nonsense_in_its_directory_keeps_no_watch_from_its_work(watched: Watched) -> None:
    (watched.state / "verify" / "directory.json").mkdir(parents=True)
    for name, text in {
        "verify/list.json": "[1]", "verify/sorts.json": '{"device": [], "gone": {}}', "verify/deep.json": "[" * 100_000,
        "epoch": "nan", "hands-off": "9" * 5000, "now.json": "[]", "spool.had": "[]", "spool.ndjson": "\0\0\0",
        "heartbeat": "[]",
    }.items():  # fmt: skip
        (watched.state / name).write_text(text)
    watched.start()
    until(lambda: _checks(watched) > 3, watched.words())
    assert watched.stop() == 0, watched.words()
    assert sorted(path.name for path in (watched.state / "verify").iterdir()) == ["directory.json"]


def _checks(watched: Watched) -> int:
    with suppress(OuvrageError):
        now = read_now(watched.state)
        return 0 if now is None else len(now.checks)
    return 0


@pytest.mark.parametrize(("node", "code"), [("a\x1b[2J", "name"), ("n1", "state")])
def test_a_name_or_a_directory_that_is_none_is_refused_in_words(
    watched: Watched, node: str, code: str
) -> None:
    if code == "state":
        (watched.state / "watch.lock").mkdir(parents=True)  # it cannot be opened for writing
    watched.start(node)
    assert watched.process is not None
    assert watched.process.wait(20) == 2
    assert f"error[agent/{code}]" in watched.words()
    assert "\x1b" not in watched.words()
