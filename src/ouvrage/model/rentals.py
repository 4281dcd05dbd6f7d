"""A rental: a machine is paid for, from a moment to a moment, whether or not it works.

Runs say what was done with it; a rental says what had to be paid around them: boot, download,
forgotten hours. Moments are UTC, as whoever rented the machine states them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ouvrage.base.price import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalStarted:
    """A machine is paid for from ``started_us`` on, at ``price``.

    ``machine`` is the source whose runs stand on it; None where only runs named one by one do.
    """

    KIND: ClassVar[str] = "rental.started"
    VERSION: ClassVar[int] = 1

    rental: str
    label: str | None
    price: Price
    started_us: int
    machine: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalEnded:
    """The machine was given back at ``ended_us``: nothing is paid for it from then on."""

    KIND: ClassVar[str] = "rental.ended"
    VERSION: ClassVar[int] = 1

    rental: str
    ended_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalRun:
    """A run that was metered elsewhere, or before the rental was stated, stood on the machine."""

    KIND: ClassVar[str] = "rental.run"
    VERSION: ClassVar[int] = 1

    rental: str
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalCampaign:
    """All that is paid for the machine is paid for the campaign."""

    KIND: ClassVar[str] = "rental.campaign"
    VERSION: ClassVar[int] = 1

    rental: str
    campaign: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalAlarm:
    """Somebody was told that money runs and no work does.

    ``alarm`` identifies what was told, so that a listener who hears it twice knows; ``sort`` is
    ``idle``, ``ended`` or ``hang``; ``since_us`` is when nothing more came.
    """

    KIND: ClassVar[str] = "rental.alarm"
    VERSION: ClassVar[int] = 1

    rental: str
    alarm: str
    sort: str
    since_us: int
    words: str
