"""Children under deadlines: one that hangs, ends, talks nonsense or cannot be ended, and what the others do meanwhile."""

from __future__ import annotations

import json
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

CHILD = r"""
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
    if asked["probe"] == "links" and sort == "forks":
        if os.fork(): os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open({mark!r}, "w") as file: file.write(str(os.getpid()))
        while True: signal.pause()
    if asked["probe"] == "links" and sort == "drips":
        while True: os.write(1, b"["); time.sleep(0.01)
    if asked["probe"] == "links" and sort == "mute":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.close(1)
        while True: signal.pause()
    if asked["probe"] == "links" and sort == "garbage": print("not json at all", flush=True); continue
    if asked["probe"] == "links" and sort == "other": asked["n"] += 1
    if asked["probe"] == "links" and sort == "long": print("x" * (5 << 20), flush=True); continue
    told = {{"n": asked["n"], "probe": asked["probe"], "values": {{}}, "at_us": 1, "monotonic_us": time.monotonic_ns() // 1000}}
    if asked["probe"] == "links" and sort == "later": told["monotonic_us"] += 10**15
    if asked["probe"] == "links" and sort == "earlier": told["monotonic_us"] = 1
    if asked["probe"] == "links" and sort == "no number": told["values"] = {{"x": float("nan")}}
    if asked["probe"] == "links" and sort == "bytes": told["values"] = {{"a\udcff": ["\udcfe", {{"x": "\ud800"}}]}}
    text = json.dumps(told)
    if asked["probe"] == "links" and sort == "endless": text = text.replace("{{}}", '{{"x": 1e999}}')
    if asked["probe"] == "links" and sort == "deep": text = text.replace("{{}}", '{{"x": ' + "[" * 200000 + "]" * 200000 + "}}")
    if asked["probe"] == "links" and sort == "flood":
        while True: print(text, flush=True)
    print(text, flush=True)
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


def _lives(pid: int) -> bool:
    """Whether a process is there and no zombie that nobody waits for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def answered(lanes: Lanes, *names: str) -> dict[str, Answer]:
    """The answers of these probes, each within its deadline."""
    got: dict[str, Answer] = {}

    def there() -> bool:
        got.update((each.probe, each) for each in lanes.wait(0.5))
        return got.keys() >= set(names)

    until(there, f"answers of {names}")
    return got


@pytest.mark.parametrize(
    ("lanes", "sort", "words"),
    [
        ("hang", "hang", "no answer within 1 s"),
        ("crash", "crash", "by signal 11"),
        ("drips", "hang", "no answer within 1 s"),
        ("garbage", "garbage", "not json at all"),
        ("other", "garbage", "the answer is none"),
        ("long", "garbage", "the answer is none"),
        ("later", "garbage", "the answer is none"),
        ("earlier", "garbage", "the answer is none"),
        ("no number", "garbage", "the answer is none"),
        ("endless", "garbage", "the answer is none"),
        ("deep", "garbage", "the answer is none"),
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


@pytest.mark.parametrize("lanes", ["mute"], indirect=True)
def test_a_child_that_closes_its_output_and_lives_on_is_no_second_time_asked(
    lanes: Lanes,
) -> None:
    """As a client of a driver does that hangs while it ends: another of them would hang beside it, look after look."""
    lanes.ask("links", {})
    told = answered(lanes, "links")["links"]
    assert "closed its output and has not ended" in (told.fault or "")
    assert [each.probe for each in lanes._lanes["host"].leaving] == ["links"]
    lanes.ask("links", {})
    assert "has not ended yet" in (answered(lanes, "links")["links"].fault or "")
    assert lanes.pids == []
    until(lambda: lanes.wait(0.1) or not lanes._lanes["host"].leaving, "its end")


@pytest.mark.parametrize("lanes", ["forks"], indirect=True)
def test_what_a_child_started_is_ended_with_it(lanes: Lanes, tmp_path: Path) -> None:
    """A child that is gone while another process holds its output: nobody answers, and nothing is left behind."""
    lanes.ask("links", {})
    assert answered(lanes, "links")["links"].sort == "hang"
    left = int((tmp_path / "mark").read_text())
    until(lambda: lanes.wait(0.1) or not lanes._lanes["host"].leaving, "its end")
    until(lambda: not _lives(left), "the end of what it started")


@pytest.mark.parametrize("lanes", ["bytes"], indirect=True)
def test_names_that_are_no_text_are_written_out(lanes: Lanes) -> None:
    """An interface or a mount may be called by any bytes; what is told of it must fit into files and on a terminal."""
    lanes.ask("links", {})
    values = answered(lanes, "links")["links"].values
    assert values == {"a\\udcff": ["\\udcfe", {"x": "\\ud800"}]}
    json.dumps(values, ensure_ascii=False).encode()


@pytest.mark.parametrize("lanes", ["flood"], indirect=True)
def test_a_child_that_floods_its_output_is_ended(lanes: Lanes) -> None:
    lanes.ask("links", {})
    assert answered(lanes, "links")["links"].fault is None, "its first line is an answer"
    flooding = lanes.pids[0]
    until(lambda: lanes.wait(0.1) or flooding not in lanes.pids, "it is given up")
    until(lambda: lanes.wait(0.1) or not lanes._lanes["host"].leaving, "its end")
    lanes.ask("edac", {})
    assert answered(lanes, "edac")["edac"].fault is None


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
