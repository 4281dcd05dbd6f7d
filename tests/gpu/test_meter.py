"""``ouvrage run`` on a machine with GPUs: what reaches the spool, and what never reaches the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.meter import Meter, until
from tests.support.nvml import Cards

pytestmark = pytest.mark.slow
WAITS = "import sys; sys.stdin.readline(); print('done')"
SENTINEL = 9223372036854775794


class Running:
    """A metered command that ends when told to; its spool is looked at while it runs."""

    def __init__(self, meter: Meter, *options: str) -> None:
        self.meter = meter
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            meter.words(sys.executable, "-c", WAITS, options=("--quiet", *options)),
            env=meter.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def probes(self) -> list[int]:
        """The meter's children that read GPUs."""
        found: list[int] = []
        for pid in children(self.process.pid):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if b"gpu_probe" in words:
                found.append(pid)
        return found

    def probe(self) -> int:
        """The one that reads GPUs, once it does."""
        return until(self.probes, "a process that reads the GPUs")[0]

    def readings(self, gpu: int = 0) -> list[dict[str, Any]]:
        """The readings of a GPU that are in the spool so far."""
        return readings(self.meter, gpu) if self.meter.spools() else []

    def until_read(self, count: int, gpu: int = 0) -> None:
        """Wait until so many readings of a GPU were flushed."""
        until(lambda: len(self.readings(gpu)) >= count, f"{count} readings of GPU {gpu}")

    def end(self) -> str:
        """Let the command end; what it printed."""
        out, err = self.process.communicate("\n", timeout=30)
        assert self.process.returncode == 0, err
        return out


def children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            yield from (int(word) for word in task.read_text().split())
        except OSError:
            continue


def readings(meter: Meter, gpu: int = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for line in meter.of_kind("gpus"):
        if line["gpu"] == gpu:
            for place, t in enumerate(line["t"]):
                rows.append({"t": t} | {name: held[place] for name, held in line["c"].items()})
    return rows


def notes(meter: Meter) -> dict[str, str]:
    return {line["code"]: line["text"] for line in meter.of_kind("note")}


def test_readings_reach_the_spool_and_the_command_sees_none_of_it(
    meter: Meter, cards: Cards
) -> None:
    cards.set(count=2, gpu1__util_gpu=83)
    running = Running(meter)
    probe = running.probe()
    running.until_read(3)
    command = next(p for p in children(running.process.pid) if p != probe)
    environment = Path(f"/proc/{command}/environ").read_bytes().decode().split("\0")
    assert not [word for word in environment if word.startswith("OUVRAGE_") and "PROBE" in word]
    assert running.end() == "done\n"
    assert [line["about"]["uuid"][-4:] for line in meter.of_kind("gpu")] == ["0000", "0001"]
    rows = readings(meter, 1)
    assert {row["busy_percent"] for row in rows} == {83}
    assert rows[-1]["t"] == meter.end()["t"], "a last reading is asked for at the end"
    assert meter.end()["outlived"] == 0
    assert max(value or 0 for value in meter.column("processes")) == 1
    until(lambda: not os.path.exists(f"/proc/{probe}"), "the end of the reading process")


def test_its_processor_time_is_none_of_the_commands(meter: Meter, cards: Cards) -> None:
    running = Running(meter)
    running.until_read(3)
    running.end()
    used = meter.column("cpu_user_us")[-1]
    assert used is not None
    assert used <= meter.end()["cpu_user_us"] + 20_000


def test_a_lost_gpu_leaves_a_gap_and_a_note(meter: Meter, cards: Cards) -> None:
    cards.set(count=2, gpu1__energy_mj=5)
    running = Running(meter)
    running.until_read(1, gpu=1)
    cards.set(gpu1__lost=1)
    before = len(running.readings(1))
    running.until_read(before + 3)
    running.end()
    assert len(readings(meter, 1)) < len(readings(meter, 0))
    assert "does not answer" in notes(meter)["gpu/lost-1"]


@pytest.mark.parametrize("fault", ["hang", "gpu0__hang"])
def test_a_driver_that_hangs_is_left_behind(meter: Meter, cards: Cards, fault: str) -> None:
    running = Running(meter)
    probe = running.probe()
    running.until_read(1)
    cards.set(**{fault: 1})
    until(lambda: not os.path.exists(f"/proc/{probe}"), "the stuck process to be asked to end")
    cards.set(**{fault: 0})
    known = len(running.readings())
    running.until_read(known + 1)
    assert running.end() == "done\n"
    told = notes(meter)
    assert {"gpu/silent", "gpu/gap"} <= set(told)
    times = [row["t"] for row in readings(meter)]
    assert max(b - a for a, b in pairwise(times)) >= 3_000_000
    assert len(meter.of_kind("gpu")) == 1, "the same card keeps its number"


def test_one_that_hangs_for_ever_does_not_hold_anybody(meter: Meter, cards: Cards) -> None:
    """Also not whoever reads the command's output through a pipe."""
    running = Running(meter)
    probe = running.probe()
    running.until_read(1)
    os.kill(probe, 19)  # stopped: like a process in a driver call it will not even take SIGTERM
    cards.set(hang=1)
    began = time.monotonic()
    assert running.end() == "done\n"
    assert time.monotonic() - began < 5
    os.kill(probe, 18)
    until(lambda: not os.path.exists(f"/proc/{probe}"), "the end of the stopped process")


def test_a_driver_that_crashes_is_tried_again(meter: Meter, cards: Cards) -> None:
    running = Running(meter)
    running.until_read(1)
    cards.set(crash=1)
    until(lambda: not running.probes(), "the reading process to die")
    cards.set(crash=0)
    known = len(running.readings())
    running.until_read(known + 2)
    running.end()
    assert "gpu/gap" in notes(meter)


def test_a_library_that_vanishes_ends_the_readings_quietly(meter: Meter, cards: Cards) -> None:
    running = Running(meter)
    running.until_read(1)
    own = cards.state.with_name("gone")
    cards.set(crash=1)
    until(lambda: not running.probes(), "the reading process to die")
    os.rename(cards.state, own)
    assert running.end() == "done\n"
    assert readings(meter)


def test_garbage_sentinels_and_a_reset_counter(meter: Meter, cards: Cards) -> None:
    cards.set(
        count=3, gpu0__energy_mj=SENTINEL, gpu1__util_gpu=4711, gpu1__temperature_c=0xFFFFFFFF,
        gpu2__energy_mj=9_000_000,
    )  # fmt: skip
    running = Running(meter, "--report", str(meter.home.with_name("report.json")))
    running.until_read(2, gpu=2)
    cards.set(gpu2__energy_mj=70_000)
    running.until_read(len(running.readings(2)) + 2, gpu=2)
    running.end()
    assert "energy_mj" not in readings(meter, 0)[0]
    assert {row.get("busy_percent") for row in readings(meter, 1)} == {None}
    report = json.loads(meter.home.with_name("report.json").read_text())
    devices = report["devices"]
    assert devices[0]["energy_method"].startswith("integrated from its average-power readings")
    assert devices[1]["busy"] is None
    assert all(0 < device["energy_j"] < 71 * report["wall_s"] + 1 for device in devices)


def test_sixteen_cards_one_divided(meter: Meter, cards: Cards) -> None:
    cards.set(count=16, gpu3__mig=1, gpu3__util_gpu=40)
    target = meter.home.with_name("report.json")
    running = Running(meter, "--report", str(target), "--electricity", "0.25/kWh")
    running.until_read(2, gpu=15)
    running.end()
    report = json.loads(target.read_text())
    assert len(report["devices"]) == 16
    divided = report["devices"][3]
    assert (divided["mig"], divided["busy"]) == (True, None)
    assert "whole card's" in divided["energy_method"]
    total = sum(device["energy_j"] for device in report["devices"])
    assert report["energy_j"] == pytest.approx(total)
    paid = float(report["energy"]["cost"]["total"])
    assert paid == pytest.approx(total / 3.6e6 * 0.25)
    assert report["cost"]["total"] is None, "the cost of energy is no part of the rental price"


@pytest.mark.parametrize("state", [{"count": 0}, {"init": 9}])
def test_no_gpu_and_no_driver_are_no_noise(
    meter: Meter, cards: Cards, state: dict[str, int]
) -> None:
    cards.set(**state)
    running = Running(meter)
    probe = running.probe()
    until(lambda: not os.path.exists(f"/proc/{probe}"), "the reading process to end")
    if "init" in state:
        until(lambda: notes(meter), "a note")
    running.end()
    assert not meter.of_kind("gpu")
    assert set(notes(meter)) == ({"gpu/driver"} if "init" in state else set())


def test_without_a_library_no_process_is_started(tmp_path: Path) -> None:
    meter = Meter(tmp_path / "home")
    meter.environment["LD_LIBRARY_PATH"] = str(tmp_path)
    running = Running(meter)
    until(lambda: meter.spools() and meter.of_kind("samples"), "a sample")
    assert not running.probes()
    running.end()
    assert not meter.of_kind("gpu")
    assert not meter.of_kind("note")


def test_a_dying_meter_takes_its_reader_along(meter: Meter, cards: Cards) -> None:
    running = Running(meter)
    probe = running.probe()
    running.until_read(1)
    running.process.kill()
    running.process.communicate()
    until(lambda: not os.path.exists(f"/proc/{probe}"), "the end of the reading process")


def test_the_command_is_left_the_cards_it_is_given(meter: Meter, cards: Cards) -> None:
    cards.set(count=3)
    meter.environment["CUDA_VISIBLE_DEVICES"] = "2,GPU-00000000-0000-4000-8000-000000000000"
    running = Running(meter)
    running.until_read(1, gpu=2)
    running.end()
    assert [line["about"]["chosen"] for line in meter.of_kind("gpu")] == [True, False, True]


def test_errors_that_the_driver_reports_reach_the_spool(meter: Meter, cards: Cards) -> None:
    cards.set(count=2, xid="1 0 31")  # before the run: no error of it
    running = Running(meter)
    running.until_read(1, gpu=1)
    cards.set(xid="2 1 79")
    running.end()
    errors = [line["value"] for line in meter.of_kind("around") if line["kind"] == "run.xid"]
    assert [(error["gpu"], error["xid"]) for error in errors] == [(1, 79)]
    assert 0 < errors[0]["at_us"] <= meter.end()["t"]


def test_the_errors_of_a_command_follow_its_end_into_the_report(meter: Meter, cards: Cards) -> None:
    cards.set(count=1)
    running = Running(meter)
    running.until_read(1)
    cards.set(xid="1 0 48")
    running.end()
    said = json.loads(meter.ouvrage("report", "last", "--json").stdout)
    (error,) = said["xids"]
    assert (error["gpu"], error["xid"]) == (0, 48)
    assert "not corrected" in error["meaning"]
    assert b"Xid 48" in meter.ouvrage("report", "last").stdout
    assert said["grade"] == "measured"
