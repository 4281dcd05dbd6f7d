"""The GPUs of this machine as parts: serial numbers, VBIOS, memory, and what is set on them.

Decides which calls tell what a card is. As everywhere the library is asked in a process of its own under a deadline, since
any call may hang or end it; no answer leaves the parts as the bus lists them.
"""

from __future__ import annotations

import sys
from typing import Any

from ouvrage.adapters.machine_parts import pci_address
from ouvrage.adapters.nvml import begun, described
from ouvrage.adapters.nvml_child import Row, answered, asked
from ouvrage.health.smbios import told
from ouvrage.model.health import Part
from ouvrage.model.work import Named

DEADLINE_S = 10
_SET = ("ecc", "mig", "power_limit_default_mw")
_MIB = 1 << 20


def _rows() -> list[Row]:
    """Every GPU in the library's order. Raises ``Unavailable``."""
    nvml = begun()
    found: list[Row] = []
    for index in range(int(nvml.nvmlDeviceGetCount())):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError:
            continue
        about: Row = dict(described(nvml, index, handle))
        found.append({**about, "vbios": _vbios(nvml, handle)})
    return found


def _vbios(nvml: Any, handle: Any) -> str | None:
    try:
        text = nvml.nvmlDeviceGetVbiosVersion(handle)
    except (nvml.NVMLError, AttributeError):
        return None
    return text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)


def gpu_parts() -> tuple[list[Part], list[Named]]:
    """The GPUs in the library's order, and what is set on each. Raises ``NotTold``."""
    cards = asked(__name__, DEADLINE_S)
    return [part_of(row) for row in cards], [each for row in cards for each in _settings(row)]


def _slot(row: Row) -> str:
    return pci_address(str(row["pci"])) if row.get("pci") else f"gpu {row.get('index')}"


def part_of(row: Row) -> Part:
    """A GPU as the library tells it; what a row does not hold is not told."""
    memory = row.get("memory_bytes")
    return Part(
        kind="gpu",
        slot=_slot(row),
        maker="NVIDIA",
        model=told(_word(row, "name")),
        serial=told(_word(row, "serial")) or _word(row, "uuid"),
        version=told(_word(row, "vbios")),
        size=f"{memory // _MIB} MiB" if isinstance(memory, int) else None,
    )


def _word(row: Row, name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) else None


def _settings(row: Row) -> list[Named]:
    return [
        Named(name=f"gpu {_slot(row)} {name}", value=str(row[name]))
        for name in _SET
        if row.get(name) is not None
    ]


if __name__ == "__main__":
    sys.exit(answered(_rows))
