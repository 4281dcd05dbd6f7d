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
