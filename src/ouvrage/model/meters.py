"""What a meter of energy read: a plug, a PDU, a BMC, a GPU's own counter.

A meter is a thing of its own that hangs before something. Energy is integer joules for the fact's
period, with the share of the period that it covers; a gap is never filled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

METER_SCOPES = ("wall", "pdu", "psu", "bmc", "gpu", "cooling", "solar")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRead:
    """``meter`` before ``about`` counted ``energy_j`` in the fact's period.

    ``scope`` is one of ``METER_SCOPES``. ``method`` is ``counter`` (difference of two readings),
    ``integral`` (of sampled power) or ``stated``; ``covered_us`` is the part of the period that stands
    on readings.
    """

    KIND: ClassVar[str] = "meter.energy"
    VERSION: ClassVar[int] = 1

    meter: str
    about: str
    scope: str
    energy_j: int
    method: str
    covered_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterReading:
    """``meter`` before ``about`` stood at ``counter_j`` joules at the fact's moment.

    ``since`` is when it began to count, in its own words, None where it does not say: two readings are
    of one count only where that is the same. What was used between two readings is an ``EnergyRead``.
    """

    KIND: ClassVar[str] = "meter.reading"
    VERSION: ClassVar[int] = 1

    meter: str
    about: str
    scope: str
    counter_j: int
    since: str | None
