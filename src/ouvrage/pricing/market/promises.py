"""What an offer promises of its host, as things that can be read on a machine.

Decides which fields of an offer are promises, under which names a row may state them, and how much less
still counts as delivered. What an offer does not say is no promise; none is made up from its GPU's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from ouvrage.base.numbers import decimal_text
from ouvrage.model.hosts import HostPromise
from ouvrage.model.offers import MarketOffer

AT_LEAST, AT_MOST, IS, CONTAINS = OPERATORS = (">=", "<=", "is", "contains")
NAMED = (IS, CONTAINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One thing that can be promised: its words, its unit, how it is compared, and how closely.

    ``columns`` are the names under which a row of an offer states it, beside the fields that every
    offer has.
    """

    words: str
    unit: str
    operator: str = AT_LEAST
    margin_percent: int = 0
    columns: tuple[str, ...] = ()


_SOLD = 10
"""Of memory and disks a machine shows less than is sold: GB against GiB is 7 % alone."""
_TIMED = 10
"""Two measurements of one machine differ so much."""
_CLOCK = 2
"""Clocks move in steps, and with the temperature."""
KINDS: dict[str, Kind] = {
    "cpu.allowed": Kind(words="vCPUs", unit="cores"),
    "cpu.delivered": Kind(words="cores delivered", unit="cores", margin_percent=_TIMED),
    "cpu.model": Kind(
        words="CPU model", unit="", operator=CONTAINS, columns=("cpu_model", "cpu_name")
    ),
    "cpu.thread": Kind(
        words="speed of a thread",
        unit="MB/s",
        margin_percent=_TIMED,
        columns=("cpu_thread_mb_s",),
    ),
    "memory.limit": Kind(words="memory", unit="GiB", margin_percent=_SOLD),
    "memory.copy": Kind(
        words="copying in memory", unit="GB/s", margin_percent=_TIMED, columns=("memory_copy_gb_s",)
    ),
    "disk.size": Kind(words="disk size", unit="GB", margin_percent=_SOLD),
    "disk.read": Kind(
        words="disk read",
        unit="MB/s",
        margin_percent=_TIMED,
        columns=("disk_read_mb_s", "disk_bw"),
    ),
    "disk.write": Kind(
        words="disk write", unit="MB/s", margin_percent=_TIMED, columns=("disk_write_mb_s",)
    ),
    "disk.latency": Kind(
        words="disk read latency",
        unit="us",
        operator=AT_MOST,
        margin_percent=_TIMED,
        columns=("disk_latency_us",),
    ),
    "net.down": Kind(
        words="network down",
        unit="Mbit/s",
        margin_percent=_TIMED,
        columns=("net_down_mbit_s", "inet_down"),
    ),
    "net.up": Kind(
        words="network up",
        unit="Mbit/s",
        margin_percent=_TIMED,
        columns=("net_up_mbit_s", "inet_up"),
    ),
    "gpu.count": Kind(words="GPUs", unit=""),
    "gpu.model": Kind(words="GPU", unit="", operator=IS),
    "gpu.memory": Kind(words="GPU memory", unit="GiB", margin_percent=_SOLD),
    "gpu.pcie_generation": Kind(
        words="PCIe generation", unit="", columns=("pcie_generation", "pci_gen")
    ),
    "gpu.pcie_width": Kind(words="PCIe width", unit="lanes", columns=("pcie_width", "gpu_lanes")),
    "gpu.power_limit": Kind(words="GPU power limit", unit="W", columns=("power_limit_w",)),
    "gpu.clock": Kind(
        words="GPU clock under load",
        unit="MHz",
        margin_percent=_CLOCK,
        columns=("gpu_clock_mhz",),
    ),
}
"""What can be promised, in the order in which it is told."""

COLUMNS = frozenset(name for kind in KINDS.values() for name in kind.columns)
NUMBERS = frozenset(
    name for kind in KINDS.values() if kind.operator not in NAMED for name in kind.columns
)


def promise(id: str, value: str, field: str) -> HostPromise:
    """A promise of one of ``KINDS``."""
    kind = KINDS[id]
    return HostPromise(
        id=id,
        operator=kind.operator,
        value=value,
        unit=kind.unit,
        margin_percent=kind.margin_percent,
        field=field,
    )


def promised(offer: MarketOffer) -> tuple[HostPromise, ...]:
    """Everything that an offer says of its host; what stands in its row alone is read from there."""
    gpus, gib = Fraction(offer.gpus), Fraction(1, 1024)
    memory = None if offer.memory_mib is None else offer.memory_mib * gib
    of_gpu = None if offer.gpu_memory_mib is None else offer.gpu_memory_mib * gib
    found = [
        *_stated("cpu.allowed", offer.vcpus, "vcpus"),
        *_stated("cpu.delivered", offer.vcpus, "vcpus"),
        *_stated("memory.limit", memory, "memory_gib"),
        *_stated("disk.size", offer.disk_gb, "disk_gb"),
        *([promise("gpu.model", offer.gpu, "gpu")] if offer.gpu and gpus else []),
        # A share of a GPU shows as one GPU whose memory nobody states.
        *_stated("gpu.count", max(gpus, Fraction(1)) if gpus else None, "gpus"),
        *_stated("gpu.memory", of_gpu if gpus >= 1 else None, "gpu_memory_gib"),
        *_in_row(offer.raw),
    ]
    return in_order(found)


def in_order(promises: list[HostPromise]) -> tuple[HostPromise, ...]:
    """One promise of each kind, the first that was made, in the order of ``KINDS``."""
    first: dict[str, HostPromise] = {}
    for each in promises:
        first.setdefault(each.id, each)
    return tuple(first[id] for id in KINDS if id in first)


def _stated(id: str, value: Fraction | str | None, field: str) -> list[HostPromise]:
    """A promise where a number above nought is stated."""
    number = _number(value)
    return [promise(id, decimal_text(number), field)] if number else []


def _number(value: Any) -> Fraction | None:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return Fraction(number) if number.is_finite() and 0 < number < 10**12 else None


def _in_row(raw: str) -> list[HostPromise]:
    try:
        cells = json.loads(raw)
    except ValueError:
        return []
    if not isinstance(cells, Mapping):
        return []
    found: list[HostPromise] = []
    for id, kind in KINDS.items():
        for name in kind.columns:
            value = cells.get(name)
            if kind.operator not in NAMED:
                found += _stated(id, value, name)
            elif isinstance(value, str) and value.strip():
                found.append(promise(id, " ".join(value.split())[:200], name))
    return found
