"""A command in the sandbox under its supervisor: its end, its limits, what it used, who dies when."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ouvrage.adapters.sandbox_cgroup import group, standing
from ouvrage.agent.enclosure import group_name, group_prefix
from ouvrage.agent.files import RESULT, AttemptFiles
from tests.support.meter import until
from tests.support.orders import Node, an_order

MIB = 1 << 20


def python(text: str) -> tuple[str, ...]:
    return ("/usr/bin/python3", "-c", text)


@pytest.mark.parametrize(
    ("script", "code", "number", "outcome"),
    [
        ("exit 0", 0, None, "done"),
        ("exit 42", 42, None, "failed"),
        ("kill -ABRT $$", None, signal.SIGABRT, "failed"),
        ("kill -KILL $$", None, signal.SIGKILL, "failed"),
    ],
)
def test_its_end_is_recorded_as_it_was(
    node: Node, script: str, code: int | None, number: int | None, outcome: str
) -> None:
    ended = node.run(an_order("sh", "-c", script))
    assert (ended["exit_code"], ended["signal"], ended["outcome"]) == (code, number, outcome)
    assert ended["scrub"] == "clean"
    assert ended["began"] <= ended["ended"]


def test_a_command_that_is_not_there_is_the_job_s_own_failure(node: Node) -> None:
    ended = node.run(an_order("/no/such/program"))
    assert (ended["outcome"], ended["cause"], ended["exit_code"]) == ("failed", "program", 127)
    assert "/no/such/program" in ended["reason"]


def test_what_it_used_is_the_kernel_s_own_account(node: Node) -> None:
    work = "b = bytearray(24 << 20); import time; t = time.process_time()\nwhile time.process_time() - t < 0.3: pass"
    ended = node.run(an_order(*python(work)))
    used = ended["used"]
    assert 24 * MIB < used["memory_bytes"] < 48 * MIB
    assert 300_000 < used["cpu_us"] < 1_500_000
    assert used["processes"] == 3  # bubblewrap, its init, the command
    assert used["oom_kills"] == 0
    assert used["sent_bytes"] == used["received_bytes"] == 0


def test_space_used_is_counted_and_limited(node: Node) -> None:
    start = an_order("dd", "if=/dev/zero", "of=/scratch/f", "bs=1M", "count=40")
    ended = node.run(start)
    assert ended["outcome"] == "failed"
    assert "No space left" in node.log(start)
    assert 12 * MIB < ended["used"]["disk_bytes"] <= 16 * MIB


def test_too_much_memory_is_told_as_such(node: Node) -> None:
    ended = node.run(an_order(*python("b = bytearray(200 << 20)")))
    assert (ended["outcome"], ended["signal"]) == ("out of memory", signal.SIGKILL)
    assert ended["used"]["oom_kills"] == 1
    assert ended["used"]["memory_bytes"] <= 64 * MIB
    assert "64 MiB" in ended["reason"]


def test_a_time_limit_asks_first_and_then_kills(node: Node) -> None:
    stubborn = "trap 'echo asked' TERM; while :; do sleep 0.05; done"
    start = an_order("sh", "-c", stubborn, time_limit_us=200_000, grace_us=200_000)
    ended = node.run(start)
    assert (ended["outcome"], ended["signal"]) == ("time limit", signal.SIGKILL)
    assert 400_000 <= ended["wall_us"] < 3_000_000
    log = node.log(start)
    assert "asked\n" in log and "killed" in log


def test_who_is_asked_to_end_may_save_its_state_first(node: Node) -> None:
    saves = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    start = an_order("sh", "-c", saves, grace_us=20_000_000)
    files = node.begin(start)
    until(lambda: (files / "log").exists() and "ready" in node.log(start), "the command")
    files.ask_to_stop({"why": "preempted", "reason": "a job before it", "grace_us": 20_000_000})
    until((files / RESULT).exists, "a result")
    ended = json.loads((files / RESULT).read_text())
    assert (ended["outcome"], ended["exit_code"]) == ("preempted", 0)
    assert ended["cause"] == "platform"
    assert "saved" in node.log(start)


def test_a_log_ends_at_its_limit_and_says_so(node: Node) -> None:
    start = an_order("sh", "-c", "yes | head -c 3000000; echo >&2 last", log_limit_bytes=10_000)
    ended = node.run(start)
    assert ended["outcome"] == "done"
    log = node.log(start)
    assert len(log) == 9_999
    assert log.endswith("its limit of 10000 bytes]\n")


def test_the_attempt_is_a_run_of_the_same_id(node: Node) -> None:
    start = an_order("sh", "-c", "for i in 1 2 3; do echo Epoch $i/3; done", price="0.30/h")
    node.run(start)
    spool = (node.state / "spool" / f"{start.attempt}.ndjson").read_text().splitlines()
    header = json.loads(spool[0])
    assert (header["run"], header["label"]) == (start.attempt, "a job")
    assert header["command"] == list(start.command)
    assert header["price"]["amount"] == "0.30"
    assert any(json.loads(line)["k"] in ("mark", "marks") for line in spool), spool
    assert json.loads(spool[-1])["exit_code"] == 0


def test_it_goes_on_when_whoever_began_it_is_killed(node: Node) -> None:
    start = an_order("sh", "-c", "echo ready; sleep 0.5; echo after; exit 7")
    files = node.begin(start)
    until(lambda: (files / "log").exists() and "ready" in node.log(start), "the command")
    os.kill(node.nursery.pid, signal.SIGKILL)
    until((files / RESULT).exists, "a result")
    assert json.loads((files / RESULT).read_text())["exit_code"] == 7
    assert "after" in node.log(start)


def test_the_command_dies_with_its_supervisor(node: Node) -> None:
    start = an_order("sh", "-c", "setsid sleep 600 & sleep 600")
    files = node.begin(start)
    inside = group(group_name(node.state, start.attempt))
    until(lambda: (files / "state").exists() and files.state() == "running", "it runs")
    until(lambda: len(inside.processes()) == 5, "both sleeps")
    os.kill(_supervisor_of(files), signal.SIGKILL)
    until(lambda: not inside.processes(), "an empty group")
    assert inside.remove()
    assert not (files / RESULT).exists()


def _supervisor_of(files: AttemptFiles) -> int:
    lock = (files / "lock").stat()
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[5].endswith(f":{lock.st_ino}"):
            return int(words[4])
    raise AssertionError("nobody holds the lock")


def test_an_attempt_that_was_started_is_never_started_again(node: Node) -> None:
    start = an_order("sh", "-c", "echo once >> /scratch/n; wc -l < /scratch/n")
    node.run(start)
    files = node.files(start)
    (files / RESULT).unlink()
    before = (files / "log").read_bytes()
    node.nursery.start(start.attempt)
    node.run(an_order("true"))  # the nursery takes one after the other
    assert not (files / RESULT).exists()
    assert (files / "log").read_bytes() == before


def test_nothing_is_left_on_the_machine(node: Node) -> None:
    start = an_order("sh", "-c", "echo secret > /tmp/f; setsid sleep 600 & exit 0")
    assert node.run(start)["scrub"] == "clean"
    assert not standing(group_prefix(node.state))
    assert not (node.files(start) / "scratch.img").exists()
    assert str(node.state) not in Path("/proc/mounts").read_text()


def test_the_owner_s_own_work_may_run_without_a_sandbox(node: Node) -> None:
    """Limits, account and scrubbing are the same; what it sees is the machine."""
    script = "id -u; pwd; test -e /etc/shadow && echo shadow; echo x > out.txt; exit 4"
    outputs = [{"path": "out.txt", "name": "out"}]
    start = an_order("sh", "-c", script, isolation="none", outputs=outputs)
    ended = node.run(start)
    assert (ended["outcome"], ended["exit_code"], ended["isolation"]) == ("failed", 4, "none")
    assert node.log(start).split() == ["0", "/run/ouvrage/scratch/own", "shadow"]
    assert (node.files(start) / "outputs" / "out").read_text() == "x\n"
    assert ended["used"]["processes"] == 2  # the shell and id


def test_without_a_sandbox_it_is_asked_and_killed_as_well(node: Node) -> None:
    stubborn = "trap 'echo asked' TERM; while :; do sleep 0.05; done"
    start = an_order(
        "sh", "-c", stubborn, isolation="none", time_limit_us=200_000, grace_us=200_000
    )
    ended = node.run(start)
    assert (ended["outcome"], ended["signal"]) == ("time limit", signal.SIGKILL)
    assert "asked" in node.log(start)
    assert not standing(group_prefix(node.state))


def test_a_checkpoint_is_there_for_the_next_attempt_of_the_job(node: Node) -> None:
    first = an_order("sh", "-c", "echo 7 > kept/epoch", checkpoint="kept")
    assert node.run(first)["outcome"] == "done"
    again = an_order("sh", "-c", "cat kept/epoch", checkpoint="kept", job=first.job)
    other = an_order("sh", "-c", "ls kept", checkpoint="kept")
    assert (node.run(again)["outcome"], node.log(again)) == ("done", "7\n")
    assert (node.run(other)["outcome"], node.log(other)) == ("done", "lost+found\n")


def test_a_volume_is_worked_with_by_one_attempt_at_a_time(node: Node) -> None:
    volume = [{"path": "/data", "name": "set"}]
    first = an_order("sh", "-c", "echo a > /data/f; echo up; sleep 600", volumes=volume)
    files = node.begin(first)
    until(lambda: (files / "log").exists() and "up" in node.log(first), "it runs")
    second = an_order("cat", "/data/f", volumes=volume, project=first.project)
    ended = node.run(second)
    assert ended["outcome"] == "never started"
    assert "in use" in ended["reason"]
    files.ask_to_stop({"why": "cancelled", "reason": "x", "grace_us": 0})
    until((files / RESULT).exists, "its end")
    third = an_order("cat", "/data/f", volumes=volume, project=first.project)
    assert (node.run(third)["outcome"], node.log(third)) == ("done", "a\n")
