"""A machine's power: what a BMC or a plug tells of it, and that somebody switched or limited it.

Decides the words for states, for what happens when electricity comes back, and which of it is a fact: an order that was
given is one, with the state seen before and after; a sensor's reading is an input of a check and is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

ON, OFF, UNKNOWN_STATE = STATES = ("on", "off", "unknown")
STAYS_ON, STAYS_OFF, AS_BEFORE = RESTORES = ("on", "off", "last")
"""What a machine does when electricity comes back: starts, stays off, or is as it was before."""

ORDERS = ("on", "off", "cycle")
DONE, FAILED, NOTHING_TO_DO, ORDERED = ORDER_OUTCOMES = (
    "done",
    "failed",
    "nothing to do",
    "ordered",
)
"""``ordered`` is what is recorded before anything is done; where it stays, nobody saw how it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One sensor: ``value`` in ``unit`` (None: it told none), and what the device itself makes of it.

    ``verdict`` is OK, WARN, CRITICAL or UNKNOWN; a sensor that is not fitted is no reading at all.
    """

    name: str
    value: Decimal | None
    unit: str
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One entry of a device's event log. ``at_us`` by the device's own clock, None where it had none yet.

    ``verdict`` is OK, WARN or CRITICAL: how grave the device says it is.
    """

    id: str
    at_us: int | None
    verdict: str
    sensor: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """What an event log holds after a ``cursor``, oldest first, and the cursor to ask with next time.

    ``gap``: the entry that the cursor named is gone, so that some between may be missing. ``used_percent`` is how full
    the log is, where it is told: one that is full forgets, or takes nothing more.
    """

    entries: tuple[LogEntry, ...]
    cursor: str | None
    gap: bool
    used_percent: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLimit:
    """A limit in whole watts that holds (None: none does), and what it may be, where that is told."""

    watts: int | None
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOrdered:
    """``by`` had a node switched (``on``, ``off``, ``cycle``) or limited (``limit``; of one ``device``: a GPU's).

    ``via`` is what did it: ``redfish``, ``ipmi``, ``shelly``, ``tasmota``, ``nvml``. ``before`` and ``after`` are the states
    or limits that were read, as text (``on``, ``300 W``, ``none``); ``outcome`` is one of ``ORDER_OUTCOMES``; ``why``
    is what ``by`` gave as the reason, ``trouble`` what went wrong.
    """

    KIND: ClassVar[str] = "node.power"
    VERSION: ClassVar[int] = 1

    node: str
    device: str | None
    via: str
    order: str
    hard: bool
    outcome: str
    before: str
    after: str
    took_us: int
    by: str
    why: str
    trouble: str
