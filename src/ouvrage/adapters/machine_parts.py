"""What a machine is made of, as the kernel and its firmware tell it: processors, memory, boards, disks, cards, settings.

Decides where each is read; the roots are arguments, so that a tree of files stands in for a machine. A kind that cannot
be read is named with the reason and left out; a field that is not told is None. No driver is asked here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ouvrage.adapters.procfs import whole_disks
from ouvrage.health.smbios import smbios_parts, told
from ouvrage.model.health import Part, Place
from ouvrage.model.work import Named

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,18}")
_GPU = ("0x0300", "0x0302")
_NVIDIA = "0x10de"
_SECTOR = 512
_PAGE = 16_384
_BOARDS = {
    "system": ("sys_vendor", "product_name", "product_serial", "product_version"),
    "board": ("board_vendor", "board_name", "board_serial", "board_version"),
}
_OWN_WORDS = ("BOOT_IMAGE=", "root=", "initrd=", "resume=", "ip=", "hostname=", "BOOTIF=")
"""Words of the kernel's command line that name this one machine's disk or address."""
_SETTINGS = {
    "numa_balancing": "sys/kernel/numa_balancing",
    "swappiness": "sys/vm/swappiness",
    "overcommit_memory": "sys/vm/overcommit_memory",
    "huge_pages": "sys/vm/nr_hugepages",
    "unprivileged_user_namespaces": "sys/kernel/unprivileged_userns_clone",
    "rmem_max": "sys/net/core/rmem_max",
    "wmem_max": "sys/net/core/wmem_max",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Where a machine's files are: its own, or a tree's."""

    proc: str = "/proc"
    sys: str = "/sys"
    etc: str = "/etc"
    var: str = "/var"

    @classmethod
    def under(cls, root: str) -> Roots:
        """The roots below a directory."""
        return cls(**{name: os.path.join(root, name) for name in ("proc", "sys", "etc", "var")})

    @property
    def are_here(self) -> bool:
        """Whether this is the machine that the process runs on, whose driver and tools may be asked."""
        return self == Roots()


Found = tuple[list[Part], list[Named]]
"""Parts, and what could not be read: the kind, and why."""


def line(path: str) -> str | None:
    """A file of one line without white space around it; None where it cannot be read or says nothing."""
    try:
        return told(Path(path).read_text("utf-8", "replace"))
    except OSError:
        return None


def boot_of(roots: Roots) -> str:
    """The kernel's boot id; empty where it is not told."""
    return line(f"{roots.proc}/sys/kernel/random/boot_id") or ""


def pci_address(text: str) -> str:
    """An address as the kernel writes it: the driver's library has more digits and capitals."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{domain[-4:].zfill(4)}:{rest}"


def processors(roots: Roots) -> Found:
    """One part for each socket, from ``/proc/cpuinfo``; ``version`` is its microcode."""
    try:
        text = Path(roots.proc, "cpuinfo").read_text("utf-8", "replace")
    except OSError as error:
        return [], [Named(name="cpu", value=f"{roots.proc}/cpuinfo: {error.strerror}")]
    sockets: dict[str, list[dict[str, str]]] = {}
    for block in text.split("\n\n"):
        rows = (row.partition(":") for row in block.splitlines())
        one = {name.strip(): value.strip() for name, _, value in rows}
        if one.get("processor"):
            sockets.setdefault(one.get("physical id", "0"), []).append(one)
    return [_socket(name, cores) for name, cores in sorted(sockets.items())], []


def _socket(name: str, threads: list[dict[str, str]]) -> Part:
    one = threads[0]
    cores = one.get("cpu cores")
    size = f"{cores} cores" if cores else f"{len(threads)} threads"
    return Part(
        kind="cpu", slot=f"socket {name}", maker=one.get("vendor_id"),
        model=told(one.get("model name")), serial=None, version=one.get("microcode"), size=size,
    )  # fmt: skip


def firmware_table(roots: Roots) -> Found:
    """Boards, memory modules and power supplies from the firmware's own table, which only root may read."""
    path = f"{roots.sys}/firmware/dmi/tables/DMI"
    try:
        return list(smbios_parts(Path(path).read_bytes())), []
    except OSError as error:
        why = f"{path}: {error.strerror}"
        return list(_boards(roots)), [
            Named(name=kind, value=why) for kind in ("board", "dimm", "psu")
        ]


def _boards(roots: Roots) -> Iterator[Part]:
    """What anybody may read of it."""
    for slot, names in _BOARDS.items():
        fields = [line(f"{roots.sys}/class/dmi/id/{name}") for name in names]
        if any(fields):
            maker, model, serial, version = fields
            yield Part(
                kind="board", slot=slot, maker=maker, model=model, serial=serial, version=version,
                size=None,
            )  # fmt: skip


def firmwares(roots: Roots) -> Iterator[Part]:
    """The machine's own firmware, and that of its management controller."""
    dmi = f"{roots.sys}/class/dmi/id"
    version, date = line(f"{dmi}/bios_version"), line(f"{dmi}/bios_date")
    if version:
        text = f"{version} ({date})" if date else version
        yield _firmware("bios", line(f"{dmi}/bios_vendor"), text)
    for place in sorted(Path(roots.sys, "devices/platform").glob("ipmi_bmc.*")):
        revision = line(f"{place}/firmware_revision")
        if revision:
            yield _firmware("bmc", None, revision)


def _firmware(slot: str, maker: str | None, version: str) -> Part:
    return Part(
        kind="firmware", slot=slot, maker=maker, model=None, serial=None, version=version, size=None
    )


def disks(roots: Roots) -> Iterator[Part]:
    """Disks that stay in the machine: an NVMe drive by its PCI address, another by its name."""
    seen: set[str] = set()
    for name in whole_disks(roots.sys):
        place = f"{roots.sys}/block/{name}"
        passing = "1" in (line(f"{place}/removable"), line(f"{place}/hidden"))
        if passing or not os.path.exists(f"{place}/device"):
            continue
        slot = line(f"{place}/device/address") or name
        if slot in seen:
            slot = f"{slot} {name}"  # another namespace of the same drive
        seen.add(slot)
        size = _text(f"{place}/size") or ""
        yield Part(
            kind="disk",
            slot=slot,
            maker=_name(line(f"{place}/device/vendor")),
            model=line(f"{place}/device/model"),
            serial=line(f"{place}/device/serial") or _page_serial(f"{place}/device/vpd_pg80"),
            version=line(f"{place}/device/firmware_rev") or line(f"{place}/device/rev"),
            size=_bytes(int(size) * _SECTOR) if _NUMBER.fullmatch(size) else None,
        )


def _name(text: str | None) -> str | None:
    """A maker's name; some disks have a number there."""
    return None if text is None or text.startswith("0x") else text


def _page_serial(path: str) -> str | None:
    """The serial number in a SCSI drive's page 80h, behind its four bytes of head."""
    try:
        return told(Path(path).read_bytes()[4:].decode("ascii", "replace").strip("\0"))
    except OSError:
        return None


def _bytes(count: int) -> str | None:
    """Decimal, as disks are sold; to a tenth of a unit, so that a formatted sector more changes nothing."""
    for unit, many in (("TB", 10**12), ("GB", 10**9)):
        if count >= many:
            return f"{count * 10 // many / 10:.1f} {unit}"
    return f"{count} bytes" if count else None


def network_cards(roots: Roots) -> Iterator[Part]:
    """Interfaces with hardware behind them: PCI numbers as model, hardware address as serial, firmware of InfiniBand."""
    seen: set[str] = set()
    for name in _listed(f"{roots.sys}/class/net"):
        place = f"{roots.sys}/class/net/{name}"
        address = _behind(f"{place}/device")
        if address is None or address in seen:
            continue
        seen.add(address)
        own = line(f"{place}/addr_assign_type") in ("0", None)
        yield _card(roots, address, line(f"{place}/address") if own else None)
    for name in _listed(f"{roots.sys}/class/infiniband"):
        address = _behind(f"{roots.sys}/class/infiniband/{name}/device")
        if address is not None and address not in seen:
            seen.add(address)
            yield _card(roots, address, line(f"{roots.sys}/class/infiniband/{name}/node_guid"))


def _card(roots: Roots, address: str, serial: str | None) -> Part:
    bus = f"{roots.sys}/bus/pci/devices/{address}"
    infiniband = next(iter(_listed(f"{bus}/infiniband")), None)
    fabric = f"{bus}/infiniband/{infiniband}"
    board = line(f"{fabric}/board_id") if infiniband else None
    numbers = ":".join((line(f"{bus}/{n}") or "?").removeprefix("0x") for n in ("vendor", "device"))
    return Part(
        kind="nic", slot=address, maker=None, serial=serial, size=None,
        model=f"{numbers} {board}" if board else numbers,
        version=line(f"{fabric}/fw_ver") if infiniband else None,
    )  # fmt: skip


def _behind(link: str) -> str | None:
    """The PCI address that a link leads to, or to a device of which; None for none, and for a virtual function.

    Virtual functions come and go with what is set, and are no parts.
    """
    steps = os.path.realpath(link).split(os.sep) if os.path.exists(link) else []
    if os.path.exists(f"{link}/physfn"):
        return None
    return next((step for step in reversed(steps) if _ADDRESS.fullmatch(step)), None)


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def graphics(roots: Roots) -> list[Part]:
    """NVIDIA's GPUs on the bus, with what the driver's own pages tell; their serial numbers only its library tells."""
    return [
        _graphic(roots, address)
        for address in _listed(f"{roots.sys}/bus/pci/devices")
        if line(f"{roots.sys}/bus/pci/devices/{address}/vendor") == _NVIDIA
        and (line(f"{roots.sys}/bus/pci/devices/{address}/class") or "").startswith(_GPU)
    ]


def _graphic(roots: Roots, address: str) -> Part:
    page: dict[str, str] = {}
    for path in Path(roots.proc, "driver/nvidia/gpus").glob("*/information"):
        rows = (row.partition(":") for row in (_text(str(path), _PAGE) or "").splitlines())
        found = {name.strip(): value.strip() for name, _, value in rows}
        if pci_address(found.get("Bus Location", "")) == address:
            page = found
    bios = page.get("Video BIOS", "")
    return Part(
        kind="gpu", slot=address, maker="NVIDIA", model=told(page.get("Model")), serial=None,
        version=None if "?" in bios else told(bios), size=None,
    )  # fmt: skip


def with_library(parts: list[Part], cards: list[Part]) -> list[Part]:
    """The GPUs on the bus with what the library tells of them; one that only the library has is added."""
    told_of = {part.slot: part for part in cards}
    merged = [_more(part, told_of.pop(part.slot, None)) for part in parts]
    return [*merged, *told_of.values()]


def _more(part: Part, told_of: Part | None) -> Part:
    if told_of is None:
        return part
    names = ("model", "serial", "version", "size")
    fields = {name: getattr(told_of, name) or getattr(part, name) for name in names}
    return replace(part, **fields)


def running(roots: Roots) -> Iterator[Part]:
    """The kernel that runs, the system it is part of, and the driver that is loaded."""
    system = _os_release(f"{roots.etc}/os-release")
    versions = {
        "kernel": line(f"{roots.proc}/sys/kernel/osrelease"),
        "system": system,
        "nvidia driver": line(f"{roots.sys}/module/nvidia/version"),
    }
    for name, version in versions.items():
        if version:
            yield Part(
                kind="software", slot=name, maker=None, model=None, serial=None, version=version,
                size=None,
            )  # fmt: skip


_PRETTY = "PRETTY_NAME="


def _os_release(path: str) -> str | None:
    try:
        rows = Path(path).read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    named = (row for row in rows if row.startswith(_PRETTY))
    return told(next(named, "").removeprefix(_PRETTY).strip('"'))


def settings(roots: Roots) -> Iterator[Named]:
    """What was set on this machine and decides how work runs on it; only what is told."""
    found: dict[str, Callable[[], str | None]] = {
        "kernel_command_line": lambda: _command_line(f"{roots.proc}/cmdline"),
        "transparent_huge_pages": lambda: _chosen(
            f"{roots.sys}/kernel/mm/transparent_hugepage/enabled"
        ),
        "cpu_governor": lambda: _text(
            f"{roots.sys}/devices/system/cpu/cpu0/cpufreq/scaling_governor"
        ),
        "hyperthreading": lambda: _text(f"{roots.sys}/devices/system/cpu/smt/control"),
        "iommu": lambda: "on" if _listed(f"{roots.sys}/kernel/iommu_groups") else None,
    }
    for name, path in _SETTINGS.items():
        found[name] = lambda path=path: _text(f"{roots.proc}/{path}")
    for name, read in found.items():
        value = read()
        if value is not None:
            yield Named(name=name, value=value)


def _text(path: str, longest: int = 400) -> str | None:
    """A file's text as it is: ``0`` is a value here."""
    try:
        return Path(path).read_text("utf-8", "replace").strip()[:longest]
    except OSError:
        return None


def _command_line(path: str) -> str | None:
    text = _text(path)
    if text is None:
        return None
    return " ".join(word for word in text.split() if not word.startswith(_OWN_WORDS))


def _chosen(path: str) -> str | None:
    """The one in brackets, of those that there are."""
    match = re.search(r"\[(\w+)\]", _text(path) or "")
    return match[1] if match else None


def places(roots: Roots, slots: list[str]) -> Iterator[Place]:
    """Where some PCI addresses hang: the bridges above them, as the kernel's own directories are nested."""
    for slot in slots:
        device = f"{roots.sys}/bus/pci/devices/{slot}"
        if not _ADDRESS.fullmatch(slot) or not os.path.exists(device):
            continue
        steps = os.path.realpath(device).split(os.sep)
        root = next((i for i, step in enumerate(steps) if step.startswith("pci")), len(steps) - 1)
        node, width = _text(f"{device}/numa_node"), _text(f"{device}/max_link_width")
        yield Place(
            slot=slot,
            path=tuple(steps[root:]),
            numa=int(node) if node and _NUMBER.fullmatch(node) else None,
            cpus=_text(f"{device}/local_cpulist") or None,
            width_max=int(width) if width and _NUMBER.fullmatch(width) else None,
            speed_max=told(_text(f"{device}/max_link_speed")),
        )
