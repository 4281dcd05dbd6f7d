"""The GPUs of a host on the stand-in library: at rest, under a load, lost, silent, and without answers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ouvrage.meter import host_gpus
from ouvrage.meter.host_gpus import Load, gpu_readings
from ouvrage.model.hosts import HostReading
from ouvrage.pricing.market.host_checks import held_to
from ouvrage.pricing.market.promises import promise
from tests.support.meter import until
from tests.support.nvml import Cards

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> Cards:
    for name, value in cards.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(host_gpus, "ASK_MS", 20)
    cards.set(
        gpu0__name="NVIDIA GeForce RTX 3080", gpu0__memory_total=10 << 30, gpu0__pcie_generation=1,
        gpu0__pcie_generation_max=4, gpu0__power_limit_mw=220_000,
    )  # fmt: skip
    return cards


def outcome(found: list[HostReading], id: str, value: str) -> str:
    lines = held_to([promise(id, value, "")], found)
    return next(each.outcome for each in lines if each.id == id)


def load(cards: Cards, tmp_path: Path, *changes: str) -> str:
    """A command that makes the stand-in busy, as a real load makes a card, and goes on for ever."""
    busy = tmp_path / "busy"
    names = {change.partition("=")[0] for change in changes}
    kept = [
        row for row in cards.state.read_text().splitlines() if row.partition("=")[0] not in names
    ]
    busy.write_text("\n".join([*kept, *changes, ""]))
    pid = tmp_path / "pid"
    return f"echo $$ > {pid}; cp {busy} {busy}.new && mv {busy}.new {cards.state} && exec sleep 600"


def test_at_rest_a_slow_link_is_not_held_against_a_card(machine: Cards):
    found = gpu_readings(8, None)
    assert outcome(found, "gpu.model", "RTX3080") == "held"
    assert outcome(found, "gpu.model", "RTX3090") == "broken"
    assert outcome(found, "gpu.memory", "10") == "held"
    assert outcome(found, "gpu.count", "2") == "broken"
    assert outcome(found, "gpu.power_limit", "320") == "broken"
    assert outcome(found, "gpu.pcie_generation", "4") == "unknown"
    assert outcome(found, "gpu.pcie_generation", "5") == "broken"
    assert outcome(found, "gpu.pcie_width", "16") == "held"
    assert outcome(found, "gpu.clock", "1700") == "unknown"


def test_under_load_link_and_clock_are_what_they_are(machine: Cards, tmp_path: Path):
    words = load(
        machine, tmp_path, "gpu0.util_gpu=97", "gpu0.pcie_generation=3", "gpu0.clock_sm_mhz=1395",
        "gpu0.clock_reasons=0x40",
    )  # fmt: skip
    found = gpu_readings(8, Load(command=words, seconds=1.5))
    assert outcome(found, "gpu.pcie_generation", "3") == "held"
    assert outcome(found, "gpu.pcie_generation", "4") == "broken"
    assert outcome(found, "gpu.clock", "1395") == "held"
    assert outcome(found, "gpu.clock", "1710") == "broken"
    clock = next(each for each in found if each.id == "gpu.clock")
    assert "held by hardware thermal" in clock.how
    assert next(each.low for each in found if each.id == "gpu.throttled") == "100"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_a_load_puts_into_a_session_of_its_own_ends_with_it(machine: Cards, tmp_path: Path):
    apart = tmp_path / "apart"
    words = f"setsid sh -c 'trap \"\" TERM; echo $$ > {apart}; sleep 600; sleep 600' & sleep 600"
    gpu_readings(8, Load(command=words, seconds=0.5))
    pid = int(apart.read_text())
    until(lambda: _gone(pid), "what was started apart has ended")


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_load_that_fails_or_leaves_a_card_alone_is_told(machine: Cards):
    failed = gpu_readings(8, Load(command="echo no such file >&2; exit 3", seconds=5))
    assert (
        next(e.how for e in failed if e.id == "gpu.clock") == "the load ended with 3: no such file"
    )
    idle = gpu_readings(8, Load(command="sleep 600", seconds=0.5))
    assert next(e.how for e in idle if e.id == "gpu.clock") == "the load did not use it"
    assert outcome(idle, "gpu.pcie_generation", "4") == "unknown"


def test_a_driver_that_hangs_costs_a_deadline_and_is_unknown(machine: Cards):
    machine.set(hang=1)
    began = time.monotonic()
    found = gpu_readings(0.5, None)
    assert time.monotonic() - began < 5
    assert [each.how for each in found] == ["the driver did not answer within 0.5 s"]
    assert outcome(found, "gpu.count", "1") == "unknown"
    assert outcome(found, "gpu.model", "RTX3080") == "unknown"


def test_a_driver_that_crashes_or_refuses_is_unknown(machine: Cards):
    machine.set(crash=1)
    assert gpu_readings(5, None)[0].how == "the process that reads the GPUs ended"
    machine.set(crash=0, init=9)
    (refused,) = gpu_readings(5, None)
    assert "GPUs cannot be read" in refused.how
    assert outcome([refused], "gpu.count", "1") == "unknown"


def test_a_card_that_tells_little_leaves_the_rest_unknown(machine: Cards):
    machine.set(gpu0__power_limit_mw=-1, gpu0__pcie_generation=-1, gpu0__clock_sm_mhz=-1)
    found = gpu_readings(8, None)
    assert outcome(found, "gpu.model", "RTX3080") == "held"
    assert outcome(found, "gpu.power_limit", "320") == "unknown"
    assert outcome(found, "gpu.pcie_generation", "4") == "unknown"


def test_no_gpu_where_there_is_a_driver_is_none(machine: Cards):
    machine.set(count=0)
    found = gpu_readings(5, None)
    assert outcome(found, "gpu.count", "1") == "broken"


def test_a_lost_gpu_is_not_there(machine: Cards):
    machine.set(count=2, gpu1__lost=1)
    assert outcome(gpu_readings(8, None), "gpu.count", "2") == "broken"


def test_without_the_library_nothing_is_said(machine: Cards, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_gpus.nvml_place, "is_here", lambda _: False)
    assert outcome(gpu_readings(5, None), "gpu.count", "1") == "unknown"
