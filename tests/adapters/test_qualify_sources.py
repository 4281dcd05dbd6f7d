"""What audits and qualifications read: trees that stand in for a machine, others' tests, work that notices errors."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import pytest

from ouvrage.adapters import load_work, other_tests
from ouvrage.adapters.host_audit import host_seen
from ouvrage.adapters.temperatures import temperatures, throttles
from ouvrage.model.hosts import HostReading

_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
_REST = "00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _socket(number: int, local: str, state: str) -> str:
    return f"   {number}: {local} 00000000:0000 {state} {_REST}"


DPKG = """Package: runc
Status: install ok installed
Version: 1.1.12-0ubuntu2

Package: nvidia-driver-570
Status: hold ok installed
Version: 570.86.15-0ubuntu1

Package: libnvidia-compute-570
Status: install ok installed
Version: 570.86.15-0ubuntu1

Package: podman
Status: deinstall ok config-files
Version: 4.9.3
"""


def machine(root: Path) -> Path:
    """A machine with an SSH server, a GPU, a BMC, and Ubuntu's kernel."""
    put(root, {
        "proc/net/tcp": _HEAD + _socket(0, "0100007F:1F90", "0A") + _socket(1, "00000000:0016", "0A")
        + _socket(2, "0100A8C0:C350", "01"),
        "proc/net/tcp6": _HEAD + "   0: 00000000000000000000000001000000:22B8 "
        "00000000000000000000000000000000:0000 0A " + _REST
        + "   1: 0000000000000000FFFF00000100007F:22B9 00000000000000000000000000000000:0000 0A " + _REST
        + "   2: 00000000000000000000000000000000:18EB 00000000000000000000000000000000:0000 0A " + _REST,
        "proc/net/udp": _HEAD + _socket(0, "00000000:006F", "07") + _socket(1, "00000000:9C40", "07"),
        "proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n"
        "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\n"
        "eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
        "eth1\t0000090A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n",
        "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
        "proc/sys/user/max_user_namespaces": "62000\n",
        "proc/version_signature": "Ubuntu 5.15.0-91.101-generic 5.15.131\n",
        "etc/ssh/sshd_config": "Include /etc/ssh/sshd_config.d/*.conf\n# PasswordAuthentication yes\n"
        "PasswordAuthentication yes\nUsePAM yes\nMatch User guest\n  PasswordAuthentication yes\n",
        "etc/ssh/sshd_config.d/50-keys.conf": "PasswordAuthentication no\nKbdInteractiveAuthentication=no\n",
        "var/lib/dpkg/status": DPKG,
        "etc/apt/apt.conf.d/20auto": 'APT::Periodic::Unattended-Upgrade "1";\n',
        "etc/apt/apt.conf.d/50un": 'Unattended-Upgrade::Package-Blacklist {\n// "x";\n"libnvidia-";\n};\n',
        "sys/class/ipmi/ipmi0/x": "",
        "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n",
        "sys/bus/pci/devices/0000:01:00.0/device": "0x2684\n",
        "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",
        "sys/bus/pci/devices/0000:00:01.0/class": "0x060400\n",
        "sys/bus/pci/devices/0000:02:00.0/class": "0x010802\n",
    })  # fmt: skip
    for name in ("0000:01:00.0", "0000:01:00.1", "0000:00:01.0", "0000:02:00.0"):
        put(root, {f"sys/kernel/iommu_groups/14/devices/{name}/x": ""})
    (root / "sys/bus/pci/devices/0000:01:00.0/iommu_group").symlink_to("../../../../kernel/iommu_groups/14")  # fmt: skip
    return root


def test_what_is_read_of_a_machine(tmp_path: Path) -> None:
    seen = host_seen(str(machine(tmp_path)))
    assert seen.unread == {}
    assert seen.listening is not None
    assert sorted((s.protocol, s.port, s.near) for s in seen.listening) == [
        ("tcp", 22, False), ("tcp", 6379, False), ("tcp", 8080, True), ("tcp", 8888, True), ("tcp", 8889, True),
        ("udp", 111, False),
    ]  # fmt: skip
    assert seen.ssh is not None
    assert seen.ssh.settings["passwordauthentication"] == "no", "the first one counts"
    assert seen.ssh.within == (("passwordauthentication", "yes"),)
    assert seen.versions == {"runc": "1.1.12-0ubuntu2", "kernel": "5.15.131"}
    assert seen.upgrades is not None
    assert seen.upgrades.on
    assert seen.upgrades.left_alone == {"nvidia-driver-570", "libnvidia-compute-570"}
    (gpu,) = seen.gpus
    assert (gpu.group, gpu.others) == ("14", ("0000:02:00.0",)), (
        "a bridge and its own sound don't count"
    )
    assert seen.networks is not None
    assert seen.networks.bmc
    assert seen.networks.way_out == {"eth0"}
    assert [(i, str(n)) for i, n in seen.networks.near] == [("eth0", "192.168.0.0/24"), ("eth1", "10.9.0.0/24")]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "kernel"),
    [
        ({"proc/version": "Linux version 6.1.0-28-amd64 (x) #1 SMP Debian 6.1.119-1 (2024-11-22)"}, "6.1.119"),
        ({"proc/sys/kernel/osrelease": "6.12.9-arch1-1"}, "6.12.9"),
        ({"proc/sys/kernel/osrelease": "5.14.0-503.el9.x86_64"}, ""),
        ({"proc/sys/kernel/osrelease": "5.15.0-91-generic"}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_which_kernel_it_is(tmp_path: Path, files: dict[str, str], kernel: str) -> None:
    assert host_seen(str(put(tmp_path, files))).versions["kernel"] == kernel


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    seen = host_seen(str(put(tmp_path, {"proc/net/tcp": _HEAD + "nonsense\n"})))
    assert set(seen.unread) == {"services", "admin-network"}
    assert seen.ssh is None
    assert seen.gpus == ()


def test_heat_is_told_by_the_sensor_s_driver(tmp_path: Path) -> None:
    sys = put(tmp_path, {
        "class/hwmon/hwmon0/name": "k10temp\n", "class/hwmon/hwmon0/temp1_input": "71250\n",
        "class/hwmon/hwmon0/temp1_label": "Tctl\n", "class/hwmon/hwmon1/name": "nvme\n",
        "class/hwmon/hwmon1/temp1_input": "44000\n", "class/hwmon/hwmon2/name": "it8\n",
        "class/hwmon/hwmon2/temp3_input": "-128000\n", "class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
        "class/thermal/thermal_zone0/temp": "73000\n",
        "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
        "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "4\n",
    })  # fmt: skip
    assert [(t.part, t.sort, t.milli_c) for t in temperatures(str(sys))] == [
        ("k10temp Tctl", "cpu", 71_250), ("nvme temp1", "disk", 44_000), ("x86_pkg_temp", "cpu", 73_000),
    ]  # fmt: skip
    assert throttles(str(sys)) == 7
    assert throttles(str(tmp_path / "none")) is None


# Work that notices errors


class Steps:
    """Counts what a load tells of itself, and stops it after so many steps."""

    def __init__(self, most: int) -> None:
        self.most, self.steps, self.done, self.wrong = most, 0, 0, 0

    def __call__(self, done: int, wrong: int) -> bool:
        self.steps += 1
        self.done += done
        self.wrong += wrong
        return self.steps < self.most


def test_a_core_that_computes_wrongly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = Steps(4), Steps(4)
    load_work.keep_core_busy(good)
    assert (good.wrong, good.done) == (0, 4 * 262_144)
    made = iter([b"right", b"wrong", b"right", b"wrong"])
    monkeypatch.setattr(zlib, "compress", lambda *_: next(made))
    load_work.keep_core_busy(bad)
    assert bad.wrong == 2


def test_memory_that_does_not_keep_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Steps(12)
    load_work.keep_memory_busy(3 * load_work.MEMORY_BLOCK, good)
    assert (good.wrong, good.done) == (0, 6 * load_work.MEMORY_BLOCK)
    made = load_work.patterns(64)
    assert len(set(made)) == 7
    reads = iter(range(100))

    class Fades(list[bytes]):
        """What was written to the second place is something else when it is compared."""

        def __getitem__(self, place):
            kept = super().__getitem__(place)
            return b"\x01" + kept[1:] if next(reads) == 4 else kept

    monkeypatch.setattr(load_work, "patterns", lambda: Fades(made))
    bad = Steps(6)
    load_work.keep_memory_busy(3 * load_work.MEMORY_BLOCK, bad)
    assert bad.wrong == 1


def test_a_disk_that_gives_back_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 2 * load_work.BLOCK
    good = Steps(8)
    load_work.keep_disk_busy(str(tmp_path), size, good)
    assert (good.wrong, good.done) == (0, 4 * load_work.BLOCK)
    read = os.preadv

    def flips(descriptor: int, buffers: list[bytearray], at: int) -> int:
        got = read(descriptor, buffers, at)
        if at:
            buffers[0][100] ^= 1
        return got

    monkeypatch.setattr(os, "preadv", flips)
    bad = Steps(4)
    load_work.keep_disk_busy(str(tmp_path), size, bad)
    assert (bad.wrong, list(tmp_path.iterdir())) == (1, [])


def test_a_disk_is_written_so_much_and_then_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    written: list[int] = []
    write = os.pwrite

    def counts(descriptor: int, block: bytes, at: int) -> int:
        written.append(at)
        return write(descriptor, block, at)

    monkeypatch.setattr(os, "pwrite", counts)
    steps = Steps(9)
    size = 2 * load_work.BLOCK
    load_work.keep_disk_busy(str(tmp_path), size, steps, most=size)
    assert len(written) == 2
    assert (steps.wrong, steps.done) == (0, 7 * load_work.BLOCK)


# Others' tests


def _program(folder: Path, name: str, says: str, code: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {code}\n")
    file.chmod(0o755)


def _asked(found: list[HostReading]) -> dict[str, tuple[str | None, str]]:
    return {each.id: (each.low, each.how) for each in found}


def test_what_is_not_installed_is_said_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = _asked(other_tests.other_tests(str(tmp_path), 1, 8))
    assert found == {
        "fio.random": (None, "left out: fio is not installed"),
        "dcgm.diagnostic": (None, "left out: dcgmi is not installed"),
        "gpu.ring": (None, "left out: all_reduce_perf is not installed"),
    }
    assert _asked(other_tests.other_tests(str(tmp_path), 1, 0))["dcgm.diagnostic"][1] == "left out: no GPU is here"  # fmt: skip


_NCCL = """# nThread 1 nGpus 2 minBytes 8388608
#  Rank  0 Group  0 Pid  1 on host device  0 [0000:01:00] NVIDIA H100
#  Rank  1 Group  0 Pid  1 on host device  1 [0000:02:00] NVIDIA H100
     8388608       2097152     float     sum      -1    100.0  83.89  83.89      0    100.0  83.89  83.89      0
    16777216       4194304     float     sum      -1    100.0  167.8  412.50      0    100.0  167.8  167.8      0"""


@pytest.mark.parametrize("name", ["DCGM Diagnostic", "DCGM GPU Diagnostic"])
def test_what_other_programs_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tools = tmp_path / "tools"
    results = [{"gpu_id": "0", "status": "Pass"}, {"gpu_id": "1", "status": "Fail"}]
    tests = [{"name": "Memory", "results": results}, {"name": "PCIe", "results": results[:1]}]
    said = {name: {"test_categories": [{"category": "Hardware", "tests": tests}]}}
    _program(tools, "dcgmi", json.dumps(said), code=226)
    _program(tools, "fio", 'note: nothing\n{"jobs": [{"read": {"iops": 81234.5}}]}')
    _program(tools, "all_reduce_perf", _NCCL)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    found = _asked(other_tests.other_tests(str(tmp_path), 1, 2))
    assert found["dcgm.diagnostic"] == ("1", "dcgmi diag -r 2, 3 results: Memory")
    assert found["fio.random"][0] == "81234"
    assert found["gpu.ring"][0] == "412.5"
    assert not list(tmp_path.glob(".ouvrage-fio-*"))
    _program(tools, "fio", "fio: engine libaio not loadable", code=1)
    _program(tools, "dcgmi", "error")
    found = _asked(other_tests.other_tests(str(tmp_path), 1, 2))
    assert found["fio.random"] == (None, "left out: fio ended with 1")
    assert found["dcgm.diagnostic"][1].startswith("left out: DCGM's answer can't be read")
