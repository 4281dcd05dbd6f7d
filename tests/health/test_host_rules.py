"""The machine around the GPUs, from values and from trees of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ouvrage.adapters import host_health, procfs
from ouvrage.adapters.health_sources import NotTold, disk_reports, kernel_log, within_deadline
from ouvrage.health.host import (
    Clock,
    MemoryController,
    Mount,
    Room,
    check_edac,
    check_memory,
    check_mounts,
    check_space,
    check_time,
)
from tests.health.rules import BOUNDS, one

GIB = 1 << 30


def room(used: int, inodes: int = 10) -> Room:
    return Room(
        path="/data",
        total=100 * GIB,
        available=(100 - used) * GIB,
        inodes=100,
        inodes_free=100 - inodes,
    )


@pytest.mark.parametrize(
    ("given", "verdict"),
    [(room(50), "OK"), (room(90), "WARN"), (room(97), "CRITICAL"), (room(5, 90), "WARN"),
     (room(5, 98), "CRITICAL"), (Room(path="/x", total=0, available=0, inodes=0, inodes_free=0), "UNKNOWN"),
     (Room(path="/btrfs", total=10, available=9, inodes=0, inodes_free=0), "OK")],
)  # fmt: skip
def test_room(given: Room, verdict: str) -> None:
    assert check_space([given], BOUNDS)[0].verdict == verdict


def test_no_file_system_at_all_is_unknown() -> None:
    assert check_space([], BOUNDS)[0].verdict == "UNKNOWN"
    assert check_mounts([], [], [])[0].verdict == "UNKNOWN"


def mount(path: str, options: str = "rw", kind: str = "ext4") -> Mount:
    return Mount(device="/dev/sda1", path=path, kind=kind, options=tuple(options.split(",")))


ROOT = mount("/")


@pytest.mark.parametrize(
    ("seen", "table", "wanted", "verdict"),
    [
        ([ROOT], [ROOT], [], "OK"),
        ([ROOT], [ROOT, mount("/data")], [], "CRITICAL"),
        ([ROOT], [ROOT, mount("/data", "rw,nofail")], [], "WARN"),
        ([ROOT], [], ["/data"], "CRITICAL"),
        ([mount("/", "ro")], [ROOT], [], "CRITICAL"),
        ([mount("/", "ro")], [mount("/", "ro")], [], "OK"),
        ([mount("/", "ro,errors=remount-ro")], [], [], "CRITICAL"),
        ([mount("/", "ro")], [], [], "OK"),
        ([ROOT, mount("/snap", "ro", "squashfs")], [], [], "OK"),
        ([mount("/", "rw,errors=remount-ro")], [], [], "OK"),
    ],
)
def test_mounts(seen: list[Mount], table: list[Mount], wanted: list[str], verdict: str) -> None:
    assert check_mounts(seen, table, wanted)[0].verdict == verdict


@pytest.mark.parametrize(
    ("values", "expected", "verdict"),
    [
        ({"MemTotal": 512 * GIB, "MemAvailable": 400 * GIB}, None, "OK"),
        ({"MemTotal": 500 * GIB, "MemAvailable": 400 * GIB}, 512, "OK"),
        ({"MemTotal": 480 * GIB, "MemAvailable": 400 * GIB}, 512, "CRITICAL"),
        ({"MemTotal": 512 * GIB, "MemAvailable": 4 * GIB}, None, "WARN"),
        (
            {"MemTotal": 512 * GIB, "MemAvailable": 400 * GIB, "HardwareCorrupted": 4096},
            None,
            "WARN",
        ),
        ({"MemTotal": 512 * GIB}, None, "UNKNOWN"),
        ({}, None, "UNKNOWN"),
    ],
)
def test_memory(values: dict[str, int], expected: int | None, verdict: str) -> None:
    assert check_memory(values, expected, BOUNDS).verdict == verdict


@pytest.mark.parametrize(
    ("corrected", "uncorrected", "verdict"), [(0, 0, "OK"), (1000, 0, "WARN"), (0, 1, "CRITICAL")]
)
def test_memory_controllers(corrected: int, uncorrected: int, verdict: str) -> None:
    found = MemoryController(name="mc0", corrected=corrected, uncorrected=uncorrected)
    assert check_edac([found], BOUNDS).verdict == verdict
    assert check_edac([], BOUNDS).verdict == "UNKNOWN"


@pytest.mark.parametrize(
    ("kept", "error_us", "verdict"),
    [(True, 900, "OK"), (False, 900, "WARN"), (True, 2_000_000, "WARN")],
)
def test_the_clock(kept: bool, error_us: int, verdict: str) -> None:
    assert check_time(Clock(kept=kept, max_error_us=error_us), BOUNDS).verdict == verdict


def test_this_machines_clock_can_be_asked() -> None:
    assert host_health.clock().max_error_us >= 0


def tree(root: Path, **files: str) -> str:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_a_tree_of_files_stands_in_for_a_machine(tmp_path: Path) -> None:
    proc = tree(
        tmp_path / "proc",
        self__mounts="/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /my\\040data ext4 ro,errors=remount-ro 0 0\n",
        meminfo="MemTotal:  1024 kB\nMemAvailable:  512 kB\nHugePages_Total: 3\n",
    )
    assert [found.path for found in host_health.mounts(proc)] == ["/", "/my data"]
    assert host_health.memory(proc) == {"MemTotal": 1 << 20, "MemAvailable": 1 << 19}
    sys = tree(
        tmp_path / "sys",
        devices__system__edac__mc__mc0__ce_count="3\n",
        devices__system__edac__mc__mc0__ue_count="1\n",
        bus__pci__devices__a__class="0x030200\n", bus__pci__devices__a__vendor="0x10de\n",
        bus__pci__devices__b__class="0x030000\n", bus__pci__devices__b__vendor="0x1a03\n",
        bus__pci__devices__c__class="0x068000\n", bus__pci__devices__c__vendor="0x10de\n",
    )  # fmt: skip
    assert [(c.corrected, c.uncorrected) for c in host_health.memory_controllers(sys)] == [(3, 1)]
    assert procfs.nvidia_devices(sys) == 1
    tree(tmp_path / "sys", devices__system__edac__mc__mc0__ue_count="what")
    with pytest.raises(NotTold):
        host_health.memory_controllers(sys)
    with pytest.raises(NotTold):
        host_health.mounts(str(tmp_path / "nowhere"))


def test_no_name_of_a_mount_makes_another_mount(tmp_path: Path) -> None:
    """Anybody mounts a file system of their own, at a directory whose name they chose."""
    name = "/home/eve/a\x0b/dev/sda1\xa0/\xa0ext4\xa0ro,errors=remount-ro\xa00\xa00\u2028b\x1c"
    proc = tree(
        tmp_path / "proc",
        self__mounts=f"/dev/sda1 / ext4 rw,errors=remount-ro 0 0\n/dev/sda1 {name} fuse.x rw 0 0\n",
    )
    found = host_health.mounts(proc)
    assert [(mount.path, mount.kind) for mount in found] == [("/", "ext4"), (name, "fuse.x")]
    assert [room.path for room in host_health.rooms(found, ())] == ["/"]


def test_a_table_of_file_systems(tmp_path: Path) -> None:
    tree(
        tmp_path,
        fstab="# a word\nUUID=1 / ext4 defaults 0 1\nUUID=2 none swap sw 0 0\nUUID=3 /usb ext4 noauto 0 0\nshort\n",
    )
    assert [row.path for row in host_health.fstab(f"{tmp_path}/fstab")] == ["/"]
    assert host_health.fstab(f"{tmp_path}/none") == []


def test_the_room_of_a_path_that_was_named(tmp_path: Path) -> None:
    (found,) = host_health.rooms([], [str(tmp_path)])
    assert 0 < found.available <= found.total
    with pytest.raises(NotTold):
        host_health.rooms([], [f"{tmp_path}/none"])


def test_disks_are_asked_one_by_one_and_one_that_is_silent_harms_no_other(tmp_path: Path) -> None:
    for name in ("nvme0n1", "sda", "loop0", "dm-0"):
        (tmp_path / "block" / name).mkdir(parents=True)
    asked: list[list[str]] = []

    def run(command: list[str]) -> tuple[int, str]:
        asked.append(command)
        return (0, '{"ok": 1}') if "sda" in command[-1] else (2, "no json")

    found = dict(disk_reports(str(tmp_path), run))
    assert [command[-1] for command in asked] == ["/dev/nvme0n1", "/dev/sda"]
    assert found["sda"] == {"ok": 1}
    assert isinstance(found["nvme0n1"], NotTold)


def test_a_command_that_does_not_end_or_is_not_there_is_told() -> None:
    with pytest.raises(NotTold, match="did not end"):
        within_deadline(["sleep", "60"], 0.05)
    with pytest.raises(NotTold, match="not installed"):
        within_deadline(["ouvrage-has-no-such-program"])
    assert within_deadline(["echo", "x"]) == (0, "x\n")


def test_a_kernels_log_from_a_file_and_one_that_is_not_there(tmp_path: Path) -> None:
    tree(tmp_path, kmsg="4,1,100,-;NVRM: Xid (PCI:0000:9b:00): 79, gone\n SUBSYSTEM=pci\n")
    assert one(*kernel_log(f"{tmp_path}/kmsg")).verdict == "CRITICAL"
    with pytest.raises(NotTold):
        kernel_log(f"{tmp_path}/none")
