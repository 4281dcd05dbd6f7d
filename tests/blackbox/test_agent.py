"""A machine's own agent as its owner types it: from an empty home to a fault that is seen, kept and verified away."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.health import Verdict
from ouvrage.store.store import open_store
from tests.blackbox.home import Home, Said
from tests.support.meter import until
from tests.support.stopped_machine import BOOT, Tree

BUS = "0000:41:00"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


@pytest.fixture
def agent(ouvrage: Home, tree: Tree) -> Iterator[subprocess.Popen[str]]:
    made = _started(ouvrage, tree)
    yield made
    if made.poll() is None:
        made.kill()
    made.wait()
    if made.stdout is not None:
        made.stdout.close()


def _started(ouvrage: Home, tree: Tree) -> subprocess.Popen[str]:
    words = ("agent", "run", "--node", "n1", "--root", str(tree.root))
    made = ouvrage.start(*words, stdout=subprocess.PIPE)
    assert made.stdout is not None
    assert made.stdout.readline() == f"Watching n1, with what it finds in {ouvrage.path}/agent\n"
    assert made.stdout.readline() == "Now: ouvrage node watch\n"
    return made


def _verdict(ouvrage: Home, check: str, device: str | None = None) -> str:
    said = ouvrage.inside("node", "watch", "--json")
    if said.code:
        return "none yet"
    found = [c for c in said.json["checks"] if (c["check"], c["device"]) == (check, device)]
    return found[0]["verdict"] if found else "none yet"


def test_before_any_agent_looked_there_is_nothing_to_show(ouvrage: Home) -> None:
    for words in (("node", "watch"), ("node", "show"), ("node", "verify")):
        said = ouvrage.inside(*words)
        assert said.code == 2
        assert "agent/none" in said.err
        assert "hint: ouvrage agent run watches it; ouvrage check all looks once" in said.err
    assert not ouvrage.path.exists()


def test_from_an_empty_home_to_a_fault_that_was_repaired(
    ouvrage: Home, tree: Tree, agent: subprocess.Popen[str]
) -> None:
    until(lambda: _verdict(ouvrage, "xid") == "OK", "the first look")
    tree.log(
        f"NVRM: Xid (PCI:{BUS}): 79, pid=1, name=python, GPU has fallen off the bus.",
        monotonic_us(),
    )
    until(lambda: _verdict(ouvrage, "xid", BUS) == "CRITICAL", "the fault")
    said = ouvrage.inside("node", "watch", "--once", "--plain")
    _is_transcript(said)
    assert ouvrage.inside("node", "show", "--plain").out.splitlines()[0] == said.first

    verified = ouvrage.inside("node", "verify", "--device", BUS)
    assert verified.out == (
        f"{BUS} is looked at anew, within its probes' intervals.\nThen: ouvrage node watch --once\n"
    )
    until(lambda: _verdict(ouvrage, "xid", BUS) == "OK", "the repair")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(20) == 0
    until(lambda: _facts(ouvrage, BUS) == ["CRITICAL", "OK"], "its facts")
    checked = ouvrage.inside("verify", "--json")
    assert checked.code == 0, checked


def _is_transcript(said: Said) -> None:
    lines = said.out.splitlines()
    assert said.first == (
        f"n1 is CRITICAL: xid {BUS}: Xid 79, GPU no longer answers on PCIe: reboot; a power cycle where it is"
        " still miss… (measured)"
    )
    assert [line for line in lines if line.startswith("check")] == [next(iter(lines[2:]))]
    row = next(line for line in lines if line.startswith("xid "))
    assert "CRITICAL (held until verified)" in row
    assert "  gpu told nothing: this machine has no NVIDIA GPU" in lines
    assert lines[-3:] == [
        "what to do   keep new work away, let it end, reboot the machine",
        "how          docs/runbooks/reboot.md",
        "more         --json shows the evidence; repaired? ouvrage node verify",
    ]


def _facts(ouvrage: Home, device: str) -> list[str]:
    """The verdicts about one part in the home's store, in order; what waits is delivered by a start of the agent."""
    payloads = [
        json.loads(str(each)) for row in ouvrage.facts() for each in row if _is_payload(each)
    ]
    return [p["verdict"] for p in payloads if p.get("check") == "xid" and p["device"] == device]


def _is_payload(value: object) -> bool:
    return isinstance(value, str) and value.startswith("{")


def test_an_agent_that_fell_silent_says_nothing_of_now(
    ouvrage: Home, tree: Tree, agent: subprocess.Popen[str]
) -> None:
    until(lambda: _verdict(ouvrage, "link", "eth0") == "OK", "the first look")
    agent.kill()
    agent.wait()
    beat = {"at_us": 1, "boot": BOOT, "monotonic_us": max(0, monotonic_us() - 95_000_000)}
    (ouvrage.path / "agent/heartbeat").write_text(json.dumps(beat))
    said = ouvrage.inside("node", "watch", "--once")
    assert said.first.startswith("n1 is UNKNOWN: its agent was last heard ")
    assert ouvrage.inside("node", "watch", "--json").json["verdict"] == "UNKNOWN"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[watch]\npeer = ['a']\n", "watch.peer = ['a'] is not understood"),
        ("[watch\n", "is no TOML"),
        ("[watch]\nexpect_gpus = 'many'\n", "watch.expect_gpus = 'many' is not understood"),
    ],
)
def test_a_setting_that_is_not_understood_starts_nothing(
    ouvrage: Home, text: str, words: str
) -> None:
    (ouvrage.path / "agent").mkdir(parents=True)
    (ouvrage.path / "agent/agent.toml").write_text(text)
    said = ouvrage.inside("agent", "run")
    assert said.code == 2
    assert "error[agent/config]" in said.err
    assert words in said.err
    assert ouvrage.files() == ["agent/agent.toml"]


def test_what_cannot_be_said_of_nothing_is_refused(ouvrage: Home) -> None:
    said = ouvrage.inside("node", "verify", "--gone")
    assert (said.code, "verify/gone" in said.err) == (2, True)


def test_node_check_is_check_all_with_its_options_and_codes(ouvrage: Home) -> None:
    ours, theirs = (
        ouvrage.inside("node", "check", "--json"),
        ouvrage.inside("check", "all", "--json"),
    )
    assert ours.code == theirs.code
    assert ours.json["verdict"] == theirs.json["verdict"]
    assert ouvrage.inside("node", "check", "--nonsense").code == 3


def test_rules_on_trial_say_what_they_would_have_done(ouvrage: Home) -> None:
    none = ouvrage.inside("node", "trials")
    assert (none.code, none.first) == (0, "No rule on trial has said anything yet.")
    ouvrage.path.mkdir(parents=True, exist_ok=True)
    said = [("link-errors", True, 0), ("link-errors", True, 5), ("link-down", False, 5)]
    with open_store(ouvrage.path / "ouvrage.db") as store:
        store.append([_said(*each) for each in said], now_us=now_us(), own_source="ab" * 16)
    told = ouvrage.inside("node", "trials", "--json").json
    assert [(t["rule"], t["would_have"], t["nodes"], t["agreed"], t["over"]) for t in told] == [
        ("link-errors", 2, 1, 1, True)
    ]
    shown = ouvrage.inside("node", "trials")
    assert (
        shown.first == "1 rule on trial spoke; 1 long enough to decide about. They fenced nothing."
    )


def _said(code: str, shadow: bool, day: int) -> Fact:
    at_us = 1_700_000_000_000_000 + day * DAY
    value = Verdict(
        node="n1", device="eth0", check="link", verdict="CRITICAL", code=code, evidence=(), action="look",
        since_us=1, boot=BOOT, epoch=0, shadow=shadow,
    )  # fmt: skip
    return fact_of(
        value, source="ab" * 16, id=f"{code}/{day}", subject="node:n1", valid_from=at_us, valid_to=None,
        grade=Grade.MEASURED,
    )  # fmt: skip
