"""Control groups: one contract over v1 and v2, on the real kernel as far as this machine has them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.clock import new_id
from ouvrage.adapters.sandbox_cgroup import (
    PARENT,
    Group,
    GroupV1,
    GroupV2,
    Limits,
    _mounts,
    group,
    standing,
    version,
)
from tests.support.meter import until

MIB = 1 << 20
LIMITS = Limits(memory_bytes=64 * MIB, cpus=(0,), quota_ppm=500_000, pids=16)
FORKS = "for i in 1 2 3; do setsid sleep 600 & done; trap '' TERM; while :; do sleep 0.01; done"


def processes_in(made: Group) -> subprocess.Popen[bytes]:
    """A shell with children that joined the group by themselves."""
    return subprocess.Popen(["sh", "-c", FORKS], preexec_fn=made.join)


@pytest.fixture(params=["v1", "v2"])
def made(request: pytest.FixtureRequest) -> Iterator[Group]:
    """A real group of each kind. A v2 hierarchy without controllers still freezes and kills."""
    mounts, name = _mounts(), f"test-{new_id()}"
    found: Group
    if request.param == "v1":
        if version() != "v1":
            pytest.skip("no v1 groups here")
        found = GroupV1(name, mounts)
        found.create(LIMITS)
    else:
        top = mounts.get("unified")
        if top is None or not os.access(top, os.W_OK):
            pytest.skip("no v2 groups here")
        found = GroupV2(name, top)
        if version() == "v2":
            found.create(LIMITS)
        else:
            os.makedirs(f"{top}/{PARENT}/{name}")
    yield found
    found.kill()
    found.remove()


def test_everything_in_it_ends_at_once(made: Group) -> None:
    with processes_in(made) as shell:
        until(lambda: len(made.processes()) >= 4, "its processes")
        assert made.kill()
        assert made.processes() == []
        assert shell.wait(10) == -signal.SIGKILL
    assert made.remove()
    assert made.remove()  # nothing to do


def test_frozen_nothing_moves(made: Group) -> None:
    with subprocess.Popen(
        ["sh", "-c", "while :; do echo x; sleep 0.005; done"],
        stdout=subprocess.PIPE, preexec_fn=made.join,
    ) as shell:  # fmt: skip
        assert shell.stdout
        shell.stdout.readline()
        made.freeze(True)
        os.set_blocking(shell.stdout.fileno(), False)
        shell.stdout.read()
        assert shell.stdout.read() is None
        made.freeze(False)
        until(shell.stdout.read, "it goes on")
        made.kill()


def test_a_group_that_is_not_there_has_nothing_in_it(made: Group) -> None:
    assert made.remove()
    assert made.processes() == []
    assert made.kill()
    reading = made.reading()
    assert reading.memory_bytes is None
    assert reading.oom_kills is None


@pytest.mark.skipif(os.geteuid() != 0, reason="groups are made by root")
def test_names_are_found_by_their_beginning() -> None:
    if version() == "none":
        pytest.skip("no groups here")
    prefix = f"here-{new_id()}-"
    one = group(f"{prefix}a")
    one.create(LIMITS)
    assert standing(prefix) == [f"{prefix}a"]
    assert one.remove()
    assert standing(prefix) == []


def test_what_is_written_where_on_v2(tmp_path: Path) -> None:
    """Which files hold which limit: Documentation/admin-guide/cgroup-v2.rst."""
    for directory in (tmp_path, tmp_path / PARENT):
        directory.mkdir(exist_ok=True)
        (directory / "cgroup.subtree_control").write_text("cpu io\n")
    made = GroupV2("a", str(tmp_path))
    made.create(LIMITS)
    at = tmp_path / PARENT / "a"
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpuset +memory +pids"
    written = {path.name: path.read_text() for path in at.iterdir()}
    assert written == {
        "memory.max": str(64 * MIB), "memory.swap.max": "0", "cpu.max": "50000 100000",
        "cpuset.cpus": "0", "pids.max": "16",
    }  # fmt: skip


def test_what_is_read_where_on_v2(tmp_path: Path) -> None:
    at = tmp_path / PARENT / "a"
    at.mkdir(parents=True)
    for name, text in {
        "memory.peak": "1048576\n",
        "cpu.stat": "usage_usec 2500\nuser_usec 2000\nnr_throttled 0\n",
        "pids.peak": "7\n",
        "memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n",
    }.items():
        (at / name).write_text(text)
    reading = GroupV2("a", str(tmp_path)).reading()
    assert (reading.memory_bytes, reading.cpu_us) == (MIB, 2500)
    assert (reading.processes, reading.oom_kills) == (7, 1)
    (at / "memory.peak").unlink()  # before 5.19
    assert GroupV2("a", str(tmp_path)).reading().memory_bytes is None


def test_limits_of_v1_are_in_force() -> None:
    if version() != "v1" or os.geteuid():
        pytest.skip("no v1 groups here")
    name = f"test-{new_id()}"
    made = GroupV1(name, _mounts())
    made.create(LIMITS)
    told = {
        f"{kind}/{file}": Path(_mounts()[kind], PARENT, name, file).read_text().strip()
        for kind, file in (
            ("memory", "memory.limit_in_bytes"), ("cpu", "cpu.cfs_quota_us"),
            ("cpuset", "cpuset.cpus"), ("pids", "pids.max"),
        )
    }  # fmt: skip
    assert list(told.values()) == [str(64 * MIB), "50000", "0", "16"]
    assert made.remove()
