"""What goes on by itself: the runner that a server keeps, the books that are looked at while work goes on, what is forgotten hourly."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from ouvrage.ledger.laws import Law
from ouvrage.server import loops
from ouvrage.store import audit
from tests.blackbox.home import Home
from tests.faults_platform.processes import Asker
from tests.platform.working import MIDMONTH_US, Clock, Working, working_on
from tests.support.meter import until
from tests.support.orders import missing
from tests.support.server import running

HOUR = 3_600_000_000


# Twenty minutes before December 2026.
MONTH_END_US = 1_796_083_200_000_000 - HOUR // 3


@pytest.fixture(params=[MIDMONTH_US])
def working(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Working]:
    with working_on(tmp_path / "state", clock=Clock(request.param)) as made:
        yield made


@pytest.mark.slow
def test_a_server_killed_and_started_elsewhere_has_its_runner_again(tmp_path: Path) -> None:
    """The runner of the killed server ends with it; else it would keep the next one's out, and ask an address that is gone."""
    why = missing()
    if why:
        pytest.skip(why)
    state, home = tmp_path / "state", Home(tmp_path / "home", dict(os.environ))
    up = ("up", "--state", str(state), "--listen", "127.0.0.1:0", "--detach", "--no-agent")
    owner = None
    try:
        for number in range(2):
            said = home(*up)
            assert said.code == 0, said.err
            url = (state / "server.url").read_text().strip()
            owner = Asker(url, (state / "owner.token").read_text("ascii").strip())
            asker = owner
            until(lambda asker=asker: _present(asker), f"the node, at the server of start {number}")
            if number == 0:
                owner.close()
                os.kill(int((state / "server.pid").read_text()), signal.SIGKILL)
    finally:
        if owner is not None:
            owner.close()
        home("down", "--state", str(state))


def _present(owner: Asker) -> bool:
    """Whether a node was heard by this very server."""
    nodes = owner.get("/v1/nodes")["items"]
    return bool(nodes) and nodes[0]["state"] != "away" and _asked_again(owner)


def _asked_again(owner: Asker) -> bool:
    terms = {"name": "small", "cpus": 1, "memory_mib": 32, "disk_mib": 8, "rate": "0.10"}
    if owner("POST", "/v1/offers", terms).status_code not in (201, 409):
        return False
    made = owner.post(
        "/v1/jobs", {"project": "main", "offer": "small", "spec": {"command": ["true"]}}
    )
    until(lambda: owner.get(f"/v1/jobs/{made['job']}")["state"] == "done", "a job that is done")
    return True


def test_books_that_are_looked_at_while_work_goes_on_hold(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts and tables are read as of one moment, whatever is recorded between the two."""
    working.node()
    working.offer("standard")
    ann = working.tenant("acme")
    platform = working.server.platform

    def meanwhile(_: object) -> Iterator[tuple[str, str]]:
        working.submit(ann)
        working.engine.observe()
        yield from ()

    law = Law(name="test/meanwhile", statement="somebody works", check=meanwhile)
    monkeypatch.setattr(audit, "layer_laws", lambda: [law])
    before = platform.store.head().seq
    found = audit.audit(platform.store, platform.state_dir)
    assert found.first is None, found.first
    assert (found.facts, platform.store.head().seq > before) == (before, True)


@pytest.mark.parametrize(
    ("working", "charges"), [(MIDMONTH_US, 2), (MONTH_END_US, 8)], indirect=["working"]
)
def test_a_runner_away_for_an_hour_comes_back_with_all_that_it_did(
    working: Working, charges: int
) -> None:
    """Its work went on, is told once, and is charged for as long as it ran; after two hours it is given up and costs nothing.

    Over a month's end each has a line for either month, and what was charged for the work given up is given back.
    """
    twin = working.node(cpus=4)
    working.offer("standard")
    ann = working.tenant("acme")
    jobs = [working.submit(ann)["job"] for _ in range(4)]
    working.engine.observe()
    twin.ask()
    attempts = {start.job: start.attempt for start in twin.starts}
    twin.report([twin.began(attempt) for attempt in attempts.values()])
    working.clock.move(HOUR)
    working.reconcile()
    working.engine.observe()
    assert {ann.get(f"/v1/jobs/{job}")["state"] for job in jobs} == {"running"}
    ended = [twin.ended(attempts[job]) for job in jobs[:2]]
    for _ in range(3):
        twin.report(ended)
        twin.ask()
    working.clock.move(3 * HOUR)
    working.reconcile()
    for job in jobs[2:]:
        assert ann.get(f"/v1/jobs/{job}")["end_code"] == "job/lost"
    twin.ask()
    twin.report([twin.ended(attempts[job]) for job in jobs[2:]])
    working.reconcile()
    working.engine.observe()
    twin.ask()
    assert len(twin.starts) == 4
    found = audit.audit(working.server.platform.store, working.server.platform.state_dir)
    assert found.first is None, found.first
    leases = {each["attempt"]: each for each in working.owner.get("/v1/leases?limit=200")["items"]}
    kinds = [entry.fact.kind for entry in working.records()]
    assert kinds.count("attempt.ended") == kinds.count("lease.ended") == 4
    for job in jobs[:2]:
        assert leases[attempts[job]]["billable_us"] == HOUR
    for job in jobs[2:]:
        assert leases[attempts[job]]["billable_us"] == 0
    payloads = [
        entry.fact.payload for entry in working.records() if entry.fact.kind == "platform.charge"
    ]
    owed = sum(Decimal(json.loads(each)["amount"]) for each in payloads)
    assert (len(payloads), owed) == (charges, Decimal("0.60"))


def test_what_is_over_is_forgotten_every_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = threading.Semaphore(0)
    monkeypatch.setattr(loops, "HOUR", 1_000)
    monkeypatch.setattr(loops, "tidy", lambda _: looked.release())
    with running(tmp_path / "state"):
        for _ in range(3):
            assert looked.acquire(timeout=20)
