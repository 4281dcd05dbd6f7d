"""What a library for GPUs must offer the meter, and which of its numbers can be believed.

The port that ``nvml`` (the real library) and ``nvml_twin`` (in memory) both fill, held by the same
contract tests. Every field of a reading is optional: None is a number that the card, the driver or
the moment did not give. A library also answers with numbers that mean "I do not know": blanks such
as 9223372036854775794, all bits set, a load of 300 percent. ``believable`` turns these into None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

FIELDS: dict[str, int] = {
    "busy_percent": 100,
    "memory_busy_percent": 100,
    "memory_used_bytes": 1 << 44,
    "power_average_mw": 20_000_000,
    "power_instant_mw": 20_000_000,
    "power_usage_mw": 20_000_000,
    "energy_mj": 1 << 60,
    "temperature_c": 250,
    "clock_sm_mhz": 10_000,
    "clock_reasons": (1 << 32) - 2,
    "pcie_tx_bytes": 1 << 62,
    "pcie_rx_bytes": 1 << 62,
    "pcie_tx_kb_s": 1 << 30,
    "pcie_rx_kb_s": 1 << 30,
    "memory_temperature_c": 250,
    "clock_memory_mhz": 50_000,
    "pcie_generation": 16,
    "pcie_width": 64,
    "ecc_corrected": 1 << 60,
    "ecc_uncorrected": 1 << 60,
    "power_limit_mw": 20_000_000,
}
"""The fields of a reading, in order, and the greatest value that each can honestly have.

``power_average_mw`` and ``power_instant_mw`` are what the library calls so; ``power_usage_mw`` is
its older figure, an average over a second on most cards since Ampere and an instant on the others.
``busy_percent`` is the share of the last fraction of a second in which any kernel ran.
"""

NAMES = tuple(FIELDS)
OFTEN = NAMES.index("memory_temperature_c")
"""From this place on fields change rarely: they are read at some ticks only, and kept."""
PLACE = {name: place for place, name in enumerate(NAMES)}
BLANKS = frozenset((0xFFFFFFFF, 0x7FFFFFF0, 0x7FFFFFF1, 0x7FFFFFF2, 0x7FFFFFF3))
_GREATEST = tuple(FIELDS.values())
_LONG_BLANK = 0x7FFFFFFFFFFFFFF0

MOST_PID = 4_194_304
"""The greatest number of a process (kernel.pid_max on 64 bits)."""

Reading = list["int | None"]
Identity = dict[str, "str | int | None"]

ABOUT = (
    "index uuid name serial pci driver memory_bytes power_limit_mw power_limit_default_mw"
    " clock_sm_max_mhz pcie_generation_max pcie_width_max mig ecc"
)
"""What is said of a GPU once; ``mig`` and ``ecc`` are 1 where that mode is on."""


class Unavailable(Exception):
    """GPUs cannot be read: ``library`` where there is no library, ``driver`` where it refuses."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


class Lost(Exception):
    """This GPU does not answer any more."""


class GpuLibrary(Protocol):
    """A way to the GPUs of this machine."""

    def open(self) -> int:
        """Begin; how many GPUs there are. Raises ``Unavailable``."""
        ...

    def describe(self, index: int) -> Identity:
        """What never changes about a GPU, the names of ``ABOUT``. Raises ``Lost``."""
        ...

    def read(self, index: int, tick: int) -> Reading:
        """Its fields now. What changes rarely, or costs much, is read at some ticks only and kept,
        or is None at the others. Raises ``Lost``."""
        ...

    def errors(self) -> list[tuple[int | None, int]]:
        """Xid errors that the driver reported since it was last asked, of GPUs that were described:
        the index (None where it does not say) and the number. Never waits."""
        ...


class Rare:
    """What each card said last of what changes rarely, to complete the readings that leave it out."""

    def __init__(self) -> None:
        self._said: dict[int, Reading] = {}

    def forget(self, index: int) -> None:
        """Another card may stand there now."""
        self._said.pop(index, None)

    def shortened(self, index: int, values: Reading) -> Reading:
        """The reading without what it says again."""
        rare = values[OFTEN:]
        if self._said.get(index) == rare:
            return values[:OFTEN]
        self._said[index] = rare
        return values

    def completed(self, index: int, values: Reading) -> Reading | None:
        """The whole reading; None where it is none, or nothing whole came before it."""
        if len(values) == len(NAMES):
            self._said[index] = values[OFTEN:]
            return values
        rare = self._said.get(index)
        return None if rare is None or len(values) != OFTEN else values + rare


def believable(name: str, value: int | None) -> int | None:
    """The value, or None where it is a blank or cannot be."""
    if value is None or not 0 <= value <= FIELDS[name] or value in BLANKS:
        return None
    return value


def sound(value: int | None) -> int | None:
    """A whole number that is not one of the blanks; for what has no greatest value."""
    if value is None or value < 0 or value >= _LONG_BLANK or value in BLANKS:
        return None
    return value


def cleaned(values: Sequence[int | None]) -> Reading:
    """A reading with everything unbelievable turned into None."""
    return [
        None if value is None or not 0 <= value <= greatest or value in BLANKS else value
        for value, greatest in zip(values, _GREATEST, strict=True)
    ]
