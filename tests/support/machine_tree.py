"""A machine of files: its /proc, /sys, /etc and /var below a directory, as large and as sick as a test wants it."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

BOOT = "5e1f0000-0000-4000-8000-000000000001"


def structure(type: int, body: bytes, *texts: str) -> bytes:
    """A structure of the firmware's table: four bytes of head, the body, its texts."""
    head = struct.pack("<BBH", type, 4 + len(body), type << 4)
    return (
        head + body + (b"\0".join(text.encode() for text in texts) + b"\0\0" if texts else b"\0\0")
    )


def module(socket: str, serial: str, gib: int = 64, part: str = "M321R8GA0BB0") -> bytes:
    """A memory module (type 17); 0 GiB is an empty socket, 32 GiB and more go into the longer field."""
    mib = gib << 10
    short = 0x7FFF if mib >= 0x7FFF else mib
    body = struct.pack(
        "<HHHHHBBBBBHHBBBBB", 0, 0xFFFE, 72, 64, short, 9, 0, 1, 2, 34, 0x80, 4800, 3, 4, 0, 5, 0
    )
    return structure(17, body + struct.pack("<I", mib), socket, "BANK 0", "Samsung", serial, part)


def boards(serial: str = "SYS-1", board: str = "BRD-1") -> bytes:
    """System, board and chassis (types 1 to 3)."""
    return (
        structure(1, bytes([1, 2, 3, 4]), "Supermicro", "AS-8125GS", "Default string", serial)
        + structure(2, bytes([1, 2, 3, 4]), "Supermicro", "H13DSG", "1.01", board)
        + structure(3, bytes([1, 17, 2, 3]), "Supermicro", "To Be Filled By O.E.M.", "CHS-1")
    )


def supply(place: str, serial: str, *, there: bool = True) -> bytes:
    """A power supply (type 39) of 3000 W."""
    body = struct.pack("<BBBBBBBBHH", 1, 1, 2, 3, 4, 0, 5, 6, 3000, 2 if there else 0)
    return structure(39, body, place, "PSU", "Delta", serial, "DPS-3000", "A1")


@dataclass
class Machine:
    """What stands in the tree; change a field and ``write`` it again."""

    root: Path
    node: str = "node-1"
    boot: str = BOOT
    sockets: int = 2
    cores: int = 64
    threads: int = 1
    gib: int = 64
    modules: Sequence[tuple[str, str]] = (("P0 A1", "D-1"), ("P1 A1", "D-2"))
    gpus: dict[str, tuple[str, str]] = field(
        default_factory=lambda: {
            "pci0000:00/0000:00:01.0/0000:01:00.0": ("NVIDIA H100 80GB HBM3", "96.00.74.00.01"),
            "pci0000:80/0000:80:01.0/0000:81:00.0": ("NVIDIA H100 80GB HBM3", "96.00.74.00.01"),
        }
    )
    cards: Sequence[str] = ("pci0000:00/0000:00:01.0/0000:02:00.0",)
    firmware: str = "20.39.1002"
    drives: dict[str, str] = field(default_factory=lambda: {"nvme0": "S6-1"})
    kernel: str = "6.1.0-28-amd64"
    driver: str = "550.90.07"
    bios: str = "2.1"
    packages: dict[str, tuple[str, str]] = field(
        default_factory=lambda: {
            "bash": ("install", "5.2.15-2+b7"),
            "containerd.io": ("hold", "1.7.22-1"),
            "linux-image-6.1.0-28-amd64": ("install", "6.1.119-1"),
            "nvidia-driver": ("hold", "550.90.07-1"),
        }
    )
    settings: dict[str, str] = field(default_factory=lambda: {"sys/vm/swappiness": "10"})
    command_line: str = "BOOT_IMAGE=/vmlinuz root=UUID=1 iommu=pt"
    table: bool = True

    def write(self) -> Machine:
        """The tree as it is now; what was there before is replaced."""
        for top in ("proc", "sys", "etc", "var"):
            _gone(self.root / top)
        files = {
            "proc/sys/kernel/random/boot_id": self.boot,
            "proc/sys/kernel/osrelease": self.kernel,
            "proc/cmdline": self.command_line,
            "proc/cpuinfo": "\n\n".join(self._processors()),
            "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
            "var/lib/dpkg/status": "\n\n".join(self._packages()),
            "sys/class/dmi/id/bios_version": self.bios,
            "sys/class/dmi/id/bios_vendor": "American Megatrends",
            "sys/class/dmi/id/bios_date": "09/13/2024",
            "sys/module/nvidia/version": self.driver,
            **({"sys/devices/system/cpu/smt/control": "on"} if self.threads > 1 else {}),
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            **{f"proc/{name}": value for name, value in self.settings.items()},
        }
        for name, text in files.items():
            self._file(name, text)
        if self.table:
            table = self.root / "sys/firmware/dmi/tables/DMI"
            table.parent.mkdir(parents=True, exist_ok=True)
            table.write_bytes(
                boards() + b"".join(module(*each, gib=self.gib) for each in self.modules)
                + module("P1 B1", "Not Specified", 0) + supply("PSU1", "P-1") + structure(127, b"")
            )  # fmt: skip
        for number, path in enumerate(self.gpus):
            self._gpu(number, path)
        for number, path in enumerate(self.cards):
            self._card(number, path)
        for number, name in enumerate(self.drives):
            self._drive(number, name)
        return self

    def _processors(self) -> list[str]:
        return [
            f"processor\t: {n}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9554\n"
            f"microcode\t: 0xa101148\nphysical id\t: {n // 2}\ncpu cores\t: {self.cores}"
            for n in range(self.sockets * 2)
        ]

    def _packages(self) -> list[str]:
        return [
            f"Package: {name}\nStatus: {want} ok installed\nArchitecture: amd64\n"
            f"Version: {version}\nDescription: one\n more: of it"
            for name, (want, version) in self.packages.items()
        ]

    def _gpu(self, number: int, path: str) -> None:
        model, vbios = self.gpus[path]
        address = self._on_bus(path, "0x10de", "0x2330", "0x030200")
        self._file(
            f"proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t {model}\nGPU UUID: \t GPU-{number}\nVideo BIOS: \t {vbios}\n"
            f"Bus Location: \t {address}\nDevice Minor: \t {number}\n",
        )

    def _card(self, number: int, path: str) -> None:
        address = self._on_bus(path, "0x15b3", "0x1021", "0x020000")
        place = f"sys/devices/{path}"
        self._file(f"{place}/infiniband/mlx5_{number}/fw_ver", self.firmware)
        self._file(f"{place}/infiniband/mlx5_{number}/board_id", "MT_0000000838")
        self._file(f"sys/class/net/eth{number}/address", f"02:00:00:00:00:{number:02x}")
        self._file(f"sys/class/net/eth{number}/addr_assign_type", "0")
        self._link(f"sys/class/net/eth{number}/device", f"sys/bus/pci/devices/{address}")

    def _drive(self, number: int, name: str) -> None:
        path = f"pci0000:40/0000:40:0{number + 1}.0/0000:4{number + 1}:00.0"
        address = self._on_bus(path, "0x144d", "0xa80a", "0x010802")
        place = f"sys/block/{name}n1"
        for what, text in {
            "device/address": address, "device/model": "SAMSUNG MZQL23T8HCLS-00A07",
            "device/serial": self.drives[name], "device/firmware_rev": "GDC5602Q", "size": "7501476528",
        }.items():  # fmt: skip
            self._file(f"{place}/{what}", text)

    def _on_bus(self, path: str, vendor: str, device: str, kind: str) -> str:
        address = path.rpartition("/")[2]
        numa = "0" if path < "pci0000:80" else "1"
        about = {
            "vendor": vendor,
            "device": device,
            "class": kind,
            "numa_node": numa,
            "max_link_width": "16",
        }
        for name, text in about.items():
            self._file(f"sys/devices/{path}/{name}", text)
        self._link(f"sys/bus/pci/devices/{address}", f"sys/devices/{path}")
        return address

    def _file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def _link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(self.root / target, path.parent))


def _gone(place: Path) -> None:
    """Remove a tree without following the links in it."""
    for base, folders, files in os.walk(place, topdown=False):
        for name in (*files, *folders):
            path = Path(base, name)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
