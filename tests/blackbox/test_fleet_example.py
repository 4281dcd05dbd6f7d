"""``make fleet`` from nothing to the bill: it ends by itself, and nothing of it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT
from tests.support.slurm import missing

pytestmark = pytest.mark.soak


def test_a_tenants_training_on_a_fleet_of_two(tmp_path: Path) -> None:
    if missing() is not None:
        pytest.skip(f"no Slurm: {missing()}")
    before = set(Path("/tmp").glob("ouvrage-fleet-*"))
    done = subprocess.run(
        [sys.executable, ROOT / "examples/digits/fleet.py", "--out", tmp_path, "--epochs", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    if done.returncode == 1 and done.stdout.startswith("No fleet here"):
        pytest.skip(done.stdout.splitlines()[0])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "two: all 2 nodes are well." in done.stdout
    assert done.stdout.count(": done\n") == 4
    assert "1 × epoch" in done.stdout
    assert set(Path("/tmp").glob("ouvrage-fleet-*")) == before
    going = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in going
    assert "ouvrage-fleet-" not in going.replace(str(ROOT), "")
