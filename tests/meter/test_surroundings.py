"""What surrounds a metered command: its job, the topology of its GPUs, NCCL's word; never its harm."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.metering.test_launchers import SLURM, TORCHRUN
from tests.metering.test_nccl_log import LOG, TABLE
from tests.metering.test_topology import FOUR
from tests.support.meter import Meter

pytestmark = pytest.mark.slow
LAUNCHERS = (*TORCHRUN, *SLURM, "PMIX_NAMESPACE", "OUVRAGE_JOB")
PRINTS = "import sys; sys.stdout.write(open(sys.argv[1]).read()); sys.stdin.readline()"


@pytest.fixture
def alone(meter: Meter, tmp_path: Path) -> Meter:
    """A meter on a machine without launchers or tools; ``bin`` comes first on its path."""
    (tmp_path / "bin").mkdir()
    for name in LAUNCHERS:
        meter.environment.pop(name, None)
    meter.environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return meter


def tool(tmp_path: Path, body: str) -> None:
    """A small ``nvidia-smi`` of our own."""
    path = tmp_path / "bin" / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def stated(meter: Meter, kind: str) -> list[dict[str, Any]]:
    return [line["value"] for line in meter.of_kind("around") if line["kind"] == kind]


def notes(meter: Meter) -> dict[str, str]:
    return {line["code"]: line["text"] for line in meter.of_kind("note")}


def test_a_command_outside_of_any_job_says_nothing(alone: Meter):
    assert alone.run("true").returncode == 0
    assert alone.of_kind("around") == []


def test_the_job_of_a_launcher_is_recorded(alone: Meter):
    alone.environment |= TORCHRUN
    assert alone.run("true").returncode == 0
    (job,) = stated(alone, "run.job")
    assert (job["job"], job["via"]) == (TORCHRUN["TORCHELASTIC_RUN_ID"], "TORCHELASTIC_RUN_ID")
    assert (job["node"], job["nodes"], job["rank"], job["ranks"]) == (1, 2, 3, 4)
    assert job["host_name"] == os.uname().nodename
    first = job["host"]
    assert alone.run("true", options=("--quiet", "--job", "mine")).returncode == 0
    (again,) = stated(alone, "run.job")
    assert (again["job"], again["via"], again["host"]) == ("mine", "--job", first)


def test_a_launcher_that_names_no_job_leaves_a_note(alone: Meter):
    alone.environment |= {**TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}
    assert alone.run("true").returncode == 0
    assert stated(alone, "run.job") == []
    assert "--rdzv-id" in notes(alone)["job/no-name"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--job", "a b"), "job/name"),
        (("--job", ""), "job/name"),
        (("--topology", "/nowhere"), "topology/no-file"),
        (("--topology", os.devnull), "topology/unreadable"),
    ],
)
def test_what_is_no_job_and_no_table_is_refused_before_anything_starts(alone: Meter, options, code):
    done = alone.run("touch", "started", options=options, cwd=alone.home.parent)
    assert (done.returncode, f"error[{code}]" in done.stderr.decode()) == (2, True)
    assert not alone.home.exists()
    assert not (alone.home.parent / "started").exists()


def test_nvidia_smi_is_asked_once_and_its_table_kept(alone: Meter, tmp_path: Path):
    (tmp_path / "table").write_text(FOUR)
    tool(tmp_path, f'cat {tmp_path}/table; echo "$@" >> {tmp_path}/asked')
    done = alone.run("sh", "-c", f"until [ -e {tmp_path}/asked ]; do sleep 0.02; done")
    assert done.returncode == 0
    (table,) = stated(alone, "run.topology")
    assert table["source"] == "nvidia-smi"
    assert table["rows"][0]["links"] == ["X", "NV12", "SYS", "SYS", "PXB", "SYS"]
    assert (tmp_path / "asked").read_text() == "topo -m\n"


def test_a_short_command_waits_for_nothing_that_hangs(alone: Meter, tmp_path: Path):
    tool(tmp_path, "exec sleep 60")
    began = time.monotonic()
    assert alone.run("true").returncode == 0
    assert time.monotonic() - began < 10
    assert stated(alone, "run.topology") == []
    assert "had not answered" in notes(alone)["topology/not-told"]


@pytest.mark.parametrize("body", ["exit 9", "echo no devices; exit 6", "yes GPU0", "kill -9 $$"])
def test_a_tool_that_fails_or_raves_harms_nothing(alone: Meter, tmp_path: Path, body: str):
    tool(tmp_path, body)
    done = alone.run("sh", "-c", "echo out; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"")
    assert stated(alone, "run.topology") == []
    assert alone.end()["exit_code"] == 3


def test_a_table_in_a_file_is_believed_instead_of_asking(alone: Meter, tmp_path: Path):
    (tmp_path / "t.txt").write_text(FOUR)
    tool(tmp_path, f"touch {tmp_path}/asked")
    options = ("--quiet", "--topology", str(tmp_path / "t.txt"))
    assert alone.run("true", options=options).returncode == 0
    assert [table["source"] for table in stated(alone, "run.topology")] == ["t.txt"]
    assert not (tmp_path / "asked").exists()


def test_nccls_lines_in_the_output_and_its_measurement_are_kept(alone: Meter, tmp_path: Path):
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "tests.txt").write_text(TABLE)
    options = ("--quiet", "--nccl-tests", str(tmp_path / "tests.txt"), "--nccl-tests", "/nowhere")
    done = alone.run(sys.executable, "-c", PRINTS, str(tmp_path / "log"), options=options)
    assert (done.returncode, done.stdout.decode()) == (0, LOG)
    (said,) = stated(alone, "run.communication")
    assert (said["source"], said["library"]) == ("output", "2.21.5+cuda12.4")
    assert [way["name"] for way in said["transports"]] == ["P2P/CUMEM", "NET/IB/GDRDMA"]
    (test,) = stated(alone, "run.link_test")
    assert (test["ranks"], len(test["rows"])) == (2, 2)
    assert "/nowhere" in notes(alone)["nccl/no-file"]


def test_nccls_own_log_is_read_at_the_end_from_every_file_of_its_pattern(
    alone: Meter, tmp_path: Path
):
    (tmp_path / "log").write_text(LOG)
    copies = (
        f"cp {tmp_path}/log {tmp_path}/nccl.box.1; grep SHM {tmp_path}/log > {tmp_path}/nccl.box.2"
    )
    options = ("--quiet", "--nccl-log", f"{tmp_path}/nccl.%h.%p")
    assert alone.run("sh", "-c", f"{copies}; true", options=options).returncode == 0
    (said,) = stated(alone, "run.communication")
    assert (said["source"], said["heard"]) == ("nccl.%h.%p", 3)
    assert alone.run("true", options=("--quiet", "--nccl-log", "/nowhere/x")).returncode == 0
    assert "nccl/no-log" in notes(alone)
