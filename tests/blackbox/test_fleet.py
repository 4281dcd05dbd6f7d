"""From an empty home to drafts of invoices, on a real Slurm: some sixty small jobs, a drained node, one that fails, a reservation."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.home import Home
from tests.support.slurm import USERS, Slurm
from tests.support.ssh_server import ssh_server

PHYSICIST, SPEAKER, GUEST, _ = USERS
REASON = "fan | loud x=y"
_UNSETTLED = 10 * 16 * 1_000_000
"""The last ten seconds of sixteen GPUs: accounting may not have them yet."""
_BUSY = "sleep 1; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"


def _work(lab: Slurm) -> list[str]:
    """Jobs of every sort, and what befell the nodes meanwhile; all of it is over at the end."""
    jobs: list[str] = []

    def submit(script: str, *options: str, user: str = PHYSICIST, count: int = 1) -> str:
        found = lab.submit(
            script, *options, *([f"--array=1-{count}"] if count > 1 else []), user=user
        )
        jobs.append(found)
        return found

    lab.run("scontrol", "update", "nodename=n3", "state=drain", f"reason={REASON}")
    lab.run(
        "scontrol",
        "create",
        "reservation",
        "reservationname=course",
        "starttime=now",
        "duration=60",
        "nodes=n4",
        "users=root",
    )
    failing = submit("sleep 60", "--gpus=4", "--exclusive", "--nodelist=n2", "--no-requeue")
    too_many = lab.submit("true", "--gpus=3", user=GUEST)  # guests have two at most
    stopped = submit("sleep 60", "--gpus=1", "--exclude=n2", user=SPEAKER)
    first = submit("sleep 1", "--gpus=1", "--exclude=n2", count=30)
    submit("sleep 1", "--gpus=1", "--exclude=n2", user=SPEAKER, count=14)
    submit("sleep 2", "--gpus=1", "--exclude=n2", user=GUEST, count=6)
    submit(_BUSY, "--cpus-per-task=8", "--mem=4G", "--gpus=1", "--exclude=n2", user=SPEAKER)
    submit("exit 3", "--gpus=1", "--exclude=n2")
    submit("sleep 1", "--cpus-per-task=2", "--exclude=n2", user=SPEAKER)
    submit("true", "--gpus=1", "--exclude=n2", f"--dependency=afterany:{first}")
    for job in (failing, stopped):
        lab.has_run(job)
    lab.run("scontrol", "update", "nodename=n2", "state=down", "reason=lost power")
    lab.run("scancel", stopped)
    lab.run("scontrol", "update", "nodename=n3", "state=resume")
    lab.run("scontrol", "delete", "reservationname=course")
    lab.finished(jobs)
    lab.run("scontrol", "update", "nodename=n2", "state=resume")
    submit("sleep 1", "--gpus=6", "--nodes=2", "--ntasks-per-node=1", "--gpus-per-task=3")
    lab.finished(jobs)
    lab.wait(["sinfo", "-h", "-p", "gpu", "-o", "%D %T"], "4 idle")
    lab.run("scancel", too_many)
    lab.finished([too_many])
    return jobs


def _truth(lab: Slurm) -> dict[str, int]:
    """GPU seconds by account as the accounting's own tables have them, past ``sacct`` and past us."""
    found: dict[str, int] = {}
    for line in lab.asked_of_accounting(
        "select acct, time_end - time_start, tres_alloc from lab_job_table join lab_assoc_table using (id_assoc) where time_start > 0"
    ):
        account, seconds, tres = line.split("\t")
        gpus = [each for each in tres.split(",") if each.startswith("1001=")]
        found[account] = found.get(account, 0) + int(seconds) * (int(gpus[0][5:]) if gpus else 0)
    return {account: seconds for account, seconds in found.items() if seconds}


@pytest.fixture(scope="module")
def worked(lab: Slurm) -> Slurm:
    _work(lab)
    return lab


@pytest.fixture
def owner(worked: Slurm, ouvrage: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """An empty home on the login node of the cluster, whose accounting has everything."""
    worked.settled()
    monkeypatch.setenv("SLURM_CONF", worked.environment["SLURM_CONF"])
    return replace(
        ouvrage, environment={**ouvrage.environment, "SLURM_CONF": worked.environment["SLURM_CONF"]}
    )


def _kinds(home: Home) -> dict[str, int]:
    found: dict[str, int] = {}
    for fact in home.facts():
        found[str(fact[3])] = found.get(str(fact[3]), 0) + 1
    return found


def test_from_an_empty_home_to_the_invoice(
    worked: Slurm, owner: Home, homes: Callable[[str], Home]
):
    said = owner.inside("fleet", "report")
    assert (said.code, "ouvrage fleet adopt" in said.err) == (2, True)
    before = worked.run("scontrol", "show", "nodes")
    said = owner("fleet", "adopt", "--save", "saved")
    assert said.code == 0, said
    assert said.first.startswith("lab: 16 GPUs on 4 nodes, 4 accounts, "), said.first
    assert said.out.splitlines()[-1].endswith("ouvrage fleet report")
    assert (
        worked.run("scontrol", "show", "nodes").count("State=IDLE")
        == before.count("State=IDLE")
        == 4
    )
    report = _report(owner)
    assert report["time"]["owned_us"] == sum(report["time"]["by_state_us"].values())
    assert report["time"]["by_state_us"].get("unknown", 0) <= _UNSETTLED
    truth = _truth(worked)
    assert {
        each["account"]: round(Fraction(each["gpu_hours"]) * 3600)
        for each in report["accounts"]
        if each["gpu_hours"] != "0"
    } == truth
    causes = {each["cause"]: each["us"] for each in report["time"]["by_cause"]}
    assert {f"drain {REASON}", "down lost power", "reservation course"} <= causes.keys()
    lost = {each["state"]: each for each in report["lost"]}
    assert {"NODE_FAIL", "FAILED", "CANCELLED"} <= lost.keys()
    # On a busy machine slurmdbd may hold a job's beginning before it holds its partition.
    assert {"gpu"} <= {each["partition"] for each in report["waits"]} <= {"gpu", "no partition"}
    assert any("8 cores" in advice for each in report["efficiency"] for advice in each["advice"])
    _prices(owner, truth)
    assert owner.inside("verify").code == 0
    _explained(owner)
    _again(owner, worked)
    other = homes("other")
    saved = owner.path.parent / "saved"
    seconds, rest = (saved / "clock.txt").read_text().split(" ", 1)
    (saved / "clock.txt").write_text(f"{int(seconds) + 60} {rest}")  # as if read a minute later
    assert other.inside("fleet", "adopt", "--from", str(saved)).code == 0
    later = _report(other)
    assert later["accounts"] == report["accounts"]
    causes = {each["cause"]: each["us"] for each in later["time"]["by_cause"]}
    assert causes["a job that fits waited, held by a limit: AssocGrpGRES"] > 0
    assert causes["nobody waited"] >= 49 * 16 * 1_000_000


def _report(home: Home, *more: str) -> Any:
    """A report of yesterday, today and tomorrow, as far as it was read."""
    today = datetime.now(timezone.utc).date()
    period = f"{today - timedelta(days=1)}..{today + timedelta(days=2)}"
    said = home.inside("fleet", "report", "--json", "--period", period, *more)
    assert said.code == 0, said
    return said.json


def _prices(owner: Home, truth: dict[str, int]) -> None:
    """A price makes drafts; the node that failed is not charged, and nothing is invented for jobs without a price."""
    text = owner.inside("fleet", "report").out
    assert "no price for" in text
    assert owner.inside("fleet", "rate", "gpu", "--price", "3600/h").code == 0
    report = _report(owner)
    failed = next(each for each in report["lost"] if each["state"] == "NODE_FAIL")
    charged = {name: Fraction(each["charged"]) for name, each in report["drafts"].items()}
    seconds = round(Fraction(failed["gpu_hours"]) * 3600)
    assert seconds > 0
    assert charged == {
        "physics": truth["vision"] + truth["speech"] - seconds,
        "guests": truth["guests"],
    }
    assert [each["why"] for each in report["drafts"]["physics"]["not_charged"]] == ["node fail"]
    assert report["unpriced"], "the job without a GPU has no price"
    split = report["billing_weights"]["tenants"]
    for each in split:
        parts = sum(Fraction(part) for part in each["difference"].values())
        assert abs(parts - (Fraction(each["charged"]) - Fraction(each["worth"]))) < Fraction(
            1, 10**12
        )
    said = owner.inside("fleet", "report", "--account", "physics", "--html", "page.html")
    assert said.first.startswith("physics had "), said
    assert "Draft invoice: " in said.out
    assert "1 of 1 jobs" not in said.out
    assert said.out.splitlines()[-1].startswith("All accounts: ")
    assert "What each GPU did" in (owner.path.parent / "page.html").read_text()
    refused = owner.inside("fleet", "rate", "gpuu", "--price", "1/h")
    assert (refused.code, "it has debug, gpu" in refused.err) == (2, True)


def _explained(owner: Home) -> None:
    """A figure of each kind goes back to rows of accounting that are in the ledger."""
    listed = owner.inside("explain", "fleet/lab", "--json").json["figures"]
    one_of_each = {each["name"].partition(":")[2].partition(".")[0]: each for each in listed}
    assert {"hours", "causes", "accounts", "waits", "lost", "owes", "units"} <= one_of_each.keys()
    for each in one_of_each.values():
        found = owner.inside("explain", each["name"], "--json").json
        assert (found["value"], found["missing"]) == (each["value"], [])
    said = owner.inside("explain", "fleet/lab:hours.working")
    assert "fact " in said.out
    assert said.first.startswith("fleet/lab:hours.working@")
    refused = owner.inside("explain", "fleet/lab:hours.werking")
    assert (refused.code, "hours.working" in refused.err) == (2, True)


def _again(owner: Home, lab: Slurm) -> None:
    """Reading again adds that it was read, and later what is new; nothing twice."""
    before = _kinds(owner)
    assert owner.inside("fleet", "adopt").code == 0
    after = _kinds(owner)
    assert {
        kind: after[kind] - before.get(kind, 0)
        for kind in after
        if after[kind] != before.get(kind, 0)
    } == {
        "cluster.read": 1,
        "cluster.whole": 1,
    }
    lab.finished([lab.submit("sleep 1", "--gpus=1")])
    said = owner.inside("fleet", "adopt", "--json").json
    assert (said["new"], said["corrected"]) == (6, 0), (
        said
    )  # a job and its step, each with its use; read, whole
    assert said["missing"] == {}


def test_over_ssh_the_same_is_read(
    worked: Slurm, owner: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if shutil.which("sshd") is None:
        pytest.skip("no sshd: tools/debian.sh test")
    with ssh_server(tmp_path, {"SLURM_CONF": worked.environment["SLURM_CONF"]}) as command:
        monkeypatch.setenv("OUVRAGE_SSH", command)
        monkeypatch.delenv("SLURM_CONF")
        owner = replace(owner, environment={**owner.environment, "OUVRAGE_SSH": command})
        said = owner.inside("fleet", "adopt", "--ssh", "login", "--json")
        assert said.code == 0, said
        assert said.json["missing"] == {}
        shown = owner.inside("fleet", "hooks", "--ssh", "login", "--json").json
        assert "ClusterName=lab" in shown["slurm.conf"]
    said = owner.inside("fleet", "adopt", "--ssh", "login")
    assert (said.code, "error[fleet/no-answer]" in said.err) == (2, True), said


def test_hooks_are_a_diff_that_slurm_can_read_and_a_drain_of_somebody_s_is_left_alone(
    worked: Slurm, owner: Home, tmp_path: Path
):
    conf = Path(worked.environment["SLURM_CONF"])
    unchanged = conf.read_bytes()
    said = owner.inside("fleet", "hooks", str(conf))
    assert (
        said.first
        == "Prolog, Epilog, HealthCheckProgram would ask `ouvrage check`; nothing was changed."
    )
    assert "+HealthCheckProgram=/etc/slurm/ouvrage/health" in said.out.splitlines()
    shown = owner.inside("fleet", "hooks", str(conf), "--json").json
    changed = tmp_path / "slurm.conf"
    changed.write_text(shown["slurm.conf"])
    shutil.copy(conf.with_name("gres.conf"), tmp_path / "gres.conf")
    answered = subprocess.run(
        ["scontrol", "show", "config"],
        env={**worked.environment, "SLURM_CONF": str(changed)},
        capture_output=True,
        check=True,
    )
    assert not answered.stderr
    assert owner.inside("fleet", "hooks", str(changed)).first.startswith("The hooks stand in ")
    assert conf.read_bytes() == unchanged
    health = tmp_path / "health"
    health.write_text(shown["files"]["/etc/slurm/ouvrage/health"])
    (tmp_path / "ouvrage").write_text("#!/bin/sh\necho 'CRITICAL gpu: 1 of 4 is gone'\nexit 2\n")
    for path in (health, tmp_path / "ouvrage"):
        path.chmod(0o755)
    worked.run("scontrol", "update", "nodename=n2", "state=drain", "reason=mine")
    for node in ("n1", "n2"):
        path = f"{tmp_path}:{worked.environment['PATH']}"
        subprocess.run(
            [str(health)],
            env={**worked.environment, "PATH": path, "SLURMD_NODENAME": node},
            check=True,
        )
    reasons = worked.run("sinfo", "-h", "-N", "-p", "gpu", "-o", "%N %E").splitlines()
    assert [line for line in reasons if not line.endswith(" none")] == [
        "n1 ouvrage: CRITICAL gpu: 1 of 4 is gone",
        "n2 mine",
    ]
    for node in ("n1", "n2"):
        worked.run("scontrol", "update", f"nodename={node}", "state=resume")


def test_bad_input_is_named_and_nothing_is_lost(
    worked: Slurm, owner: Home, homes: Callable[[str], Home], tmp_path: Path
):
    good = tmp_path / "good"
    assert owner.inside("fleet", "adopt", "--save", str(good)).code == 0
    jobs = (good / "jobs.txt").read_bytes()
    bad = tmp_path / "bad"
    shutil.copytree(good, bad)
    lines = jobs.splitlines()
    lines[3] = lines[3][:20]
    (bad / "jobs.txt").write_bytes(
        b"\n".join([*lines, lines[1].replace(b"vision", b"visi\xffn"), lines[1]])
    )
    (bad / "qos.txt").unlink()
    home = homes("bad")
    said = home.inside("fleet", "adopt", "--from", str(bad))
    assert said.code == 1
    for words in (
        "1 flagged, all others came in",
        r"kept as \xNN",
        "not read: qos (qos.txt is not there)",
        "nothing is called free",
    ):
        assert words in said.out, said.out
    report = _report(home)
    assert report["missing"] == ["qos"]
    assert report["time"]["by_state_us"]["unknown"] > 0
    assert "free" not in report["time"]["by_state_us"]
    assert (
        home.inside("fleet", "adopt", "--from", str(good)).code == 0
    )  # the whole answers come later
    assert _report(home)["time"]["by_state_us"].get("unknown", 0) <= _UNSETTLED
    for call, code in (
        (("fleet", "adopt", "--from", str(tmp_path / "nowhere")), "fleet/no-answer"),
        (("fleet", "adopt", "--from", "a", "--ssh", "b"), "fleet/which"),
        (("fleet", "report", "--account", "nobody"), "fleet/account"),
        (("fleet", "report", "--cluster", "far"), "fleet/unknown"),
        (("fleet", "report", "--period", "2099"), "fleet/period"),
        (("fleet", "hooks", str(good / "jobs.txt")), "fleet/conf"),
    ):
        refused = home.inside(*call)
        assert (refused.code, f"error[{code}]" in refused.err) == (2, True), refused
    (good / "clock.txt").write_text("noon")
    assert "fleet/clock" in home.inside("fleet", "adopt", "--from", str(good)).err
    script = home.inside("fleet", "adopt", "--script", "--since", "2h").out
    (tmp_path / "read.sh").write_text(script)
    subprocess.run(
        ["sh", str(tmp_path / "read.sh"), str(tmp_path / "by-hand")],
        env=worked.environment,
        check=True,
    )
    again = homes("by-hand").inside("fleet", "adopt", "--from", str(tmp_path / "by-hand"), "--json")
    assert (again.code, again.json["missing"]) == (0, {}), again
    assert json.dumps(again.json["files"]).count('"form"') >= 7
