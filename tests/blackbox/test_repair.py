"""From a verdict to a machine that takes work again, as its owner types it: fenced, work that waits and why, a runbook walked, verified, free."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.clock import monotonic_us, now_us
from ouvrage.agent.probing.spool import Spool
from ouvrage.base.grades import Grade
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import Verdict
from tests.blackbox.home import Home, Said
from tests.blackbox.platform_home import platform_of
from tests.support.meter import until


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def owner(ouvrage: Home, state: Path) -> Iterator[Home]:
    with platform_of(ouvrage, state, "--no-agent") as made:
        yield made


def find(owner: Home, node: str, verdict: str) -> None:
    """A check finds the machine so, as its watch would say it: into the spool, and from there to the server."""
    state = Path(owner.environment["OUVRAGE_TOKEN_FILE"]).parent
    key = state / "agent" / "node.json"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    value = Verdict(
        node=node, device=None, check="xid", verdict=verdict,
        code="xid-119" if verdict == "CRITICAL" else "", evidence=(),
        action="reboot" if verdict == "CRITICAL" else "none", since_us=monotonic_us(), boot=boot,
        epoch=epoch(owner, node), shadow=False,
    )  # fmt: skip
    said = Stated(
        natural=f"verdict/{value.since_us}", value=value, subject=f"node:{node}",
        valid_from=now_us(), valid_to=None, grade=Grade.MEASURED,
    )  # fmt: skip
    Spool(key.parent).add([said])
    words = ["--state", str(key.parent), "--server", owner.environment["OUVRAGE_URL"]]
    done = subprocess.run(
        [sys.executable, "-m", "ouvrage.agent.probing.deliver", *words],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def epoch(owner: Home, node: str) -> int:
    return owner.inside("node", "health", node, "--json").json["epoch"]


def walked(owner: Home, *words: str, answers: str) -> Said:
    process = owner.start(
        "node", "repair", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(answers, timeout=60)
    return Said(process.returncode, out, err)


def test_from_a_verdict_to_a_machine_that_takes_work_again(owner: Home) -> None:
    made = owner.inside(
        "offer", "create", "small", "--price", "0.30/h", "--cpus", "1", "--memory", "128MiB",
        "--audience", "own",
    )  # fmt: skip
    assert made.code == 0, made.err
    listed = until(lambda: _here(owner), "the machine's own runner")
    name = listed[0]["name"]
    assert listed[0]["health"] == "unknown"
    shown = owner.inside("node", "show", name)
    assert "  health     unknown: nothing has looked at it" in shown.out

    find(owner, name, "CRITICAL")
    until(lambda: owner.inside("node", "list", "--json").json[0]["fences"], "a fence")
    (told,) = owner.inside("node", "list", "--json").json
    assert (told["health"], told["fences"][0]["holder"]) == ("awaiting_hands", "automation")
    assert "awaiting hands" in owner.inside("node", "list").out

    waits = owner.inside("job", "submit", "--offer", "small", "--name", "waits", "--", "true")
    assert waits.code == 0, waits.err
    why = until(lambda: _explained(owner, "waits", "fenced"), "a reason")
    assert "placement/fenced" in why.out

    _says_what_is_next(owner, name)
    _is_walked(owner, name)
    until(lambda: _state(owner, name) == "verifying", "a verification")

    find(owner, name, "OK")
    until(lambda: _state(owner, name) == "healthy", "a machine that is well")
    until(lambda: "done" in owner.inside("job", "show", "waits").first, "the job that waited")
    told = owner.inside("node", "health", name, "--json").json
    assert told["fences"] == []
    assert [m["to"] for m in told["moves"]] == [
        "fenced", "draining", "awaiting_hands", "verifying", "healthy"
    ]  # fmt: skip
    assert [(r["rung"], r["dry_run"], r["verified"]) for r in told["remedies"]] == [
        ("reboot", True, None), ("reboot", False, True)
    ]  # fmt: skip
    assert [s["outcome"] for s in told["steps"]] == [
        "done",
        "done",
        "done",
        "skipped",
        "done",
        "done",
    ]
    assert told["steps"][2]["note"] == "boot id noted"
    assert told["parts"][0]["down_us"] > 0
    _refuses(owner, name)


def _says_what_is_next(owner: Home, name: str) -> None:
    health = owner.inside("node", "health", name)
    assert health.first.startswith(f"{name} is awaiting hands since ")
    assert health.first.endswith("; held back by automation")
    lines = health.out.splitlines()
    assert lines[1].startswith("  xid is CRITICAL (xid-119) since ")
    assert lines[2] == (
        "  next: reboot, by a person (reboot is not turned on); runbook: docs/runbooks/reboot.md"
    )
    assert lines[-1].startswith(f"Walk through it: ouvrage node repair {name}")


def _is_walked(owner: Home, name: str) -> None:
    part = walked(owner, name, answers="done fenced\nnot now\n")
    assert part.code == 0, part.err
    assert part.out.splitlines()[0] == (
        f"reboot on {name}: 5 steps. Answer done, skip or failed, and what you saw."
    )
    assert "Stopped. What was walked is recorded" in part.out
    whole = walked(owner, name, answers="d\nd boot id noted\ns nothing in it\nd\nd\n")
    assert whole.code == 0, whole.err
    assert whole.out.splitlines()[-1].endswith(
        f"reboot on {name}: done. Its checks verify it now; it is free when they find it well."
    )


def _refuses(owner: Home, name: str) -> None:
    set_ = owner.inside("node", "maintain", name, "--to", "2999-01-01")
    assert set_.code == 2
    assert "error[maintenance/period]" in set_.err
    well = walked(owner, name, answers="")
    assert (well.code, "error[node/well]" in well.err) == (2, True)
    laws = owner.inside("audit", "--json")
    assert any(e["action"] == "node.repair" for e in laws.json), laws.err


def _here(owner: Home) -> Any:
    found = owner.inside("node", "list", "--json").json
    return found if found and found[0]["state"] == "here" else None


def _explained(owner: Home, job: str, word: str) -> Said | None:
    said = owner.inside("job", "explain", job)
    return said if word in said.out else None


def _state(owner: Home, name: str) -> str:
    return owner.inside("node", "list", "--json").json[0]["health"]
