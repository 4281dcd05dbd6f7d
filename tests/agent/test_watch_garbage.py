"""Answers that are JSON and yet nonsense: the probe is UNKNOWN, and the watch of everything else goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ouvrage.agent.probing.memory import memory_from, memory_json
from ouvrage.agent.probing.now import now_json
from ouvrage.agent.probing.readings import Readings
from ouvrage.agent.probing.settings import Settings
from ouvrage.model.health import CRITICAL, OK, UNKNOWN
from ouvrage.model.meters import EnergyRead
from tests.support.stopped_machine import StoppedMachine, stopped

GPU = {
    "uuid": "GPU-1", "name": "H100", "serial": "1", "pci": "0000:9b:00.0", "mig": 0, "index": 0, "pcie_width": 16,
    "pcie_width_max": 16, "temperature_c": 40, "power_mw": 1000, "nvlinks_up": 4, "recovery_action": 0,
}  # fmt: skip
LINK = {"name": "eth0", "kind": "nic", "up": True, "changes": 2, "counters": {"rx_errors": 0}}
ROOM = {"path": "/", "total": 1 << 40, "available": 1 << 39, "inodes": 1000, "inodes_free": 900}
SENSOR = {"name": "CPU", "value": "40", "unit": "C", "verdict": "OK"}
BMC = {
    "state": "on",
    "sensors": [SENSOR],
    "log": None,
    "restore": None,
    "wanted": None,
    "draws": None,
}
WALL = {"power_mw": 1000, "energy_uj": 5}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[StoppedMachine]:
    settings = Settings(wall="http://plug", bmc=("/x", "n1"))
    with stopped(tmp_path / "root", settings=settings) as made:
        made.instead["time"] = lambda _: {"values": {"kept": True, "max_error_us": 900}}
        for probe, values in (
            ("gpu", {"gpus": [GPU], "listed": 1}), ("bmc", BMC), ("wall", WALL),
        ):  # fmt: skip
            made.instead[probe] = lambda _, values=values: {"values": values}
        made.go(130)
        yield made


@pytest.mark.parametrize(
    ("probe", "values", "check"),
    [
        ("gpu", {"gpus": "none", "listed": 1}, "gpu"),
        ("gpu", {"gpus": [""], "listed": 1}, "gpu"),
        ("gpu", {}, "gpu"),
        ("links", {"links": [{**LINK, "name": None}]}, "link"),
        ("links", {"links": [{**LINK, "name": []}]}, "link"),
        ("links", {"links": [{"name": "eth0"}]}, "link"),
        ("files", {"mounts": [], "fstab": [], "rooms": [{**ROOM, "path": []}]}, "mounts"),
        ("files", {"mounts": [], "fstab": [], "rooms": [{**ROOM, "path": 1.5}]}, "mounts"),
        ("files", {"mounts": [], "fstab": [], "rooms": [{**ROOM, "total": {}}]}, "mounts"),
        ("wall", {"power_mw": 1, "energy_uj": "many"}, "wall"),
        ("wall", {"power_mw": 1, "energy_uj": 1.5}, "wall"),
        ("wall", {"power_mw": 1}, "wall"),
        ("bmc", {**BMC, "sensors": [{**SENSOR, "limit": 3}]}, "bmc"),
        ("kernel_log", {"lines": [], "read": 0, "lost": 0, "place": "end"}, "xid"),
    ],
)
def test_nonsense_is_unknown_and_holds_up_nothing(
    machine: StoppedMachine, tmp_path: Path, probe: str, values: Mapping[str, Any], check: str
) -> None:
    readings = Readings(tmp_path)
    machine.instead[probe] = lambda _: {"values": values}
    machine.go(200)
    assert machine.counted(check) == UNKNOWN
    assert machine.counted("memory") == OK
    held = memory_json(machine.core.memory)
    assert memory_json(memory_from(json.loads(json.dumps(held)))) == held
    assert now_json(machine.core.view(1, machine.now))["probes"][probe]["fault"]
    readings.take(machine.core.understood, 1, machine.now)
    machine.tree.log("NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=a, gone", machine.now)
    del machine.instead[probe]
    machine.go(60)
    assert CRITICAL in {w.verdict for k, w in machine.core.memory.watches.items() if k[0] == "xid"}


def test_a_sensor_whose_value_is_no_number_holds_up_no_other(machine: StoppedMachine) -> None:
    hot = {**SENSOR, "name": "PSU", "verdict": CRITICAL}
    broken = {**SENSOR, "value": "about forty"}
    machine.instead["bmc"] = lambda _: {"values": {**BMC, "sensors": [broken, hot]}}
    machine.go(200)
    assert machine.counted("bmc") == CRITICAL


def test_of_two_parts_with_one_name_the_worse_counts(machine: StoppedMachine) -> None:
    sick = {**GPU, "index": 1, "pci": "0000:9c:00.0", "recovery_action": 2}
    for gpus in ([GPU, sick], [sick, GPU]):
        machine.instead["gpu"] = lambda _, gpus=gpus: {"values": {"gpus": gpus, "listed": 2}}
        machine.go(60)
        assert machine.counted("gpu", "GPU-1") == CRITICAL
        machine.core.memory.watches.pop(("gpu", "GPU-1"))


def test_an_hour_with_a_meter_that_talks_nonsense_is_stated_without_it(
    machine: StoppedMachine,
) -> None:
    machine.go(600)
    machine.instead["wall"] = lambda _: {"values": {"power_mw": None, "energy_uj": "x"}}
    machine.go(1200)
    machine.instead["wall"] = lambda _: {"values": {"power_mw": 1000, "energy_uj": 6 * 10**9}}
    machine.go(3600)
    hours = [said.value for _, said in machine.facts if isinstance(said.value, EnergyRead)]
    assert sum(hour.energy_j for hour in hours) > 0, "what was counted before and after"
