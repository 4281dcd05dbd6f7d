"""The watch on a disk with no room left: its heart goes on, readings go first, and no fact is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from ouvrage.adapters.clock import monotonic_us
from ouvrage.agent.probing.deliver import deliver, into_store
from ouvrage.agent.probing.heart import last_beat
from ouvrage.agent.probing.now import read_now
from ouvrage.agent.probing.spool import RESERVE, Spool
from ouvrage.ledger.kinds import read
from ouvrage.store.store import open_store
from tests.agent.test_watch_kills import AGO_US, Watched
from tests.faults_platform.test_disk_full import SmallDisk, disk
from tests.support.meter import until

pytestmark = pytest.mark.slow
__all__ = ["disk"]


@pytest.fixture
def watched(disk: SmallDisk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    made = Watched(tmp_path_factory.mktemp("watched"))
    made.state = disk.at / "state"
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()


def test_without_room_facts_are_kept_and_it_says_so(disk: SmallDisk, watched: Watched) -> None:
    watched.start()
    until(lambda: (watched.state / "readings/now.ndjson").exists(), watched.words())
    until(lambda: Spool(watched.state).empty, "everything is delivered")
    disk.fill()
    for number in range(12):
        bus = f"0000:{0x20 + number:02x}:00"
        at = monotonic_us() - AGO_US
        watched.tree.log(f"NVRM: Xid (PCI:{bus}): 79, pid={number}, name=a, gone", at)
    until(lambda: len(_critical(watched)) == 12, f"the faults in the view\n{watched.words()}")
    assert not (watched.state / RESERVE).exists() or not list(
        (watched.state / "readings").glob("*")
    )
    until(lambda: _own(watched) == "WARN", "it says so")
    beat = last_beat(watched.state)
    assert beat is not None
    assert monotonic_us() - beat["monotonic_us"] < 7_000_000
    disk.make_room()
    assert watched.stop() == 0
    deliver(Spool(watched.state), into_store(watched.home))
    with open_store(watched.home / "ouvrage.db") as store:
        events = [read(entry.fact) for entry in store.records(kind="health.event")]
    assert Counter(each.device for each in events) == Counter(
        f"0000:{0x20 + number:02x}:00" for number in range(12)
    )


def _critical(watched: Watched) -> list[str | None]:
    now = read_now(watched.state)
    return [c.device for c in now.checks if c.verdict == "CRITICAL"] if now else []


def _own(watched: Watched) -> str:
    told = json.loads((watched.state / "now.json").read_bytes())
    return next(c["verdict"] for c in told["checks"] if c["check"] == "agent")
