"""The host's own figures from ``/proc``: processor, memory, pressure, disks, networks, model.

Says what the kernel says, as absolute counters; differences and meaning are made elsewhere. Whole
disks and physical interfaces only, since partitions, stacked devices and bridges would count the
same bytes twice. In a container the host's totals are not the container's: see ``cgroup``.
"""

from __future__ import annotations

import os

from ouvrage.adapters.kept_file import KeptFile, Room

Values = dict[str, "int | None"]

_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
_SECTOR = 512
_STACKED = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")
_NVIDIA = "0x10de"
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "9p", "virtiofs")
"""Kinds of file systems, as ``/proc/mounts`` names them: those without a disk, and those on another machine's."""


class HostCounters:
    """Reads the host's counters; ``root`` and ``sys`` stand in for ``/proc`` and ``/sys``."""

    def __init__(self, room: Room, root: str = "/proc", sys: str = "/sys") -> None:
        self._stat = KeptFile(f"{root}/stat", room, 256)
        self._meminfo = KeptFile(f"{root}/meminfo", room, 256)
        self._diskstats = KeptFile(f"{root}/diskstats", room)
        self._net = KeptFile(f"{root}/net/dev", room)
        self._pressure = {
            f"psi_{name}_us": KeptFile(f"{root}/pressure/{name}", room, 256)
            for name in ("cpu", "io", "memory")
        }
        self._disks = frozenset(name.encode() for name in whole_disks(sys))
        self._physical = _physical_interfaces(sys)

    def read(self) -> Values:
        """Every counter and gauge of the host, None where the kernel does not tell."""
        values: Values = _processor(self._stat.read())
        values["memory_available_bytes"] = memory_field(self._meminfo.read(), b"MemAvailable:")
        for column, file in self._pressure.items():
            values[column] = _pressure_total(file.read())
        values["disk_read_bytes"], values["disk_write_bytes"] = self._disk_bytes()
        values["net_rx_bytes"], values["net_tx_bytes"] = self._net_bytes()
        return values

    def _disk_bytes(self) -> tuple[int | None, int | None]:
        data = self._diskstats.read()
        if data is None or not self._disks:
            return None, None
        read = written = 0
        for line in data.splitlines():
            words = line.split(None, 10)
            if len(words) > 9 and words[2] in self._disks:
                read += int(words[5])
                written += int(words[9])
        return read * _SECTOR, written * _SECTOR

    def _net_bytes(self) -> tuple[int | None, int | None]:
        data = self._net.read()
        if data is None:
            return None, None
        received = sent = 0
        for line in data.splitlines()[2:]:
            name, _, rest = line.partition(b":")
            name = name.strip()
            if name == b"lo" or (self._physical and name not in self._physical):
                continue
            words = rest.split()
            if len(words) > 8:
                received += int(words[0])
                sent += int(words[8])
        return received, sent


def _processor(data: bytes | None) -> Values:
    if data is None or not data.startswith(b"cpu "):
        return dict.fromkeys(("host_busy_us", "host_idle_us", "host_iowait_us", "host_steal_us"))
    ticks = [int(word) for word in data[: data.index(b"\n")].split()[1:9]]
    ticks += [0] * (8 - len(ticks))
    user, nice, system, idle, iowait, irq, softirq, steal = ticks
    return {
        "host_busy_us": (user + nice + system + irq + softirq) * _TICK_US,
        "host_idle_us": idle * _TICK_US,
        "host_iowait_us": iowait * _TICK_US,
        "host_steal_us": steal * _TICK_US,
    }


def memory_field(data: bytes | None, name: bytes) -> int | None:
    """One line of ``/proc/meminfo`` in bytes."""
    start = data.find(name) if data else -1
    if data is None or start < 0:
        return None
    words = data[start + len(name) : start + len(name) + 40].split(None, 1)
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def _pressure_total(data: bytes | None) -> int | None:
    """``some ... total=N``: microseconds in which at least one task was held up."""
    if not data or not data.startswith(b"some"):
        return None
    line = data[: data.index(b"\n")] if b"\n" in data else data
    _, found, total = line.partition(b"total=")
    return int(total) if found and total.strip().isdigit() else None


def whole_disks(sys: str = "/sys") -> tuple[str, ...]:
    """The names of disks with hardware behind them, in order."""
    return tuple(sorted(n for n in _names(f"{sys}/block") if not n.startswith(_STACKED)))


def _physical_interfaces(sys: str) -> frozenset[bytes]:
    """Interfaces with hardware behind them; empty in a container, where all but ``lo`` count."""
    names = _names(f"{sys}/class/net")
    return frozenset(
        name.encode() for name in names if os.path.exists(f"{sys}/class/net/{name}/device")
    )


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _first(path: str, size: int) -> bytes | None:
    return KeptFile(path, Room(0), size).read()


def cpu_model(root: str = "/proc") -> str | None:
    """The processor's name as the kernel shows it."""
    for line in (_first(f"{root}/cpuinfo", 4096) or b"").splitlines():
        name, _, value = line.partition(b":")
        if name.strip() in (b"model name", b"Model", b"cpu model"):
            return value.strip().decode("utf-8", "backslashreplace") or None
    return None


def memory_bytes(root: str = "/proc") -> int | None:
    """The machine's memory."""
    return memory_field(_first(f"{root}/meminfo", 256), b"MemTotal:")


def nvidia_devices(sys: str) -> int:
    """How many display or 3D controllers of NVIDIA's the PCI bus lists, whether or not the driver knows them."""
    found = 0
    for name in _names(f"{sys}/bus/pci/devices"):
        place = f"{sys}/bus/pci/devices/{name}"
        kind = _first(f"{place}/class", 16) or b""
        made_by = (_first(f"{place}/vendor", 16) or b"").decode("ascii", "replace").strip()
        found += kind.startswith((b"0x0300", b"0x0302")) and made_by == _NVIDIA
    return found
