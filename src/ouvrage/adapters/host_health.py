"""The values that the checks of a host need, from the kernel: mounts, room, memory, EDAC, the clock.

Decides where each stands and how it is read; roots are arguments. What they mean is ``health/host``'s. Network file
systems are not asked for their room: one whose server is away would hold the check for ever.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ouvrage.adapters.health_sources import NotTold
from ouvrage.adapters.procfs import IN_MEMORY, REMOTE
from ouvrage.health.host import Clock, MemoryController, Mount, Room

_OCTAL = re.compile(r"\\([0-7]{3})")
_BLANKS = re.compile(r"[ \t]+")
_UNSYNCHRONISED, _ERROR = 0x40, 5


def mounts(proc: str) -> list[Mount]:
    """Every mount that this process sees. Raises ``NotTold``."""
    return _table(Path(proc, "self/mounts"))


def machine_mounts(proc: str) -> list[Mount]:
    """Every mount that the first process sees: a service's own are read-only where its unit hardens it.

    Where that process cannot be looked at, what this one sees. Raises ``NotTold``.
    """
    try:
        return _table(Path(proc, "1/mounts"))
    except NotTold:
        return mounts(proc)


def fstab(path: str) -> list[Mount]:
    """What a table of file systems mounts at boot; empty where there is none."""
    try:
        rows = _table(Path(path))
    except NotTold:
        return []
    skipped = {"none", "swap"}
    return [
        r for r in rows if "noauto" not in r.options and r.path not in skipped and r.kind != "swap"
    ]


def _table(path: Path) -> list[Mount]:
    try:
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    except OSError as error:
        raise NotTold(f"{path}: {error.strerror}") from error
    # Blanks and line feeds in a name are octal numbers; other separators may stand in one that somebody chose.
    rows = (_BLANKS.split(line.strip(" \t")) for line in lines if not line.lstrip().startswith("#"))
    return [
        Mount(device=_plain(r[0]), path=_plain(r[1]), kind=r[2], options=tuple(r[3].split(",")))
        for r in rows
        if len(r) >= 4
    ]


def _plain(word: str) -> str:
    """Blanks in a name are written as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), word)


def rooms(found: Sequence[Mount], wanted: Sequence[str]) -> list[Room]:
    """The room on each local disk that is written to, and at the paths that were named."""
    local = {
        mount.device: mount.path
        for mount in reversed(found)
        if mount.device.startswith("/dev/") and mount.kind not in (*IN_MEMORY, *REMOTE, "squashfs")
        and not mount.kind.startswith("fuse.")  # a program's of anybody: it may answer what it likes, or never
        and "ro" not in mount.options and os.path.isdir(mount.path)
    }  # fmt: skip
    paths = dict.fromkeys([*wanted, *sorted(local.values())])
    return [_room(path) for path in paths]


def _room(path: str) -> Room:
    try:
        told = os.statvfs(path)
    except OSError as error:
        raise NotTold(f"{path}: {error.strerror}") from error
    return Room(
        path=path,
        # What is kept for root counts as used, as it is to everybody else.
        total=(told.f_blocks - told.f_bfree + told.f_bavail) * told.f_frsize,
        available=told.f_bavail * told.f_frsize,
        inodes=told.f_files,
        inodes_free=told.f_ffree,
    )


def memory(proc: str) -> dict[str, int]:
    """The lines of ``meminfo`` in bytes. Raises ``NotTold``."""
    try:
        lines = Path(proc, "meminfo").read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise NotTold(f"{proc}/meminfo: {error.strerror}") from error
    values: dict[str, int] = {}
    for line in lines:
        words = line.replace(":", " ").split()
        if len(words) == 3 and words[1].isdecimal() and words[2] == "kB":
            values[words[0]] = int(words[1]) << 10
    return values


def memory_controllers(sys: str) -> list[MemoryController]:
    """What EDAC counts, one a controller. Raises ``NotTold`` where a count is no number."""
    place = Path(sys, "devices/system/edac/mc")
    names = sorted(p.name for p in place.glob("mc[0-9]*")) if place.is_dir() else []
    return [
        MemoryController(
            name=name,
            corrected=_count(place / name / "ce_count"),
            uncorrected=_count(place / name / "ue_count"),
        )
        for name in names
    ]


def _count(path: Path) -> int:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise NotTold(f"{path} tells no number") from error


class _Timex(ctypes.Structure):
    """The head of ``struct timex`` (adjtimex(2)); the rest is room for what the kernel writes."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 40),
    )


def clock() -> Clock:
    """What the kernel says of its clock; asking changes nothing. Raises ``NotTold``."""
    told = _Timex(modes=0)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(told))
    if state < 0:
        raise NotTold(f"adjtimex: {os.strerror(ctypes.get_errno())}")
    kept = state != _ERROR and not told.status & _UNSYNCHRONISED
    return Clock(kept=kept, max_error_us=told.maxerror)
