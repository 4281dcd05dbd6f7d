"""A few of the scored programs, held up in a known way, and what the report says held them up.

The whole set is ``python -m bench.verdicts``; these are the ones that a busy machine changes least.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.verdicts.injections import Impossible, Place, around
from bench.verdicts.made import MB, prepare
from tests.support.meter import PATIENCE_S, Meter

ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to hold a program up")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("work")
    prepare(directory, 12 * MB)
    return directory


def why(files: Path, program: str, limits: dict[str, float], *prefix: str) -> dict[str, Any]:
    """What the report of a program says of its time."""
    meter = Meter(files / "home")
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    with contextlib.ExitStack() as stack:
        try:
            place: Place = stack.enter_context(around(limits, files))
        except Impossible as error:
            pytest.skip(str(error))
        work = [sys.executable, "-m", "bench.verdicts.programs", *program.split(), *place.words]
        subprocess.run(
            [*place.prefix, *prefix, *meter.words(*work)], cwd=files, check=True,
            env=meter.environment | place.environment | {"PYTHONPATH": paths},
            stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
        )  # fmt: skip
    return json.loads(meter.ouvrage("report", "last", "--json").stdout)["why"]


def test_a_loop_that_is_not_fed(files: Path) -> None:
    found = why(files, "loop load_ms=1 pause_ms=60 step_ms=2 seconds=2.2", {})
    assert (found["verdict"], found["grade"]) == ("waiting_data", "measured")
    assert "waits for a batch took" in found["evidence"]


def test_clocks_that_a_fault_holds(files: Path) -> None:
    found = why(files, "card load=95 clock=500 reasons=0x40 seconds=3", {"card": 1})
    assert found["verdict"] == "throttled"
    assert "hardware thermal" in found["evidence"]


def test_two_processes_on_one_core(files: Path) -> None:
    core = str(min(os.sched_getaffinity(0)))
    work = "compress codec=zlib processes=3 seconds=2.2"
    found = why(files, work, {}, "taskset", "-c", core)
    assert (found["verdict"], found["grade"]) == ("waiting_cpu", "assumed")
    assert "share one core" in found["evidence"]


def test_what_nobody_can_know_is_not_named(files: Path) -> None:
    assert why(files, "waiter every=0.3 seconds=2.2", {})["verdict"] == "unknown"


@AS_ROOT
def test_a_slow_disk(files: Path) -> None:
    found = why(files, "scan cold=1 seconds=2.2", {"read_mb_s": 3})
    assert found["verdict"] == "waiting_storage"
    assert "MB were read or written" in found["evidence"]


@AS_ROOT
def test_a_slow_network(files: Path) -> None:
    found = why(files, "download seconds=2.2", {"mbit_s": 4})
    assert found["verdict"] == "waiting_network"
    assert "slept at connections to other machines" in found["evidence"]
