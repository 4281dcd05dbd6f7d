"""How soon a fault is found: every code of the table, and one fault for each probe, with a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path

import pytest

from ouvrage.adapters.health_tables import xid_table
from ouvrage.agent.probing.probes import BY_NAME, PROBES
from ouvrage.agent.probing.settings import Settings
from ouvrage.health.bmc import BmcLook
from ouvrage.ledger.kinds import payload_of
from ouvrage.model.health import OK, NodeInventory, Part, Verdict
from ouvrage.model.power import LogPage, Reading
from tests.health.rules import one
from tests.support.nvml import Cards, build, compiler
from tests.support.stopped_machine import S, StoppedMachine, stopped

HEALTH_LOG = {
    "critical_warning": 0, "available_spare": 100, "available_spare_threshold": 10,
    "percentage_used": 3, "media_errors": 0, "data_units_read": 5, "data_units_written": 5,
    "power_cycles": 3, "power_on_hours": 100, "temperature": 40, "unsafe_shutdowns": 0,
}  # fmt: skip
GOOD_DISK = {
    "device": {"name": "/dev/sda", "protocol": "NVMe"}, "smartctl": {"exit_status": 0},
    "smart_status": {"passed": True}, "power_on_time": {"hours": 100},
    "nvme_smart_health_information_log": HEALTH_LOG,
}  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiler() is None:
        pytest.skip("no C compiler here to build the stand-in for libnvidia-ml.so.1")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(library: Path, tmp_path: Path) -> Iterator[StoppedMachine]:
    """Two GPUs, a good disk, a meter, a peer and a time server, all of them well."""
    cards = Cards(library, tmp_path / "nvml-state")
    cards.set(count=2)
    programs = tmp_path / "bin"
    programs.mkdir()
    report(tmp_path, GOOD_DISK)
    (programs / "smartctl").write_text(f'#!/bin/sh\ncat "{tmp_path}/report.json"\n')
    (programs / "smartctl").chmod(0o755)
    settings = Settings(
        peers=("a",), time_server="t", wall="http://127.0.0.1:9/", bmc=(str(tmp_path), "n1")
    )
    with stopped(tmp_path / "root", cards, settings, programs) as made:
        made.tree.gpus_on_the_bus(2)
        made.instead["time"] = lambda _: {"values": {"kept": True, "max_error_us": 900}}
        made.instead["peers"] = lambda _: {"values": {"peers": [peer(4)]}}
        made.instead["time_server"] = lambda _: {"values": {"ahead_us": 40}}
        made.instead["bmc"] = lambda _: {"values": bmc(("41", "OK"))}
        made.instead["wall"] = lambda _: {"values": {"power_mw": 900_000, "energy_uj": 7}}
        made.go(130)
        assert {w.verdict for w in made.core.memory.watches.values()} == {OK}, made.core.view(0, 0)
        yield made


def peer(answered: int) -> dict[str, object]:
    return {"name": "a", "asked": 4, "answered": answered, "latency_us": 900 if answered else None}


def bmc(inlet: tuple[str, str]) -> dict[str, object]:
    """What a BMC tells, as the child passes it on."""
    look = BmcLook(
        state="on", log=LogPage(entries=(), cursor=None, gap=False, used_percent=3),
        sensors=(Reading(name="inlet", value=Decimal(inlet[0]), unit="Cel", verdict=inlet[1]),),
        restore="last", wanted=None, draws=None,
    )  # fmt: skip
    return json.loads(json.dumps(asdict(look), default=str))


def report(place: Path, told: object) -> None:
    (place / "report.json").write_text(json.dumps(told))


def test_every_code_of_the_table_is_found_within_thirty_seconds(machine: StoppedMachine) -> None:
    """Each on a GPU of its own, at moments that fall everywhere between two looks."""
    took: dict[int, float] = {}
    for number, code in enumerate(sorted(xid_table().codes)):
        machine.go((code * 7919 % 5000) / 1000)
        bus = f"0000:{0x20 + number % 0xD0:02x}:{number // 0xD0:02x}"
        rest = f"pid={1000 + code}, name=job{code}, told"
        text = f"NVRM: Xid (PCI:{bus}): {code}, {rest}"
        machine.tree.log(text, machine.now)
        wanted = one(f"[{machine.now / S:12.6f}] {text}")
        found = machine.go(31, lambda bus=bus: ("xid", bus) in machine.core.memory.watches)
        assert found is not None, code
        took[code] = found
        last = machine.verdicts("xid")[-1]
        assert (last.device, last.code) == (bus, wanted.rule)
        assert last.verdict == wanted.verdict, code
        assert last.since_us == machine.now
    assert len(took) == len(xid_table().codes) > 100
    assert sorted(took.values())[int(len(took) * 0.95)] <= 30
    assert max(took.values()) <= 10
    machine.go(400)
    stated = [each.code for each in machine.events()]
    assert sorted(map(int, stated)) == sorted(took), "each fault is a fact once"


def test_a_gpu_that_falls_off_the_bus_without_a_code_is_lost(machine: StoppedMachine) -> None:
    text = "NVRM: GPU at PCI:0000:11:00: GPU-b has fallen off the bus."
    machine.tree.log(text, machine.now)
    uuid = "GPU-00000000-0000-4000-8000-000000000001"
    assert machine.go(30, lambda: ("xid", uuid) in machine.core.memory.watches)
    assert machine.verdicts("xid")[-1].code == "gpu-lost"
    assert machine.verdicts("xid")[-1].device == uuid, "called as placement calls it"


def test_what_a_program_writes_to_the_log_is_no_fault(machine: StoppedMachine) -> None:
    machine.tree.log("NVRM: Xid (PCI:0000:11:00): 79, pid=1, told", machine.now, facility=1)
    machine.go(30)
    assert {v.verdict for v in machine.verdicts("xid")} == {OK}


GPU = "GPU-00000000-0000-4000-8000-000000000001"
DRIVER_FAULTS = {
    "recovery-action": {"gpu1__recovery_action": 1},
    "gpu-lost": {"gpu1__lost": 1},
    "remap-failure": {"gpu1__remapped_failed": 1},
    "remap-pending": {"gpu1__remapped_pending": 1},
    "ecc-grew": {"gpu1__ecc_uncorrected_volatile": 3},
    "gpu-hot": {"gpu1__temperature_c": 97},
    "slow-hw-power-brake": {"gpu1__clock_reasons": 0x80},
    "pcie-narrow": {"gpu1__pcie_width": 8},
    "nvlink-down": {"gpu1__nvlinks_down": 0b11},
    "gpu-memory-ownerless": {"gpu1__memory_used": 9 << 30},
    "gpu-process-gone": {"proc": f"1 4194303 {1 << 30}"},
    "gpu-process-list": {"proc": f"1 4294967290 {1 << 30}"},
    "gpu-missing": {"count": 1},
    "gpu-refused": {"init": 9, "count": 0},
}


@pytest.mark.parametrize("rule", DRIVER_FAULTS)
def test_a_fault_that_the_driver_tells_is_found_within_thirty_seconds(
    machine: StoppedMachine, rule: str
) -> None:
    machine.go(0.001)
    assert machine.cards is not None
    machine.cards.set(**DRIVER_FAULTS[rule])
    if rule == "gpu-refused":
        machine.instead["gpu"] = lambda _: {"fault": "the driver is not loaded"}
    found = machine.go(31, lambda: any(v.code == rule for v in machine.verdicts("gpu")))
    assert found is not None, machine.core.view(0, 0).checks
    told = next(v for v in machine.verdicts("gpu") if v.code == rule)
    assert told.verdict != OK
    assert machine.counted("gpu", told.device) == told.verdict


@pytest.mark.parametrize("sort", ["hang", "crash", "garbage", "refused", "stuck"])
def test_silence_is_never_well(machine: StoppedMachine, sort: str) -> None:
    """However the driver's probe fails, every GPU it told of is UNKNOWN by its next look; stuck is a finding."""
    machine.instead["gpu"] = lambda _: {"fault": "as the test says", "sort": sort}
    wanted = "CRITICAL" if sort == "stuck" else "UNKNOWN"
    found = machine.go(30, lambda: machine.counted("gpu", GPU) == wanted)
    assert found is not None
    assert {v.verdict for k, v in machine.core.memory.watches.items() if k[0] == "gpu"} == {wanted}
    if sort == "hang":
        assert machine.go(310, lambda: machine.counted("gpu", GPU) == "CRITICAL"), "not for ever"


Inject = Callable[[StoppedMachine], object]


def _worn(machine: StoppedMachine) -> None:
    worn = {**HEALTH_LOG, "available_spare": 0}
    told = {**GOOD_DISK, "nvme_smart_health_information_log": worn}
    report(machine.tree.root.parent, told)


def _recovery(machine: StoppedMachine) -> None:
    assert machine.cards is not None
    machine.cards.set(gpu0__recovery_action=2)


def _instead(probe: str, told: dict[str, object]) -> Inject:
    return lambda machine: machine.instead.__setitem__(probe, lambda _: told)


def _put(name: str, text: str) -> Inject:
    return lambda machine: machine.tree.put(name, text)


def _another_dimm(machine: StoppedMachine) -> None:
    """One that was not accepted; the other probes have nothing more to look at, to pass half an hour quickly."""
    dimm = Part(
        kind="dimm", slot="A1", maker=None, model=None, serial="D-9", version=None, size="64 GiB"
    )
    accepted = NodeInventory(node="n1", boot="b", parts=())
    told = [json.loads(payload_of(each)) for each in (accepted, replace(accepted, parts=(dimm,)))]
    machine.instead |= {name: lambda _: {"absent": "nothing"} for name in BY_NAME}
    machine.instead["inventory"] = lambda _: {"values": {"accepted": told[0], "now": told[1]}}


INJECTED: dict[str, tuple[Inject, str]] = {
    "kernel_log": (lambda m: m.tree.log("nvme nvme0: controller is down; will reset", m.now), "kernel-disk-gone"),
    "gpu": (_recovery, "recovery-action"),
    "links": (_put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN"), "link-down"),
    "edac": (_put("sys/devices/system/edac/mc/mc0/ue_count", "1"), "edac-uncorrected"),
    "memory": (_put("proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 1000 kB"), "memory-low"),
    "time": (lambda m: setattr(m, "ahead_us", 3600 * S), "clock-stepped"),
    "files": (_put("proc/self/mounts", "/dev/sda1 / ext4 ro,errors=remount-ro 0 0"), "mount-read-only"),
    "smart": (_worn, "disk-spare"),
    "inventory": (_another_dimm, "inventory-added"),
    "peers": (_instead("peers", {"values": {"peers": [peer(0)]}}), "peer-lost"),
    "time_server": (_instead("time_server", {"values": {"ahead_us": -9 * S}}), "clock-skew"),
    "bmc": (_instead("bmc", {"values": bmc(("71", "CRITICAL"))}), "bmc-sensor"),
    "wall": (_instead("wall", {"fault": "refused"}), "wall-refused"),
}  # fmt: skip


def test_every_probe_has_a_fault_here() -> None:
    assert INJECTED.keys() == BY_NAME.keys()


@pytest.mark.parametrize("probe", INJECTED)
def test_a_fault_is_found_within_two_intervals(machine: StoppedMachine, probe: str) -> None:
    inject, rule = INJECTED[probe]
    machine.go(700, lambda: machine.core._probes[probe].last_us == _now(machine))
    inject(machine)
    interval = BY_NAME[probe].interval_s
    found = machine.go(
        3 * interval, lambda: any(v.code == rule for c in BY_NAME[probe].checks for v in machine.verdicts(c))
    )  # fmt: skip
    assert found is not None, [c for c in machine.core.view(0, 0).checks if c.verdict != OK]
    assert found <= 2 * interval
    stated = [s.value for at, s in machine.facts if at == machine.now]
    assert any(isinstance(v, Verdict) and v.code == rule and v.verdict != OK for v in stated)


def _now(machine: StoppedMachine) -> int:
    """The moment of a look that was made just now: the fault comes right after it, the worst case."""
    return machine.now + machine.ahead_us + 1_900_000_000 * S


def test_the_intervals_are_those_that_were_promised() -> None:
    told = {each.name: each.interval_s for each in PROBES}
    assert told["gpu"] <= 10
    assert told["links"] <= 5
    assert told["smart"] == 600
