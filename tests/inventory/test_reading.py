"""A machine read from a tree of files: every part, what cannot be read, and the way between parts."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ouvrage.adapters.health_sources import NotTold
from ouvrage.adapters.machine_parts import Roots, pci_address, with_library
from ouvrage.adapters.nvml_parts import gpu_parts
from ouvrage.adapters.packages import installed, simulated_upgrade
from ouvrage.agent.parts import inventory_now
from ouvrage.health.bus import link_between
from ouvrage.health.smbios import smbios_parts, structures, told
from ouvrage.ledger.kinds import from_plain, payload_of
from ouvrage.model.health import NodeInventory, Part, Place
from tests.support.machine_tree import Machine, boards, module, structure, supply
from tests.support.nvml import Cards, build, compiler

TABLE = """\
\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPHB\t0-63\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t64-127\t1\t\tN/A
NIC0\tPHB\tSYS\t X \t\t\t\t

Legend:
"""


def read(machine: Machine, topology: str | None = None) -> NodeInventory:
    return inventory_now(machine.node, Roots.under(str(machine.root)), topology=topology)


def parts(found: NodeInventory, kind: str) -> list[Part]:
    return [part for part in found.parts if part.kind == kind]


def test_every_part_of_a_machine(tmp_path: Path) -> None:
    found = read(Machine(tmp_path).write())
    assert found.boot == "5e1f0000-0000-4000-8000-000000000001"
    assert [(p.slot, p.model, p.size, p.version) for p in parts(found, "cpu")] == [
        ("socket 0", "AMD EPYC 9554", "64 cores", "0xa101148"),
        ("socket 1", "AMD EPYC 9554", "64 cores", "0xa101148"),
    ]
    assert [(p.slot, p.maker, p.model, p.serial, p.size) for p in parts(found, "dimm")] == [
        ("BANK 0 P0 A1", "Samsung", "M321R8GA0BB0", "D-1", "64 GiB"),
        ("BANK 0 P1 A1", "Samsung", "M321R8GA0BB0", "D-2", "64 GiB"),
    ]
    assert [(p.slot, p.model, p.serial, p.version) for p in parts(found, "board")] == [
        ("board", "H13DSG", "BRD-1", "1.01"),
        ("chassis", None, "CHS-1", None),
        ("system", "AS-8125GS", "SYS-1", None),
    ]
    assert [(p.slot, p.model, p.serial, p.version, p.size) for p in parts(found, "disk")] == [
        ("0000:41:00.0", "SAMSUNG MZQL23T8HCLS-00A07", "S6-1", "GDC5602Q", "3.8 TB")
    ]
    assert [(p.slot, p.model, p.serial, p.version) for p in parts(found, "nic")] == [
        ("0000:02:00.0", "15b3:1021 MT_0000000838", "02:00:00:00:00:00", "20.39.1002")
    ]
    assert [(p.slot, p.model, p.version) for p in parts(found, "gpu")] == [
        ("0000:01:00.0", "NVIDIA H100 80GB HBM3", "96.00.74.00.01"),
        ("0000:81:00.0", "NVIDIA H100 80GB HBM3", "96.00.74.00.01"),
    ]
    assert [(p.slot, p.model, p.serial, p.size) for p in parts(found, "psu")] == [
        ("PSU1", "DPS-3000", "P-1", "3000 W")
    ]
    assert {p.slot: p.version for p in parts(found, "software")} == {
        "kernel": "6.1.0-28-amd64", "system": "Debian GNU/Linux 12 (bookworm)", "nvidia driver": "550.90.07",
        "containerd.io": "1.7.22-1", "nvidia-driver": "550.90.07-1",
    }  # fmt: skip
    assert [p.version for p in parts(found, "firmware")] == ["2.1 (09/13/2024)"]
    assert not found.untold
    told = {each.name: each.value for each in found.settings}
    assert told["kernel_command_line"] == "iommu=pt", (
        "the machine's own disk is none of its settings"
    )
    assert (told["swappiness"], told["transparent_huge_pages"]) == ("10", "madvise")


def test_what_cannot_be_read_is_named_and_is_not_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, table=False).write()
    (tmp_path / "var/lib/dpkg/status").unlink()
    (tmp_path / "proc/cpuinfo").unlink()
    found = read(machine)
    assert {each.name for each in found.untold} == {"cpu", "board", "dimm", "psu", "packages"}
    assert all("No such file" in each.value for each in found.untold)
    assert not parts(found, "cpu")


def test_a_virtual_function_is_no_part(tmp_path: Path) -> None:
    machine = Machine(
        tmp_path,
        cards=("pci0000:00/0000:00:01.0/0000:02:00.0", "pci0000:00/0000:00:01.0/0000:02:00.4"),
    )
    machine.write()
    (tmp_path / "sys/devices/pci0000:00/0000:00:01.0/0000:02:00.4/physfn").mkdir()
    assert [part.slot for part in parts(read(machine), "nic")] == ["0000:02:00.0"]


@pytest.mark.property
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.data(),
    st.binary(max_size=60) | st.sampled_from([b"-1", b"9" * 30, b"\xd9\xa1", b"0", b"\x1b[2J"]),
)
def test_whatever_a_file_holds_the_rest_is_read(
    tmp_path: Path, data: st.DataObject, content: bytes
) -> None:
    """One tree, one file of it spoilt at a time and put back."""
    if not (tmp_path / "proc").exists():
        Machine(tmp_path).write()
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    spoilt = data.draw(st.sampled_from(files))
    good = spoilt.read_bytes()
    spoilt.write_bytes(content)
    found = read(Machine(tmp_path))
    spoilt.write_bytes(good)
    assert len(found.parts) > 8
    assert from_plain(NodeInventory, json.loads(payload_of(found))) == found


def test_an_empty_tree_has_no_part_and_says_so(tmp_path: Path) -> None:
    found = read(Machine(tmp_path))
    assert (found.parts, found.boot) == ((), "")
    assert len(found.untold) == 5


def test_ways_from_the_bus_and_nvlinks_from_the_driver_s_table(tmp_path: Path) -> None:
    machine = Machine(tmp_path).write()
    gpu0, gpu1, nic, disk = "0000:01:00.0", "0000:81:00.0", "0000:02:00.0", "0000:41:00.0"
    alone = {(way.one, way.other): way.link for way in read(machine).ways}
    assert alone == {
        (gpu0, gpu1): "SYS", (gpu0, nic): "PIX", (gpu0, disk): "NODE", (gpu1, nic): "SYS", (gpu1, disk): "SYS",
    }  # fmt: skip
    joined = {(way.one, way.other): way.link for way in read(machine, TABLE).ways}
    assert joined == {**alone, (gpu0, gpu1): "NV18"}, "the driver's word counts for NVLink alone"
    places = {place.slot: place for place in read(machine).places}
    assert places[gpu1].path == ("pci0000:80", "0000:80:01.0", gpu1)
    assert (places[gpu1].numa, places[gpu1].width_max) == (1, 16)


def place(path: str, numa: int | None = 0) -> Place:
    steps = tuple(path.split("/"))
    return Place(slot=steps[-1], path=steps, numa=numa, cpus=None, width_max=None, speed_max=None)


@pytest.mark.parametrize(
    ("one", "other", "link"),
    [
        ("h/r/up/d1/a", "h/r/up/d2/b", "PIX"),
        ("h/r/a", "h/r/b", "PIX"),
        ("h/r/up/d1/up2/d3/a", "h/r/up/d2/b", "PXB"),
        ("h/r1/a", "h/r2/b", "PHB"),
        ("h/a", "h/b", "PHB"),
        ("h1/r/a", "h2/r/b", "NODE"),
    ],
)
def test_the_nearest_way_as_nvml_defines_it(one: str, other: str, link: str) -> None:
    """NVML_TOPOLOGY_SINGLE, MULTIPLE, HOSTBRIDGE, NODE, SYSTEM (nvml.h)."""
    assert link_between(place(one), place(other)) == link
    assert link_between(place(other), place(one)) == link
    if link == "NODE":
        assert link_between(place(one), place(other, 1)) == "SYS"
        assert link_between(place(one, None), place(other, None)) == "SYS"


def test_modules_of_every_size(tmp_path: Path) -> None:
    sizes = {gib: smbios_parts(module("A1", "S", gib))[0].size for gib in (1, 16, 31, 32, 256)}
    assert sizes == {1: "1 GiB", 16: "16 GiB", 31: "31 GiB", 32: "32 GiB", 256: "256 GiB"}
    assert smbios_parts(module("A1", "S", 0)) == (), "an empty socket"
    assert smbios_parts(supply("PSU1", "S", there=False)) == ()


def test_two_parts_in_one_place_are_two() -> None:
    found = smbios_parts(module("A1", "S-1") + module("A1", "S-2"))
    assert [(part.slot, part.serial) for part in found] == [
        ("BANK 0 A1", "S-1"),
        ("BANK 0 A1 (2)", "S-2"),
    ]


@pytest.mark.parametrize(
    "text", ["", "None", "Default string", "To Be Filled By O.E.M.", "0000000000", "0x00000000", "NO DIMM", "N/A", "Not Specified"]
)  # fmt: skip
def test_what_makers_write_for_nothing_is_nothing(text: str) -> None:
    assert told(text) is None


@pytest.mark.property
@given(st.binary(max_size=200))
@example(boards()[:-1])
@example(structure(17, b"\1"))
def test_any_bytes_are_a_table_or_none(table: bytes) -> None:
    whole = list(structures(table))
    assert sum(len(each.data) for each in whole) <= len(table)
    assert len({(part.kind, part.slot) for part in smbios_parts(table)}) == len(smbios_parts(table))


@pytest.mark.property
@given(st.integers(0, 600))
def test_a_table_cut_off_yields_the_parts_before_the_cut(at: int) -> None:
    table = boards() + module("A1", "S-1") + supply("PSU1", "S")
    found, whole = smbios_parts(table[:at]), smbios_parts(table)
    assert found == whole[: len(found)]


def test_packages_held_and_of_two_architectures(tmp_path: Path) -> None:
    status = tmp_path / "lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text(
        "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9\n\n"
        "Package: libc6\nStatus: hold ok installed\nArchitecture: i386\nVersion: 2.36-9\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    )
    found = installed(str(tmp_path))
    assert {each.name: each.value for each in found.packages} == {
        "libc6": "2.36-9",
        "libc6:i386": "2.36-9",
    }
    assert found.held == ("libc6:i386",)


def test_a_package_manager_that_refuses_is_said() -> None:
    with pytest.raises(NotTold, match="apt-get ended with 100"):
        simulated_upgrade(lambda command: (100, ""))


def test_the_library_s_address_is_the_kernel_s() -> None:
    assert pci_address("00000000:9B:00.0") == "0000:9b:00.0"
    assert pci_address("0000:01:00.0") == "0000:01:00.0"


def test_a_gpu_only_the_library_has_is_added(tmp_path: Path) -> None:
    on_bus = [p for p in read(Machine(tmp_path).write()).parts if p.kind == "gpu"]
    known = [
        replace(on_bus[0], serial="165", version=None),
        replace(on_bus[1], slot="0000:c1:00.0", serial="166"),
    ]
    merged = with_library(on_bus, known)
    assert [(p.slot, p.serial, p.version) for p in merged] == [
        ("0000:01:00.0", "165", "96.00.74.00.01"),
        ("0000:81:00.0", None, "96.00.74.00.01"),
        ("0000:c1:00.0", "166", "96.00.74.00.01"),
    ]


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_serial_numbers_come_from_the_driver_s_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own loads the stand-in; one that crashes is not told."""
    cards = Cards(build(tmp_path), tmp_path / "state")
    cards.set(count=2, gpu0__serial="1650123", gpu1__serial="1650124")
    for name, value in cards.environment.items():
        monkeypatch.setitem(os.environ, name, value)
    found, given_settings = gpu_parts()
    assert [part.serial for part in found] == ["1650123", "1650124"]
    assert len({part.slot for part in found}) == 2
    assert all(each.name.startswith("gpu 0000:") for each in given_settings)
    cards.set(crash=1)
    with pytest.raises(NotTold):
        gpu_parts()
