"""A GPU's own counters and flags as findings, without the kernel's log.

Decides which number is a fault and which is history: a count since the driver was loaded can be one, the board's
whole life is only reported; the driver's recovery action is believed first; a software power cap is work as usual. What
was not told is not taken as well: a GPU of which none of the telling values could be read is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ouvrage.health.findings import Belief, Finding, asked, result_of, unknown
from ouvrage.health.gpu_around import around_findings
from ouvrage.health.tables import Thresholds
from ouvrage.health.xid import Rules
from ouvrage.model.health import CRITICAL, OK, WARN, CheckResult, Seen
from ouvrage.model.work import Named

Values = Mapping[str, "int | str | None"]

TELLING = ("recovery_action", "remap_failure", "ecc_volatile_uncorrected", "last_xid")
"""At least one of these must have been told for a GPU to be called well."""

_SLOW = {
    "slow_hw_power_brake": "its power supply asks it to slow down (power brake)",
    "slow_hw_thermal": "its hardware slows it down because of heat",
    "slow_hw": "its hardware slows it down",
    "slow_sw_thermal": "the driver slows it down because of heat",
}
_SHOWN = (
    "index", "pci", "serial", "recovery_action", "ecc_volatile_uncorrected",
    "ecc_aggregate_uncorrected", "remap_pending", "remap_failure", "remap_uncorrectable",
    "temperature_c", "temperature_margin_c", "pcie_width", "pcie_width_max", "last_xid",
    "nvlinks_most",
)  # fmt: skip


def gpu_seen(values: Values, at_us: int) -> Seen:
    """One GPU's values as what was seen of it, under the best name that it told; ``fault`` among them: why it is silent."""
    name = values.get("uuid") or values.get("pci") or f"gpu {values.get('index')}"
    fault = values.get("fault")
    return Seen(
        probe="gpu", device=str(name), at_us=at_us, boot="", monotonic_us=0,
        values={key: value for key, value in values.items() if key != "fault"},
        fault=None if fault is None else str(fault),
    )  # fmt: skip


def check_gpus(
    seen: Sequence[Seen], rules: Rules, expected: int | None = None, before: Sequence[Seen] = ()
) -> list[CheckResult]:
    """Each GPU's result, and one more where fewer answered than are expected.

    ``before`` is an earlier look at the same GPUs in the same boot, to see which counts grew.
    """
    earlier = {each.device: each.values for each in before}
    results = [check_gpu(each, rules, earlier.get(each.device)) for each in seen]
    if expected is not None and len(seen) != expected:
        results.append(_counted(len(seen), expected))
    if not results:
        results.append(unknown("gpu", "no GPU was found in what was read", rule="gpu/none"))
    return results


def _counted(found: int, expected: int) -> CheckResult:
    if found > expected:
        return CheckResult(
            check="gpu", verdict=WARN, action="look", rule="gpu-count",
            reasons=(f"{found} GPUs answered and {expected} were expected",),
        )  # fmt: skip
    return CheckResult(
        check="gpu", verdict=CRITICAL, action="reboot", rule="gpu-missing",
        reasons=(f"{expected - found} of {expected} GPUs are missing",),
        evidence=(Named(name="gpus", value=str(found)), Named(name="expected", value=str(expected))),
    )  # fmt: skip


def check_gpu(seen: Seen, rules: Rules, before: Values | None = None) -> CheckResult:
    """One GPU's result; ``before`` are its values of an earlier look in the same boot."""
    device, values = seen.device, seen.values
    if seen.fault is not None:
        return unknown("gpu", f"the GPU could not be read: {seen.fault}", device, "gpu-silent")
    findings = gpu_findings(values, rules, device, before)
    if all(_number(values, name) is None for name in TELLING):
        told = "nothing that tells whether this GPU is well was read"
        if not any(f.verdict == CRITICAL for f in findings):
            return replace(unknown("gpu", told, device, "gpu-not-told"), evidence=_evidence(values))
    name = values.get("name")
    good = f"{name or 'the GPU'}: the driver asks for nothing, no error since it was loaded"
    return result_of("gpu", device, findings, good=good, evidence=_evidence(values))


def gpu_findings(
    values: Values, rules: Rules, device: str | None, before: Values | None = None
) -> list[Finding]:
    """Everything that speaks against a GPU."""
    return [
        *_recovery(values, rules, device),
        *_lost(values, device),
        *_remap(values, rules.bounds, device),
        *_errors(values, before, rules.bounds, device),
        *_last_xid(values, rules, device),
        *_heat(values, rules.bounds, device),
        *_slow(values, device),
        *_link(values, device),
        *around_findings(values, rules.bounds, device, before),
    ]


def _number(values: Values, name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) else None


def _evidence(values: Values) -> tuple[Named, ...]:
    return tuple(
        Named(name=name, value="not told" if values[name] is None else str(values[name])[:80])
        for name in _SHOWN
        if name in values
    )


def _finding(
    belief: Belief, verdict: str, rule: str, reason: str, device: str | None, *, action: str = "look",
    at_drain: str = "none", fence: str = "none",
) -> Finding:  # fmt: skip
    return Finding(
        belief=belief, verdict=verdict, rule=rule, reason=reason, device=device, action=action,
        at_drain=at_drain, fence=fence,
    )  # fmt: skip


def _recovery(values: Values, rules: Rules, device: str | None) -> Iterator[Finding]:
    value = _number(values, "recovery_action")
    if not value:
        return
    known = rules.xids.recoveries.get(value)
    action = rules.xids.actions["ask" if known is None else known.action]
    name = "a recovery that is not known here" if known is None else known.name
    reason = f"the driver's recovery action is {value}, {name}: {action.words}"
    yield asked(action, Belief.RECOVERY, "recovery-action", reason, device)


def _lost(values: Values, device: str | None) -> Iterator[Finding]:
    if _number(values, "lost"):
        yield _finding(
            Belief.LOST, CRITICAL, "gpu-lost", "the driver says that this GPU is lost", device,
            action="reboot", fence="now",
        )  # fmt: skip


def _remap(values: Values, bounds: Thresholds, device: str | None) -> Iterator[Finding]:
    if _number(values, "remap_failure"):
        yield _finding(
            Belief.REMAP, CRITICAL, "remap-failure", "a row of memory could not be remapped: a"
            " candidate for return to the maker", device, action="replace", fence="now",
        )  # fmt: skip
    elif (_number(values, "remap_uncorrectable") or 0) >= bounds["gpu.remapped_critical"]:
        yield _finding(
            Belief.REMAP, CRITICAL, "remap-used-up", "all spare rows of memory are used", device,
            action="replace", fence="drain",
        )  # fmt: skip
    if _number(values, "remap_pending") or _number(values, "retired_pending"):
        yield _finding(
            Belief.REMAP, WARN, "remap-pending", "a remap of memory takes effect at the next reset:"
            " reset it when the work on it has ended", device, action="none", at_drain="gpu_reset",
        )  # fmt: skip
    if (_number(values, "retired_pages") or 0) > bounds["gpu.retired_warn"]:
        words = f"{values['retired_pages']} pages of memory are retired"
        yield _finding(Belief.COUNTER, WARN, "pages-retired", words, device)


def _errors(
    values: Values, before: Values | None, bounds: Thresholds, device: str | None
) -> Iterator[Finding]:
    now = _number(values, "ecc_volatile_uncorrected")
    earlier = None if before is None else _number(before, "ecc_volatile_uncorrected")
    if now and earlier is not None and now > earlier:
        yield _finding(
            Belief.COUNTER, CRITICAL, "ecc-grew", f"uncorrected memory errors grew from {earlier} to"
            f" {now}: fence, drain, reset the GPU", device, action="gpu_reset", fence="now",
        )  # fmt: skip
    elif now:
        yield _finding(
            Belief.COUNTER, WARN, "ecc-volatile", f"{now} uncorrected memory errors since the driver"
            " was loaded: reset it when the work on it has ended", device, action="none",
            at_drain="gpu_reset",
        )  # fmt: skip
    if _number(values, "sram_threshold_exceeded"):
        yield _finding(
            Belief.REMAP, CRITICAL, "sram-threshold", "errors of on-chip memory, which cannot be"
            " remapped, passed the maker's bound", device, action="replace", fence="drain",
        )  # fmt: skip
    corrected = _number(values, "ecc_volatile_corrected") or 0
    if corrected > bounds["gpu.corrected_warn"]:
        words = f"{corrected} corrected memory errors since the driver was loaded"
        yield _finding(Belief.COUNTER, WARN, "ecc-corrected", words, device)


def _last_xid(values: Values, rules: Rules, device: str | None) -> Iterator[Finding]:
    """An exporter's gauge holds the last code for ever: it has no time, and is no more than a hint."""
    code = _number(values, "last_xid")
    if not code:
        return
    action = rules.xids.action_of(code)
    if action.verdict != OK:
        known = rules.xids.codes.get(code)
        meaning = "not in the table" if known is None else known.meaning
        reason = f"the last Xid was {code}, {meaning}; when is not told: look at the kernel's log"
        yield _finding(Belief.COUNTER, WARN, "last-xid", reason, device)


def _heat(values: Values, bounds: Thresholds, device: str | None) -> Iterator[Finding]:
    heat, margin = _number(values, "temperature_c"), _number(values, "temperature_margin_c")
    if heat is not None and heat >= bounds["gpu.temperature_warn"]:
        verdict = CRITICAL if heat >= bounds["gpu.temperature_critical"] else WARN
        fence = "drain" if verdict == CRITICAL else "none"
        yield _finding(
            Belief.THROTTLE, verdict, "gpu-hot", f"the GPU is {heat} °C hot", device, fence=fence
        )
    if margin is not None and margin <= bounds["gpu.margin_warn"]:
        words = f"{margin} K are left to the temperature at which it slows down"
        yield _finding(Belief.THROTTLE, WARN, "gpu-margin", words, device)


def _slow(values: Values, device: str | None) -> Iterator[Finding]:
    for name, words in _SLOW.items():
        if _number(values, name):
            yield _finding(Belief.THROTTLE, WARN, name.replace("_", "-"), words, device)
            return  # the first is the cause, the others follow from it


def _link(values: Values, device: str | None) -> Iterator[Finding]:
    width, most = _number(values, "pcie_width"), _number(values, "pcie_width_max")
    if width is not None and most and 0 < width < most:
        words = f"its PCIe link has {width} of {most} lanes"
        yield _finding(Belief.COUNTER, WARN, "pcie-narrow", words, device)
