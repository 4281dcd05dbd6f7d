"""A page of GPU metrics as values by our names: nvidia_gpu_exporter, and dcgm-exporter.

Decides which series means what, and which numbers are none: an exporter prints the library's blanks
(9223372036854775794) as if they were readings. A page whose own last collection failed is stale and tells nothing.
Each GPU is one ``Seen``; what it means is ``health/gpus``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from ouvrage.adapters.gpu_port import BLANKS
from ouvrage.adapters.prometheus_text import series
from ouvrage.model.health import Seen

_GREATEST = 1 << 47
"""Where the blanks begin: that of DCGM's fractions is this number, those of whole ones are far greater."""

_EXPORTER = {
    "gpu_recovery_action": "recovery_action",
    "ecc_errors_uncorrected_volatile_total": "ecc_volatile_uncorrected",
    "ecc_errors_corrected_volatile_total": "ecc_volatile_corrected",
    "ecc_errors_uncorrected_aggregate_total": "ecc_aggregate_uncorrected",
    "ecc_errors_corrected_aggregate_total": "ecc_aggregate_corrected",
    "ecc_errors_uncorrected_aggregate_sram_threshold_exceeded": "sram_threshold_exceeded",
    "remapped_rows_pending": "remap_pending",
    "remapped_rows_failure": "remap_failure",
    "remapped_rows_uncorrectable": "remap_uncorrectable",
    "remapped_rows_correctable": "remap_correctable",
    "retired_pages_pending": "retired_pending",
    "retired_pages_single_bit_ecc_count": "retired_single",
    "retired_pages_double_bit_count": "retired_double",
    "clocks_event_reasons_hw_thermal_slowdown": "slow_hw_thermal",
    "clocks_event_reasons_hw_power_brake_slowdown": "slow_hw_power_brake",
    "clocks_event_reasons_hw_slowdown": "slow_hw",
    "clocks_event_reasons_sw_thermal_slowdown": "slow_sw_thermal",
    "clocks_event_reasons_sw_power_cap": "slow_sw_power_cap",
    "temperature_gpu": "temperature_c",
    "temperature_gpu_tlimit": "temperature_margin_c",
    "temperature_memory": "memory_temperature_c",
    "pcie_link_width_current": "pcie_width",
    "pcie_link_width_max": "pcie_width_max",
    "mig_mode_current": "mig",
    "index": "index",
}
"""nvidia_gpu_exporter (e656cd8), behind ``nvidia_smi_``; older ones say ``clocks_throttle_reasons``."""

_DCGM = {
    "DCGM_FI_DEV_XID_ERRORS": "last_xid",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc_volatile_uncorrected",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "ecc_volatile_corrected",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": "ecc_aggregate_uncorrected",
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": "ecc_aggregate_corrected",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "remap_failure",
    "DCGM_FI_DEV_ROW_REMAP_PENDING": "remap_pending",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "remap_uncorrectable",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "remap_correctable",
    "DCGM_FI_DEV_RETIRED_PENDING": "retired_pending",
    "DCGM_FI_DEV_RETIRED_SBE": "retired_single",
    "DCGM_FI_DEV_RETIRED_DBE": "retired_double",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
    "DCGM_FI_DEV_MEMORY_TEMP": "memory_temperature_c",
    "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": "recovery_action",
}
"""dcgm-exporter's ``etc`` lists of counters."""

_REASONS = {
    0x8: "slow_hw",
    0x20: "slow_sw_thermal",
    0x40: "slow_hw_thermal",
    0x80: "slow_hw_power_brake",
    0x4: "slow_sw_power_cap",
}
"""Bits of NVML's clock event reasons, which dcgm-exporter prints as one number."""

_REASON_NAMES = ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS")
_ABOUT = {"pci_bus_id": "pci", "serial": "serial", "name": "name", "modelName": "name"}


class StalePage(Exception):
    """The page's exporter says that it could not read the GPUs."""


def gpus_on_page(text: str, at_us: int, boot: str) -> list[Seen]:
    """Every GPU that a page names, in its order. Raises ``StalePage``."""
    found: dict[str, dict[str, int | str | None]] = {}
    for name, labels, told in series(text):
        if name.endswith("_last_collect_success") and "_apps_" not in name and _number(told) == 0:
            raise StalePage("the exporter's last collection failed: what it shows is old")
        device = labels.get("uuid") or labels.get("UUID") or labels.get("gpu")
        if device is None:
            continue
        values = found.setdefault(device, {})
        for label, ours in _ABOUT.items():
            if label in labels:
                values.setdefault(ours, labels[label])
        for ours, value in _told(name, told):
            held = values.get(ours)
            # Instances of one GPU (MIG) repeat its series: a blank erases nothing, the greater counts.
            values[ours] = max(value, held) if value is not None and isinstance(held, int) else (
                held if value is None else value
            )  # fmt: skip
    return [
        Seen(
            probe="gpu", device=device, at_us=at_us, boot=boot, monotonic_us=0,
            values=_summed(values),
        )
        for device, values in found.items()
    ]  # fmt: skip


def _told(name: str, told: str) -> Iterable[tuple[str, int | None]]:
    value = _number(told)
    if name.startswith("nvidia_smi_"):
        plain = name[len("nvidia_smi_") :].replace(
            "clocks_throttle_reasons", "clocks_event_reasons"
        )
        if plain in _EXPORTER:
            yield _EXPORTER[plain], value
    elif name in _REASON_NAMES:
        for bit, ours in _REASONS.items():
            yield ours, None if value is None else int(bool(value & bit))
    elif name in _DCGM:
        yield _DCGM[name], value


def _number(told: str) -> int | None:
    """A whole number, rounded down; None for a blank and for what is no number."""
    try:
        value = Decimal(told)
    except InvalidOperation:
        return None
    if not value.is_finite() or not -_GREATEST < value < _GREATEST or value in BLANKS:
        return None
    return int(value)


def _summed(values: Mapping[str, int | str | None]) -> dict[str, int | str | None]:
    """Pages retired for one bit and for two are one count."""
    kept = dict(values)
    parts = [kept.pop(name) for name in ("retired_single", "retired_double") if name in kept]
    numbers = [part for part in parts if isinstance(part, int)]
    if parts:
        kept["retired_pages"] = sum(numbers) if numbers else None
    return kept
