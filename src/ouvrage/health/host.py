"""The machine around its GPUs: room on disks, mounts, memory, its errors, and the clock.

Decides from values that were read elsewhere. A file system that became read-only is a fault, one that is meant to be is
none; corrected memory errors are counted, uncorrected ones take the machine out; a clock nobody keeps is a
warning, because durations and evidence hang on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.health.findings import Belief, Finding, result_of, unknown
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import CRITICAL, WARN, CheckResult
from ouvrage.model.work import Named

GIB = 1 << 30
WRITABLE = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs"})
"""File systems that are written to; read-only by nature are others, such as squashfs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mount: what is mounted where, of which kind, with which options."""

    device: str
    path: str
    kind: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a file system has left, in bytes and inodes; 0 inodes where it has no fixed number of them."""

    path: str
    total: int
    available: int
    inodes: int
    inodes_free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryController:
    """What EDAC counted since boot: errors that were corrected, and those that were not."""

    name: str
    corrected: int
    uncorrected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """What the kernel says of its clock: kept by something, and how far off it may be at most."""

    kept: bool
    max_error_us: int


def _finding(
    verdict: str, rule: str, reason: str, *, action: str = "look", fence: str = "none",
    device: str | None = None,
) -> Finding:  # fmt: skip
    return Finding(
        belief=Belief.COUNTER, verdict=verdict, rule=rule, reason=reason, action=action, fence=fence,
        device=device,
    )  # fmt: skip


def check_space(rooms: Sequence[Room], bounds: Thresholds) -> list[CheckResult]:
    """Each file system's result."""
    if not rooms:
        return [unknown("space", "no file system was found to look at", rule="space/none")]
    return [_space(room, bounds) for room in rooms]


def _space(room: Room, bounds: Thresholds) -> CheckResult:
    if room.total <= 0:
        return unknown("space", "its size is not told", room.path, "space/not-told")
    used = _percent(room.total - room.available, room.total)
    findings = list(_fuller(used, "space.used", "of its space", room.path, bounds))
    if room.inodes > 0:
        inodes = _percent(room.inodes - room.inodes_free, room.inodes)
        findings.extend(_fuller(inodes, "space.inodes", "of its inodes", room.path, bounds))
    good = f"{used:.0f} % used, {room.available / GIB:.1f} GiB left"
    evidence = (
        Named(name="used_percent", value=f"{used:.1f}"),
        Named(name="available_bytes", value=str(room.available)),
    )
    return result_of("space", room.path, findings, good=good, evidence=evidence)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole


def _fuller(used: float, name: str, words: str, path: str, bounds: Thresholds) -> Iterator[Finding]:
    rule = name.replace(".", "-")
    if used >= bounds[f"{name}_critical"]:
        reason = f"{path}: {used:.0f} % {words} are in use"
        yield _finding(CRITICAL, rule, reason, fence="drain", device=path)
    elif used >= bounds[f"{name}_warn"]:
        yield _finding(WARN, rule, f"{path}: {used:.0f} % {words} are in use", device=path)


def check_mounts(
    mounts: Sequence[Mount], table: Sequence[Mount], wanted: Sequence[str]
) -> list[CheckResult]:
    """Whether what must be mounted is, and nothing turned read-only.

    ``table`` is what ``/etc/fstab`` mounts at boot; ``wanted`` are paths somebody named. The last mount of a path
    is the one that is seen.
    """
    if not mounts:
        return [unknown("mounts", "no mount was told", rule="mounts/not-told")]
    seen = {mount.path: mount for mount in mounts}
    meant = {mount.path: mount for mount in table}
    findings: list[Finding] = []
    for path in dict.fromkeys([*wanted, *meant]):
        if path not in seen:
            grave = path in wanted or "nofail" not in meant[path].options
            verdict, fence = (CRITICAL, "drain") if grave else (WARN, "none")
            reason = f"{path} is not mounted"
            findings.append(_finding(verdict, "mount-missing", reason, fence=fence, device=path))
    for mount in seen.values():
        asked = meant.get(mount.path)
        if _turned(mount, asked):
            reason = f"{mount.path} ({mount.kind}) is mounted read-only and was meant to be written"
            findings.append(
                _finding(CRITICAL, "mount-read-only", reason, fence="drain", device=mount.path)
            )
    good = f"{len(seen)} mounts, none missing, none turned read-only"
    return [result_of("mounts", None, findings, good=good)]


def _turned(mount: Mount, asked: Mount | None) -> bool:
    """Whether a file system lies read-only that was to be written to: by its table, or because errors made it."""
    if "ro" not in mount.options or mount.kind not in WRITABLE:
        return False
    if asked is not None:
        return "ro" not in asked.options
    return "errors=remount-ro" in mount.options or "emergency_ro" in mount.options


def check_memory(
    values: dict[str, int], expected_gib: int | None, bounds: Thresholds
) -> CheckResult:
    """The memory there is, and what of it is left; ``values`` are bytes by the kernel's names."""
    total, available = values.get("MemTotal"), values.get("MemAvailable")
    if total is None or available is None or total <= 0:
        return unknown(
            "memory", "the kernel does not tell how much memory there is", rule="memory/not-told"
        )
    findings: list[Finding] = []
    lost = values.get("HardwareCorrupted", 0)
    if lost:
        reason = f"{lost >> 10} KiB of memory are out of use because of errors"
        findings.append(_finding(WARN, "memory-corrupted", reason))
    least = (
        None
        if expected_gib is None
        else expected_gib * GIB * (1 - bounds["memory.short_warn"] / 100)
    )
    if least is not None and total < least:
        reason = f"{total / GIB:.1f} GiB of memory are there and {expected_gib} were expected"
        findings.append(
            _finding(CRITICAL, "memory-short", reason, action="diagnostic", fence="drain")
        )
    if Fraction(available, total) * 100 < bounds["memory.available_warn"]:
        findings.append(
            _finding(WARN, "memory-low", f"{available / GIB:.1f} GiB of memory are left")
        )
    evidence = (
        Named(name="total_bytes", value=str(total)),
        Named(name="available_bytes", value=str(available)),
    )
    good = f"{available / GIB:.1f} of {total / GIB:.1f} GiB available"
    return result_of("memory", None, findings, good=good, evidence=evidence)


def check_edac(controllers: Sequence[MemoryController], bounds: Thresholds) -> CheckResult:
    """Errors of the machine's memory since boot; a machine without a driver for them cannot tell."""
    if not controllers:
        return unknown(
            "edac", "no memory controller is watched (no EDAC driver is loaded)", rule="edac/none"
        )
    findings: list[Finding] = []
    for each in controllers:
        if each.uncorrected:
            reason = f"{each.name}: {each.uncorrected} memory errors were not corrected"
            findings.append(
                _finding(CRITICAL, "edac-uncorrected", reason, action="diagnostic", fence="drain")
            )
        if each.corrected >= bounds["edac.corrected_warn"]:
            reason = f"{each.name}: {each.corrected} memory errors were corrected since boot"
            findings.append(_finding(WARN, "edac-corrected", reason))
    corrected = sum(each.corrected for each in controllers)
    evidence = (
        Named(name="corrected", value=str(corrected)),
        Named(name="uncorrected", value=str(sum(each.uncorrected for each in controllers))),
    )
    good = f"{len(controllers)} memory controllers, {corrected} errors corrected, none uncorrected"
    return result_of("edac", None, findings, good=good, evidence=evidence)


def check_time(clock: Clock, bounds: Thresholds) -> CheckResult:
    """Whether something keeps the clock, by what the kernel itself says."""
    findings: list[Finding] = []
    if not clock.kept:
        findings.append(_finding(WARN, "clock-not-kept", "nothing keeps the clock synchronised"))
    elif clock.max_error_us > bounds.us("time.error_warn"):
        reason = f"the clock may be off by {clock.max_error_us / 1_000_000:.1f} s"
        findings.append(_finding(WARN, "clock-loose", reason))
    evidence = (
        Named(name="synchronised", value="yes" if clock.kept else "no"),
        Named(name="max_error_us", value=str(clock.max_error_us)),
    )
    good = f"synchronised, off by {clock.max_error_us / 1000:.0f} ms at most"
    return result_of("time", None, findings, good=good, evidence=evidence)
