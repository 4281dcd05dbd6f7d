"""A disk's own account of itself: smartctl's JSON, or nvme-cli's log, and what to make of it.

Decides by the values, not by the drive's summary: a drive with no spare blocks left says that it passed. Bits of
smartctl's exit code (smartctl(8), "EXIT STATUS") count for what they mean: 4 (a command failed) is no fault where the
attributes are there, 64 (old errors in the log) is none at all. Values that cannot be are not believed: UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ouvrage.health.findings import Belief, Finding, result_of, unknown
from ouvrage.health.tables import Thresholds
from ouvrage.model.health import CRITICAL, UNKNOWN, WARN, CheckResult
from ouvrage.model.work import Named

Json = Mapping[str, Any]

_BITS = {
    0: (UNKNOWN, "smartctl could not read its command line"),
    1: (UNKNOWN, "the drive could not be opened or did not identify itself"),
    3: (CRITICAL, "the drive says that it is failing"),
    4: (CRITICAL, "an attribute that foretells failure is at its threshold"),
    5: (WARN, "an attribute was at its threshold in the past"),
    7: (WARN, "the log of self-tests holds errors"),
}
_WARNINGS = {
    0: (CRITICAL, "available spare is below its threshold"),
    1: (WARN, "the temperature is outside its bounds"),
    2: (CRITICAL, "reliability is degraded by errors"),
    3: (CRITICAL, "the drive is read-only"),
    4: (CRITICAL, "the backup of its volatile memory has failed"),
    5: (WARN, "its persistent memory region is unreliable"),
}
"""Bits of ``critical_warning`` (NVM Express base specification, SMART / Health Information log)."""

_NAMES = {
    "available_spare": ("available_spare", "avail_spare"),
    "available_spare_threshold": ("available_spare_threshold", "spare_thresh"),
    "percentage_used": ("percentage_used", "percent_used"),
    "critical_warning": ("critical_warning",),
    "media_errors": ("media_errors",),
    "power_on_hours": ("power_on_hours",),
    "power_cycles": ("power_cycles",),
    "data_units_read": ("data_units_read",),
    "data_units_written": ("data_units_written",),
    "host_reads": ("host_reads", "host_read_commands"),
    "host_writes": ("host_writes", "host_write_commands"),
    "controller_busy_time": ("controller_busy_time",),
    "temperature": ("temperature",),
}
"""Our name of a value, and what smartctl and nvme-cli call it."""

_KELVIN = 273
_NEEDED = ("available_spare", "available_spare_threshold", "critical_warning")
_COUNTERS = ("data_units_read", "data_units_written", "host_reads", "host_writes", "power_cycles")
_PENDING = {197: "sectors that wait for reallocation", 198: "sectors that could not be read"}
_SHOWN = (
    "critical_warning", "available_spare", "available_spare_threshold", "percentage_used",
    "media_errors", "power_on_hours", "temperature",
)  # fmt: skip


def check_disk(
    given: object, bounds: Thresholds, before: object = None, name: str | None = None
) -> CheckResult:
    """One drive's result from its JSON; ``before`` is an earlier one of the same drive, to see what grew."""
    if not isinstance(given, dict):
        return unknown(
            "smart", "this is no JSON object of smartctl or nvme-cli", name, "smart/form"
        )
    data = cast("Json", given)
    device = name or device_of(data)
    log = nvme_log(data)
    attributes = _attributes(data)
    exit_status = number(_within(data, "smartctl").get("exit_status"))
    if not log and not attributes:
        return _nothing(data, device, exit_status)
    doubt = _implausible(log, bounds)
    if doubt:
        return unknown("smart", doubt, device, "disk-implausible")
    earlier = nvme_log(cast("Json", before)) if isinstance(before, dict) else {}
    findings = [
        *_exit_findings(exit_status, device),
        *_summary(data, device),
        *_nvme(log, earlier, bounds, device),
        *_ata(attributes, bounds, device),
        *_hot(data, log, bounds, device),
    ]
    return result_of("smart", device, findings, good=_good(data, log), evidence=_shown(data, log))


def number(value: object) -> int | None:
    """A whole number that is one, or a text of digits; else None. nvme-cli prints large ones as texts."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    digits = value.replace(",", "") if isinstance(value, str) else ""
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 40 else None


def device_of(data: Json) -> str | None:
    """The drive's name in smartctl's JSON."""
    found = _within(data, "device").get("name")
    return found if isinstance(found, str) else None


def nvme_log(data: Json) -> dict[str, int]:
    """The health log of an NVMe drive by our names; empty where there is none."""
    held = data.get("nvme_smart_health_information_log", data)
    log = cast("Json", held) if isinstance(held, dict) else {}
    if "available_spare" not in log and "avail_spare" not in log:
        return {}
    found: dict[str, int] = {}
    for name, others in _NAMES.items():
        value = next((log[other] for other in others if other in log), None)
        told = _warning_bits(value) if name == "critical_warning" else number(value)
        if told is not None:
            found[name] = told
    if found.get("temperature", 0) > _KELVIN:
        found["temperature"] -= _KELVIN  # nvme-cli's is in kelvin
    return found


def _warning_bits(value: object) -> int | None:
    """``critical_warning`` as a number; newer nvme-cli prints an object with the value and its bits."""
    if isinstance(value, dict):
        return number(cast("Json", value).get("value"))
    return number(value)


def _within(data: Json, name: str) -> Json:
    found = data.get(name)
    return cast("Json", found) if isinstance(found, dict) else {}


def _attributes(data: Json) -> list[Json]:
    """The attributes of a SATA drive that have a value."""
    table = _within(data, "ata_smart_attributes").get("table")
    rows = (
        [cast("Json", row) for row in table if isinstance(row, dict)]
        if isinstance(table, list)
        else []
    )
    return [row for row in rows if number(row.get("value")) is not None]


def _hot(
    data: Json, log: Mapping[str, int], bounds: Thresholds, device: str | None
) -> Iterator[Finding]:
    """A drive above the temperature that it names as its own bound, or else ours."""
    heat = log.get("temperature", number(_within(data, "temperature").get("current")))
    own = number(_within(data, "nvme_composite_temperature_threshold").get("warning"))
    most = bounds["disk.temperature_warn"] if own is None else own
    if heat is not None and heat >= most:
        yield _found(
            WARN, "disk-hot", f"the drive is {heat} °C hot, its bound is {most} °C", device
        )


def _nothing(data: Json, device: str | None, exit_status: int | None) -> CheckResult:
    """A drive that told nothing. That it failed its own check counts even so."""
    findings = [*_exit_findings(exit_status, device), *_summary(data, device)]
    if any(each.verdict == CRITICAL for each in findings):
        return result_of("smart", device, findings, good="")
    why = next((f.reason for f in findings if f.verdict == UNKNOWN), "it holds no log of health")
    return unknown("smart", f"the drive's health is not told: {why}", device, "disk-no-log")


def _implausible(log: Mapping[str, int], bounds: Thresholds) -> str | None:
    """Why a log cannot be believed: a drive that ran for days and yet never did anything."""
    hours = log.get("power_on_hours", 0)
    counted = [log[name] for name in _COUNTERS if name in log]
    if hours > bounds["disk.plausible_after"] and len(counted) > 1 and not any(counted):
        return f"{hours} hours of power and every other counter 0: these values cannot be"
    for name, most in (("available_spare", 100), ("percentage_used", 255)):
        if not 0 <= log.get(name, 0) <= most:
            return f"{name} is {log[name]}: that cannot be"
    return None


def _found(
    verdict: str, rule: str, reason: str, device: str | None, action: str | None = None
) -> Finding:
    fence = "drain" if verdict == CRITICAL else "none"
    asks = action or {CRITICAL: "replace"}.get(verdict, "look")
    return Finding(
        belief=Belief.COUNTER, verdict=verdict, rule=rule, reason=reason, device=device,
        fence=fence, action=asks,
    )  # fmt: skip


def _exit_findings(exit_status: int | None, device: str | None) -> Iterator[Finding]:
    for bit, (verdict, words) in _BITS.items():
        if exit_status is not None and exit_status >> bit & 1:
            yield _found(
                verdict, f"smartctl-exit-bit-{bit}", f"{words} (exit {exit_status})", device
            )


def _summary(data: Json, device: str | None) -> Iterator[Finding]:
    if _within(data, "smart_status").get("passed") is False:
        yield _found(CRITICAL, "disk-failed", "the drive's own check of its health failed", device)


def _nvme(
    log: Mapping[str, int], earlier: Mapping[str, int], bounds: Thresholds, device: str | None
) -> Iterator[Finding]:
    missing = [name for name in _NEEDED if name not in log]
    if log and missing:
        yield _found(UNKNOWN, "disk-not-told", f"{', '.join(missing)}: not told", device)
    spare, least = log.get("available_spare"), log.get("available_spare_threshold")
    if spare is not None and least is not None and spare < least:
        words = f"available spare is {spare} %, below the drive's threshold of {least} %"
        yield _found(CRITICAL, "disk-spare", words, device)
    for bit, (verdict, words) in _WARNINGS.items():
        if log.get("critical_warning", 0) >> bit & 1 and not (
            bit == 0 and (spare or 0) < (least or 0)
        ):
            yield _found(verdict, f"nvme-warning-bit-{bit}", words, device)
    used = log.get("percentage_used", 0)
    if used > bounds["disk.used_warn"]:
        verdict = CRITICAL if used > bounds["disk.used_critical"] else WARN
        yield _found(verdict, "disk-used", f"{used} % of the drive's life is used", device)
    yield from _media(log.get("media_errors", 0), earlier.get("media_errors"), bounds, device)


def _media(
    errors: int, before: int | None, bounds: Thresholds, device: str | None
) -> Iterator[Finding]:
    if before is not None and errors > before:
        words = f"media errors grew from {before} to {errors}: data is being lost"
        yield _found(CRITICAL, "disk-media-grew", words, device)
    elif errors >= bounds["disk.media_warn"]:
        words = f"{errors} media errors: data was lost once"
        yield _found(WARN, "disk-media", words, device)


def _ata(attributes: list[Json], bounds: Thresholds, device: str | None) -> Iterator[Finding]:
    for row in attributes:
        id, value, least = (
            number(row.get("id")),
            number(row.get("value")),
            number(row.get("thresh")),
        )
        name, failed = str(row.get("name"))[:40], str(row.get("when_failed") or "")
        flags = _within(row, "flags")
        if value is not None and least and value <= least:
            grave = flags.get("prefailure") is True
            words = f"{name} is {value}, at or below its threshold of {least}"
            yield _found(CRITICAL if grave else WARN, f"ata-{id}", words, device)
        elif "past" in failed:
            yield _found(WARN, f"ata-{id}", f"{name} was at its threshold in the past", device)
        raw = number(_within(row, "raw").get("value"))
        if id in _PENDING and raw is not None and bounds["disk.pending_warn"] <= raw < 1 << 32:
            yield _found(WARN, f"ata-{id}", f"{raw} {_PENDING[id]}", device)


def _good(data: Json, log: Mapping[str, int]) -> str:
    model = str(data.get("model_name") or "the drive")[:60]
    if log:
        return (
            f"{model}: spare {log.get('available_spare')} % (threshold"
            f" {log.get('available_spare_threshold')} %), {log.get('percentage_used', 0)} % of its life used"
        )
    return f"{model}: every attribute is above its threshold"


def _summary_word(passed: object) -> str:
    if not isinstance(passed, bool):
        return "none"
    return "passed" if passed else "failed"


def _shown(data: Json, log: Mapping[str, int]) -> tuple[Named, ...]:
    told = [Named(name=name, value=str(log[name])) for name in _SHOWN if name in log]
    told += [
        Named(name=name, value=str(data[name])[:80])
        for name in ("model_name", "serial_number")
        if isinstance(data.get(name), str)
    ]
    passed = _within(data, "smart_status").get("passed")
    exit_status = _within(data, "smartctl").get("exit_status")
    told.append(Named(name="own_summary", value=_summary_word(passed)))
    told.append(Named(name="smartctl_exit", value=str(exit_status)))
    return tuple(told)
