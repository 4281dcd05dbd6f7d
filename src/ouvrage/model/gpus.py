"""What the facts about a run's GPUs and energy meters say.

Each class is the payload of one kind of fact, version 1. Times are microseconds since the run's
start. Every amount stands beside the time that it covers, since a sum over gaps is no total; None
means that nobody told, which is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

POWER_METHODS = ("average", "instant", "usage")
METER_KINDS = ("rapl", "wall")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDevice:
    """A GPU that the run could see. ``gpu`` is its number in the run, ``index`` the driver's.

    ``chosen`` is false where ``CUDA_VISIBLE_DEVICES`` kept it from the command. In MIG mode its
    load is not told and its power is the whole card's. ``mig`` and ``ecc`` are 1 where on.
    """

    KIND: ClassVar[str] = "run.device"
    VERSION: ClassVar[int] = 1

    run: str
    gpu: int
    chosen: bool
    index: int | None
    uuid: str | None
    name: str | None
    serial: str | None
    pci: str | None
    driver: str | None
    memory_bytes: int | None
    power_limit_mw: int | None
    power_limit_default_mw: int | None
    clock_sm_max_mhz: int | None
    pcie_generation_max: int | None
    pcie_width_max: int | None
    mig: int | None
    ecc: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonTime:
    """How long the clocks were held by one reason, such as ``power_cap``."""

    name: str
    us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGpuWindow:
    """What one GPU did from ``from_us`` to ``to_us``; ``covered_us`` of it readings came when due.

    ``busy_us`` is load x time (a GPU is busy while any kernel runs); from ``used_from_us`` to
    ``used_to_us`` it was seen working, not at all where they are None. ``fault_us`` is the time in
    which clocks were held down by a fault (heat, a power brake), ``slowed_us`` the part of the busy
    time lost to it, by the ratio of the clock to its greatest. ``power_uj`` integrates power readings of the sort ``power_method`` (the
    library's own average, an instant, or its older figure); ``counter_uj`` is what the card's
    energy counter rose by, ``counter_resets`` how often it stepped back. ``reasons`` add up to more
    than the time where several held at once. ECC errors are those new in the window.
    """

    KIND: ClassVar[str] = "run.gpu_window"
    VERSION: ClassVar[int] = 1

    run: str
    gpu: int
    index: int
    from_us: int
    to_us: int
    covered_us: int
    samples: int
    busy_us: int | None
    busy_covered_us: int
    busy_max_percent: int | None
    used_from_us: int | None
    used_to_us: int | None
    fault_us: int | None
    slowed_us: int | None
    memory_used_min_bytes: int | None
    memory_used_max_bytes: int | None
    power_method: str | None
    power_uj: int | None
    power_covered_us: int
    power_max_mw: int | None
    counter_uj: int | None
    counter_covered_us: int
    counter_resets: int
    temperature_max_c: int | None
    memory_temperature_max_c: int | None
    clock_sm_min_mhz: int | None
    clock_sm_max_mhz: int | None
    reasons: tuple[ReasonTime, ...]
    reasons_covered_us: int
    pcie_tx_bytes: int | None
    pcie_rx_bytes: int | None
    pcie_covered_us: int
    pcie_generation_min: int | None
    pcie_width_min: int | None
    ecc_corrected: int | None
    ecc_uncorrected: int | None
    power_limit_mw: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergyMeter:
    """A meter of the host's energy: ``rapl`` (the processor's own) or ``wall`` (at the plug).

    ``covers`` says in words what its figure includes.
    """

    KIND: ClassVar[str] = "run.energy_meter"
    VERSION: ClassVar[int] = 1

    run: str
    meter: int
    kind: str
    name: str
    covers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergyWindow:
    """What one meter counted from ``from_us`` to ``to_us``, over the covered part of it.

    ``method`` is ``counter`` or ``power`` (integrated from readings).
    """

    KIND: ClassVar[str] = "run.energy_window"
    VERSION: ClassVar[int] = 1

    run: str
    meter: int
    index: int
    from_us: int
    to_us: int
    energy_uj: int | None
    covered_us: int
    method: str
    resets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunElectricity:
    """What the user says a kilowatt-hour costs; ``amount`` is decimal text."""

    KIND: ClassVar[str] = "run.electricity"
    VERSION: ClassVar[int] = 1

    run: str
    amount: str
    currency: str
