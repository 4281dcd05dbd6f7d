"""What this machine is made of, as far as its kernel tells it without asking any device: the parts a certificate is bound to.

Decides which files name a part so that another one in its place is noticed: serial numbers, addresses of hardware, UUIDs of
GPUs, versions of firmware, kernel and driver. Roots are arguments; what cannot be read is not a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ouvrage.model.health import Part

_GIB = 1 << 30
_DISPLAY = ("0x0300", "0x0302")


def parts_here(proc: str = "/proc", sys: str = "/sys") -> tuple[Part, ...]:
    """Every part that can be told."""
    at, kernel = Path(sys), Path(proc)
    found = [*_processor(kernel), *_board(at), *_disks(at), *_nics(at), *_gpus(at, kernel), *_software(kernel)]  # fmt: skip
    return tuple(sorted(found, key=lambda each: (each.kind, each.slot)))


def _part(kind: str, slot: str, serial: str | None = None, *, model: str | None = None, version: str | None = None, size: str | None = None) -> Part:  # fmt: skip
    return Part(kind=kind, slot=slot, maker=None, model=model, serial=serial, version=version, size=size)  # fmt: skip


def _line(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip() or None
    except OSError:
        return None


def _processor(proc: Path) -> Iterator[Part]:
    text = _line(proc / "cpuinfo") or ""
    models = re.findall(r"^model name\s*:\s*(.+)$", text, re.M)
    sockets = set(re.findall(r"^physical id\s*:\s*(\d+)$", text, re.M)) or {"0"}
    if models:
        for socket in sorted(sockets):
            yield _part("cpu", socket, model=models[0])
    total = re.search(r"^MemTotal:\s*(\d+) kB$", _line(proc / "meminfo") or "", re.M)
    if total:
        # The kernel keeps some for itself, a little more or less at each boot.
        yield _part("dimm", "all", size=f"{round(int(total[1]) * 1024 / _GIB)} GiB")


def _board(sys: Path) -> Iterator[Part]:
    place = sys / "class/dmi/id"
    board = _line(place / "board_serial") or _line(place / "product_uuid")
    name = _line(place / "board_name")
    if board or name:
        yield _part("board", "0", board, model=name)
    bios = _line(place / "bios_version")
    if bios:
        yield _part("firmware", "bios", version=bios)


def _disks(sys: Path) -> Iterator[Part]:
    for disk in sorted((sys / "block").glob("*")):
        device = disk / "device"
        serial = _line(device / "serial") or _line(disk / "serial") or _line(device / "wwid") or _line(disk / "wwid")  # fmt: skip
        if device.exists() and serial:
            yield _part("disk", disk.name, serial, model=_line(device / "model"))


def _nics(sys: Path) -> Iterator[Part]:
    for card in sorted((sys / "class/net").glob("*")):
        address = _line(card / "address")
        if (card / "device").exists() and address:
            yield _part("nic", card.name, address)


def _gpus(sys: Path, proc: Path) -> Iterator[Part]:
    for device in sorted((sys / "bus/pci/devices").glob("*")):
        if (_line(device / "class") or "").startswith(_DISPLAY):
            told = _line(proc / "driver/nvidia/gpus" / device.name / "information") or ""
            uuid = re.search(r"^GPU UUID:\s*(\S+)", told, re.M)
            model = f"{_line(device / 'vendor')} {_line(device / 'device')}"
            yield _part("gpu", device.name, uuid[1] if uuid else None, model=model)


def _software(proc: Path) -> Iterator[Part]:
    kernel = _line(proc / "sys/kernel/osrelease")
    if kernel:
        yield _part("software", "kernel", version=kernel)
    driver = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", _line(proc / "driver/nvidia/version") or "")
    if driver:
        yield _part("software", "nvidia", version=driver[1])
