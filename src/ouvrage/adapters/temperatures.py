"""How hot parts of this machine are, how fast its cores run and how often they throttled themselves, from sysfs.

Decides which sensors belong to a processor, a disk or neither, by the name of their driver. A virtual machine has none of
these files; then nothing is told, which is not cold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROCESSOR, DISK, OTHER = ("cpu", "disk", "other")
_DRIVERS = {
    "coretemp": PROCESSOR, "k10temp": PROCESSOR, "k8temp": PROCESSOR, "zenpower": PROCESSOR, "cpu_thermal": PROCESSOR,
    "x86_pkg_temp": PROCESSOR, "nvme": DISK, "drivetemp": DISK,
}  # fmt: skip
_PLAUSIBLE = (1_000, 150_000)
"""Millidegrees: a sensor that says 0 or 255 degrees is not connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperature:
    """One sensor: ``part`` names it, ``sort`` is cpu, disk or other."""

    part: str
    sort: str
    milli_c: int


def temperatures(sys: str = "/sys") -> list[Temperature]:
    """Every sensor that tells something plausible."""
    found = [*_hwmon(Path(sys)), *_zones(Path(sys))]
    return [each for each in found if _PLAUSIBLE[0] <= each.milli_c <= _PLAUSIBLE[1]]


def _hwmon(sys: Path) -> Iterator[Temperature]:
    for chip in sorted((sys / "class/hwmon").glob("hwmon*")):
        driver = _line(chip / "name") or chip.name
        for file in sorted(chip.glob("temp*_input")):
            value = _number(file)
            if value is not None:
                label = _line(file.with_name(file.name.replace("_input", "_label")))
                part = f"{driver} {label or file.name.removesuffix('_input')}"
                yield Temperature(part=part, sort=_DRIVERS.get(driver, OTHER), milli_c=value)


def _zones(sys: Path) -> Iterator[Temperature]:
    for zone in sorted((sys / "class/thermal").glob("thermal_zone*")):
        value, kind = _number(zone / "temp"), _line(zone / "type") or zone.name
        if value is not None:
            yield Temperature(part=kind, sort=_DRIVERS.get(kind, OTHER), milli_c=value)


def clocks_khz(sys: str = "/sys") -> list[int]:
    """How fast each core runs now; empty where the kernel doesn't steer them."""
    files = Path(sys, "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    return [value for file in files if (value := _number(file)) is not None]


def throttles(sys: str = "/sys") -> int | None:
    """How often cores throttled themselves for heat since the boot; None where that isn't counted."""
    files = Path(sys, "devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    counts = [value for file in files if (value := _number(file)) is not None]
    return sum(counts) if counts else None


def _line(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _line(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
