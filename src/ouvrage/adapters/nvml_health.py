"""What NVIDIA's library says of its GPUs' health, read once, in a process of its own.

Decides which calls give the values that ``health/gpus`` judges; one that a card or driver does not know leaves its value
out, a blank is None. Any call may block for ever or end the process, so this module is started as a child
(``python -m ouvrage.adapters.nvml_health``) under a deadline: ``gpu_looks`` does that, and its silence is a finding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ouvrage.adapters.gpu_port import MOST_PID, Unavailable, sound
from ouvrage.adapters.nvml import begun, described
from ouvrage.adapters.nvml_child import Row as Values
from ouvrage.adapters.nvml_child import answered, asked

if TYPE_CHECKING:
    from ouvrage.model.health import Seen

DEADLINE_S = 10
_LINKS = 18
"""The most NVLinks that a GPU has (NVML_NVLINK_MAX_LINKS)."""

_FIELDS = {
    "recovery_action": "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",
    "retired_pending": "NVML_FI_DEV_RETIRED_PENDING",
    "memory_temperature_c": "NVML_FI_DEV_MEMORY_TEMP",
}
_WHOLE = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""Where a field's number stands, by its type (``nvmlValueType_t``)."""
_REMAPS = ("remap_correctable", "remap_uncorrectable", "remap_pending", "remap_failure")
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_REASONS = {
    "slow_sw_power_cap": 0x4,
    "slow_hw": 0x8,
    "slow_sw_thermal": 0x20,
    "slow_hw_thermal": 0x40,
    "slow_hw_power_brake": 0x80,
}
"""Bits of ``nvmlDeviceGetCurrentClocksEventReasons`` (nvml.h)."""


def looks(nvml: Any = None) -> list[Values]:
    """Every GPU's values now; one that is lost has ``lost`` alone. Raises ``Unavailable``.

    ``nvml`` is a binding that was initialised before, for a process that looks again and again.
    """
    nvml = nvml or begun()
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        raise Unavailable("driver", str(error)) from error
    return [_look(nvml, index) for index in range(count)]


def _look(nvml: Any, index: int) -> Values:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        about = described(nvml, index, handle)
        values: Values = {name: about[name] for name in ("uuid", "name", "serial", "pci", "mig")}
        values["index"] = index
        values["pcie_width_max"] = about["pcie_width_max"]
        for name, ask in _CALLS.items():
            _tell(nvml, values, name, lambda ask=ask: ask(nvml, handle))
        values |= _fields(nvml, handle)
        _tell(nvml, values, "reasons", lambda: _reasons(nvml, handle))
        values |= _remaps(nvml, handle)
        values |= _links(nvml, handle)
        values |= _holders(nvml, handle)
    except nvml.NVMLError_GpuIsLost:
        return {"index": index, "lost": 1}
    except nvml.NVMLError as error:
        return {"index": index, "fault": str(error)}
    reasons = values.pop("reasons", None)
    if isinstance(reasons, int):
        values |= {name: int(bool(reasons & bit)) for name, bit in _REASONS.items()}
    return values


def _tell(nvml: Any, values: Values, name: str, ask: Callable[[], Any]) -> None:
    """Put a value among the others; what is not supported stays out, a lost GPU is passed on."""
    try:
        found = int(ask())
        # A margin may be below nothing; every other value is a count or a blank.
        values[name] = found if -1000 < found < 0 and name.endswith("margin_c") else sound(found)
    except nvml.NVMLError_GpuIsLost:
        raise
    except (nvml.NVMLError, AttributeError, TypeError, ValueError):
        return


def _fields(nvml: Any, handle: Any) -> Values:
    """Values that are fields of the library; those that it or the card does not know are left out."""
    known = {name: getattr(nvml, id) for name, id in _FIELDS.items() if hasattr(nvml, id)}
    try:
        told: Any = nvml.nvmlDeviceGetFieldValues(handle, list(known.values()))
    except nvml.NVMLError_GpuIsLost:
        raise
    except (nvml.NVMLError, AttributeError):
        return {}
    read = zip(known, told, strict=True)
    return {name: sound(_whole(field)) for name, field in read if not field.nvmlReturn}


def _whole(field: Any) -> int | None:
    """The number in a field, by the type that the library says it has; None for a fraction."""
    place = _WHOLE.get(field.valueType)
    return None if place is None else int(getattr(field.value, place))


def _remaps(nvml: Any, handle: Any) -> Values:
    """Rows of memory; not told with MIG on, and on GPUs before GA100."""
    try:
        told = nvml.nvmlDeviceGetRemappedRows(handle)
    except nvml.NVMLError_GpuIsLost:
        raise
    except (nvml.NVMLError, AttributeError):
        return {}
    return {name: sound(int(value)) for name, value in zip(_REMAPS, told, strict=True)}


def _links(nvml: Any, handle: Any) -> Values:
    """How many NVLinks are up; nothing for a card without any."""
    up = None
    for link in range(_LINKS):
        try:
            up = (up or 0) + int(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except nvml.NVMLError_GpuIsLost:
            raise
        except (nvml.NVMLError, AttributeError):
            break
    return {} if up is None else {"nvlinks_up": up}


def _holders(nvml: Any, handle: Any) -> Values:
    """Its memory in use, and how many processes hold it: those that are none are counted apart, and never touched."""
    try:
        held: Any = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        held = [*held, *nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)]
        used = sound(int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used))
    except nvml.NVMLError_GpuIsLost:
        raise
    except (nvml.NVMLError, AttributeError, TypeError):
        return {}
    pids = {int(each.pid) for each in held}
    false = {pid for pid in pids if not 0 < pid <= MOST_PID}
    gone = {pid for pid in pids - false if not os.path.exists(f"/proc/{pid}")}
    return {
        "memory_used_bytes": used,
        "processes": len(pids),
        "processes_false": len(false),
        "processes_gone": len(gone),
    }


def _reasons(nvml: Any, handle: Any) -> Any:
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    return (ask or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle)


_CALLS: Mapping[str, Callable[[Any, Any], Any]] = {
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, 0),
    "temperature_margin_c": lambda nvml, gpu: nvml.nvmlDeviceGetMarginTemperature(gpu),
    "pcie_width": lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu),
    "pcie_replays": lambda nvml, gpu: nvml.nvmlDeviceGetPcieReplayCounter(gpu),
    "power_mw": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu),
    "ecc_volatile_corrected": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, _CORRECTED, _VOLATILE
    ),
    "ecc_volatile_uncorrected": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, _UNCORRECTED, _VOLATILE
    ),
    "ecc_aggregate_corrected": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, _CORRECTED, _AGGREGATE
    ),
    "ecc_aggregate_uncorrected": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, _UNCORRECTED, _AGGREGATE
    ),
}


def gpu_looks(at_us: int) -> list[Seen]:
    """Every GPU as the library tells it, asked in a child. Raises ``NotTold``, also where it hangs or crashes."""
    from ouvrage.health.gpus import (
        gpu_seen,  # whoever judges; the child that looks stays small without
    )

    return [gpu_seen(values, at_us) for values in asked(__name__, DEADLINE_S)]


if __name__ == "__main__":
    sys.exit(answered(looks))
