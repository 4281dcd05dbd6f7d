"""Children under deadlines: one that hangs, ends, talks nonsense or cannot be ended, and what the others do meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ouvrage.agent.probing import lanes as lanes_module
from ouvrage.agent.probing import probes
from ouvrage.agent.probing.asking import Answer
from ouvrage.agent.probing.lanes import Lanes
from tests.support.meter import until

CHILD = """
import json, os, signal, sys, time
sort = {sort!r}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["probe"] == "links" and sort == "hang": signal.pause()
    if asked["probe"] == "links" and sort == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: signal.pause()
    if asked["probe"] == "links" and sort == "crash": os.kill(os.getpid(), signal.SIGSEGV)
    if asked["probe"] == "links" and sort == "once" and not os.path.exists({mark!r}):
        open({mark!r}, "w").close()
        os._exit(3)
    if asked["probe"] == "links" and sort == "garbage": print("not json at all", flush=True); continue
    if asked["probe"] == "links" and sort == "other": asked["n"] += 1
    if asked["probe"] == "links" and sort == "long": print("x" * (5 << 20), flush=True); continue
    print(json.dumps({{"n": asked["n"], "probe": asked["probe"], "values": {{}}, "at_us": 1, "monotonic_us": 1}}), flush=True)
"""


@pytest.fixture
def lanes(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lanes]:
    """Lanes whose children behave as the test's parameter says; the deadline is short."""
    by_name = {n: replace(p, deadline_s=1) for n, p in probes.BY_NAME.items()}
    monkeypatch.setattr(lanes_module, "BY_NAME", by_name)
    monkeypatch.setattr(lanes_module, "_KILLED_AFTER_US", {True: 300_000, False: 300_000})
    text = CHILD.format(sort=request.param, mark=str(tmp_path / "mark"))
    made = Lanes(command=[sys.executable, "-c", text])
    yield made
    made.close()


def answered(lanes: Lanes, *names: str) -> dict[str, Answer]:
    """The answers of these probes, each within its deadline."""
    got: dict[str, Answer] = {}
    for _ in range(40):
        got |= {each.probe: each for each in lanes.wait(0.5)}
        if got.keys() >= set(names):
            return got
    raise AssertionError(f"only {sorted(got)} answered")


@pytest.mark.parametrize(
    ("lanes", "sort", "words"),
    [
        ("hang", "hang", "no answer within 1 s"),
        ("crash", "crash", "by signal 11"),
        ("garbage", "garbage", "not json at all"),
        ("other", "garbage", "the answer is none"),
        ("long", "garbage", "the answer is none"),
    ],
    indirect=["lanes"],
)
def test_what_goes_wrong_with_one_probe_is_said_and_holds_up_no_other(
    lanes: Lanes, sort: str, words: str
) -> None:
    for name in ("links", "edac", "memory"):
        lanes.ask(name, {})
    got = answered(lanes, "links", "edac", "memory")
    assert (got["links"].sort, got["links"].values) == (sort, None)
    assert words in (got["links"].fault or "")
    assert got["edac"].fault is None
    assert got["memory"].values == {}


@pytest.mark.parametrize("lanes", ["once"], indirect=True)
def test_a_child_that_was_killed_is_replaced_and_asked_once_more(lanes: Lanes) -> None:
    lanes.ask("links", {})
    assert answered(lanes, "links")["links"].fault is None


@pytest.mark.parametrize("lanes", ["deaf"], indirect=True)
def test_a_child_that_does_not_end_is_asked_nothing_until_it_is_killed(lanes: Lanes) -> None:
    lanes.ask("links", {})
    assert answered(lanes, "links")["links"].sort == "hang"
    lanes.ask("links", {})
    told = answered(lanes, "links")["links"]
    assert told.sort == "hang"
    assert "has not ended yet" in (told.fault or "")
    lanes.ask("edac", {})
    assert answered(lanes, "edac")["edac"].fault is None, "another child serves its lane"
    until(lambda: lanes.wait(0.1) or not lanes._lanes["host"].leaving, "its end")
    lanes.ask("links", {})
    assert "no answer within" in (answered(lanes, "links")["links"].fault or ""), "asked anew"


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A group whose processes are frozen: they wait in the kernel and no signal ends them, as with a stuck driver."""
    place = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() or not (place / "cgroup.procs").exists():
        pytest.skip(
            "only root, with the freezer of cgroups v1, makes a process that cannot be ended"
        )
    group = place / f"ouvrage-test-{os.getpid()}"
    group.mkdir()
    yield group
    (group / "freezer.state").write_text("THAWED")
    until(lambda: not (group / "cgroup.procs").read_text(), "its end")
    group.rmdir()


@pytest.mark.parametrize("lanes", ["deaf"], indirect=True)
def test_a_process_that_cannot_be_ended_is_the_finding(lanes: Lanes, freezer: Path) -> None:
    lanes.ask("links", {})
    stuck = lanes.pids[0]
    (freezer / "cgroup.procs").write_text(str(stuck))
    (freezer / "freezer.state").write_text("FROZEN")
    assert answered(lanes, "links")["links"].sort == "hang"
    until(lambda: _asked(lanes).sort == "stuck", "the finding")
    told = _asked(lanes)
    assert told.values is None
    assert f"process {stuck} hangs in the kernel" in (told.fault or "")
    lanes.ask("memory", {})
    assert answered(lanes, "memory")["memory"].fault is None, "another child serves its lane"
    assert stuck not in lanes.pids
    assert len(lanes.pids) == 1, "stuck children do not pile up"


def _asked(lanes: Lanes) -> Answer:
    lanes.ask("links", {})
    return answered(lanes, "links")["links"]
