"""The control group that this process stands in: its limits, its throttling, its memory.

Both hierarchies (v1 and v2, also mixed), and every level up to what is mounted here: the tightest
limit of all levels holds, and throttling is counted at the level whose quota is the tightest. In a
rented container these are the true size of the machine; the host's totals are not.
"""

from __future__ import annotations

import os
import re

from ouvrage.adapters.kept_file import KeptFile, Room

PPM = 1_000_000
_NO_LIMIT = 1 << 60
_PAGE = os.sysconf("SC_PAGE_SIZE")
_REFAULTED = re.compile(rb"^workingset_refault\w* (\d+)$", re.MULTILINE)
_BELOW_REFAULTED = re.compile(rb"^total_workingset_refault\w* (\d+)$", re.MULTILINE)


class Cgroup:
    """Limits as found at the start, and files to read again and again.

    ``cpu_quota_ppm`` is in millionths of a core; None where no level sets a limit.
    """

    def __init__(self, room: Room, proc: str = "/proc") -> None:
        places = _places(proc)
        self.cpu_quota_ppm: int | None = None
        self.memory_limit_bytes: int | None = None
        self._stat: KeptFile | None = None
        self._usage: KeptFile | None = None
        self._pages = KeptFile(f"{proc}/vmstat", room)
        for levels in places:
            self._find_cpu(levels, room)
            self._find_memory(levels, room)

    def _find_cpu(self, levels: list[str], room: Room) -> None:
        for level in levels:
            first = level is levels[0] and self._stat is None
            quota = _quota(level)
            tighter = quota is not None and quota < (self.cpu_quota_ppm or quota + 1)
            if tighter:
                self.cpu_quota_ppm = quota
            if (tighter or first) and b"throttled_" in (_read(f"{level}/cpu.stat") or b""):
                self._stat = KeptFile(f"{level}/cpu.stat", room)

    def _find_memory(self, levels: list[str], room: Room) -> None:
        for level in levels:
            for limit_name, usage_name in (
                ("memory.max", "memory.current"),
                ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            ):
                limit = _number(_read(f"{level}/{limit_name}"))
                if limit is not None and limit < min(
                    self.memory_limit_bytes or limit + 1, _NO_LIMIT
                ):
                    self.memory_limit_bytes = limit
                if self._usage is None and _read(f"{level}/{usage_name}") is not None:
                    self._usage = KeptFile(f"{level}/{usage_name}", room)
                    if b"workingset_refault" in (_read(f"{level}/memory.stat") or b""):
                        self._pages = KeptFile(f"{level}/memory.stat", room)

    def throttling(self) -> dict[str, int | None]:
        """Time in which the group's quota held it back, its periods, and those it was stopped in."""
        told = _numbers(self._stat.read() if self._stat else None)
        time_ns = told.get(b"throttled_time")
        return {
            "throttled_us": told.get(b"throttled_usec") if time_ns is None else time_ns // 1000,
            "quota_periods": told.get(b"nr_periods"),
            "quota_stopped": told.get(b"nr_throttled"),
        }

    def refaulted_bytes(self) -> int | None:
        """Bytes of pages that were read back after they had been thrown out for lack of memory.

        Of the group where it tells, else of the machine.
        """
        data = self._pages.read() or b""
        found = _BELOW_REFAULTED.findall(data) or _REFAULTED.findall(data)
        return sum(map(int, found)) * _PAGE if found else None

    def memory_bytes(self) -> int | None:
        """What the group uses of its memory, page cache included."""
        return _number(self._usage.read()) if self._usage else None


def _quota(level: str) -> int | None:
    modern = _read(f"{level}/cpu.max")
    if modern is not None:
        words = modern.split()
        if len(words) != 2 or words[0] == b"max":
            return None
        quota, period = int(words[0]), int(words[1])
    else:
        quota = _number(_read(f"{level}/cpu.cfs_quota_us")) or -1
        period = _number(_read(f"{level}/cpu.cfs_period_us")) or 0
    return quota * PPM // period if quota > 0 and period > 0 else None


def _places(proc: str) -> list[list[str]]:
    """For each hierarchy this process stands in: its directory and those above, nearest first."""
    mounts = _mounts(proc)
    places: list[list[str]] = []
    for line in (_read(f"{proc}/self/cgroup") or b"").splitlines():
        _, controllers, path = line.decode("utf-8", "surrogateescape").split(":", 2)
        names = set(controllers.split(",")) if controllers else {"unified"}
        if not names & {"unified", "cpu", "memory"}:
            continue
        for served, root, point in mounts:
            if served & names:
                places.append(_levels(root, point, path))
    return [levels for levels in places if levels]


def _mounts(proc: str) -> list[tuple[set[str], str, str]]:
    found: list[tuple[set[str], str, str]] = []
    for line in (_read(f"{proc}/self/mountinfo") or b"").splitlines():
        words = line.decode("utf-8", "surrogateescape").split(" ")
        if "-" not in words[6:]:
            continue
        after = words.index("-", 6)
        kind, options = words[after + 1], words[after + 3]
        if kind == "cgroup2":
            found.append(({"unified"}, words[3], words[4]))
        elif kind == "cgroup":
            found.append((set(options.split(",")), words[3], words[4]))
    return found


def _levels(root: str, point: str, path: str) -> list[str]:
    """Directories from this process's group up to the mount point.

    ``root`` is the part of the hierarchy that is mounted: in a container often the container's own
    group, while ``path`` may still be the host's.
    """
    inside = path
    if root != "/" and (path == root or path.startswith(root + "/")):
        inside = path[len(root) :]
    parts = [part for part in inside.split("/") if part and part != ".."]
    levels = [os.path.join(point, *parts[:depth]) for depth in range(len(parts), -1, -1)]
    return [level for level in levels if os.path.isdir(level)]


def _read(path: str) -> bytes | None:
    return KeptFile(path, Room(0)).read()


def _numbers(data: bytes | None) -> dict[bytes, int]:
    """The lines of ``name number`` in a file of the kernel's."""
    lines = (line.split() for line in (data or b"").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


def _number(data: bytes | None) -> int | None:
    text = (data or b"").strip()
    return int(text) if text.lstrip(b"-").isdigit() else None
