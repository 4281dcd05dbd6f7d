"""Tests that others wrote and a machine may have: fio, NVIDIA's diagnostic, nccl-tests.

Decides how each is asked and what is taken from its answer. One that is not installed is said to be left out; one that fails to
run says why. None of them is downloaded or installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ouvrage.metering.nccl_log import link_test_in
from ouvrage.model.hosts import HostReading, reading

_LATE_S = 60


class NotRun(Exception):
    """A test that could not be made; the words say why."""


def other_tests(directory: str, seconds: float, gpus: int) -> list[HostReading]:
    """What each of them says of this machine, with ``gpus`` GPUs, in about so many seconds each."""
    asked = (
        ("fio.random", "IOPS", lambda: fio(directory, seconds)),
        ("dcgm.diagnostic", "failed", lambda: dcgm(gpus, seconds)),
        ("gpu.ring", "GB/s", lambda: nccl(gpus)),
    )
    found: list[HostReading] = []
    for id, unit, ask in asked:
        try:
            value, how = ask()
            found.append(reading(id, unit, how, value, value))
        except NotRun as error:
            found.append(reading(id, unit, f"left out: {error}"))
    return found


def fio(directory: str, seconds: float) -> tuple[Fraction, str]:
    """Random reads of 4 KiB a second, 32 at once, past the page cache."""
    with tempfile.TemporaryDirectory(prefix=".ouvrage-fio-", dir=directory) as place:
        said = _said(
            ("fio", "--name=ouvrage", f"--directory={place}", "--size=256M", "--rw=randread", "--bs=4k",
             "--iodepth=32", "--ioengine=libaio", "--direct=1", "--time_based", "--group_reporting",
             f"--runtime={max(1, round(seconds))}", "--output-format=json"),
            seconds + _LATE_S,
        )  # fmt: skip
    try:
        told: Any = json.loads(said[said.index("{") :])
        value = Fraction(str(told["jobs"][0]["read"]["iops"]))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise NotRun(f"fio's answer can't be read: {error}") from error
    return Fraction(round(value)), f"fio, 32 reads of 4 KiB at once, {max(1, round(seconds))} s"


def dcgm(gpus: int, seconds: float) -> tuple[Fraction, str]:
    """How many of NVIDIA's tests failed: level 2 takes two minutes, level 3 a quarter of an hour."""
    if not gpus:
        raise NotRun("no GPU is here")
    level = 3 if seconds >= 900 else 2
    said = _said(("dcgmi", "diag", "-r", str(level), "-j"), seconds + 1800, fails=True)
    return dcgm_failures(said, level)


def dcgm_failures(said: str, level: int) -> tuple[Fraction, str]:
    """The failed tests in DCGM's JSON, of which the form of two versions is known. ``NotRun`` for another."""
    try:
        told: Any = json.loads(said[said.index("{") :])
        whole = told.get("DCGM Diagnostic") or told["DCGM GPU Diagnostic"]
        tests = [test for part in whole["test_categories"] for test in part["tests"]]
        results = [(t["name"], str(r["status"])) for t in tests for r in t["results"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotRun(f"DCGM's answer can't be read: {error}") from error
    failed = sorted({name for name, status in results if status.lower() == "fail"})
    words = f": {', '.join(failed)}" if failed else ""
    return Fraction(len(failed)), f"dcgmi diag -r {level}, {len(results)} results{words}"


def nccl(gpus: int) -> tuple[Fraction, str]:
    """The bus bandwidth of the largest size around all GPUs, as nccl-tests measures it."""
    if gpus < 2:
        raise NotRun("it takes two GPUs or more")
    said = _said(("all_reduce_perf", "-b", "8M", "-e", "8G", "-f", "2", "-g", str(gpus)), 600)
    test = link_test_in(said, run="", source="")
    if test is None:
        raise NotRun("nccl-tests printed no table")
    largest = max(test.rows, key=lambda row: row.size_bytes)
    how = f"all_reduce_perf, {gpus} GPUs, {largest.size_bytes >> 20} MiB"
    return Fraction(largest.bus_gb_s), how


def _said(words: Sequence[str], limit_s: float, *, fails: bool = False) -> str:
    """What a program prints. ``fails``: an exit code beyond 0 is an answer too. ``NotRun`` where there is none."""
    program = shutil.which(words[0])
    if program is None:
        raise NotRun(f"{words[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *words[1:]], capture_output=True, timeout=limit_s, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotRun(f"{words[0]}: {error}"[:200]) from error
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode and not (fails and text):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NotRun(f"{words[0]} ended with {done.returncode} {''.join(last)[:160]}".rstrip())
    return text
