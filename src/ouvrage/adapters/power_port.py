"""A machine's power as seen from outside it: the port that BMCs (Redfish, IPMI) and smart plugs fill.

Decides the words for what such a thing tells and does, and in which ways it can fail to; nothing about when a machine may
be switched off. What a device does not know is None, or refused as ``unsupported``, and never guessed. Waiting until an
order has taken effect is ``power_order``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

ON, OFF, UNKNOWN_STATE = STATES = ("on", "off", "unknown")
STAYS_ON, STAYS_OFF, AS_BEFORE = RESTORES = ("on", "off", "last")
"""What a machine does when electricity comes back: starts, stays off, or is as it was before."""

FAULTS = (
    "silent",  # no answer within the deadline, or nobody there
    "busy",  # another program asks it just now, or it says itself that it cannot answer yet
    "refused",  # it does not take these credentials
    "untrusted",  # its certificate is not the one that is expected
    "unsupported",  # it cannot do this
    "garbled",  # it answered what nothing can be made of
    "failed",  # it took the order and says that it could not carry it out
)


class PowerFault(Exception):
    """It was not told or not done: ``kind`` is one of ``FAULTS``. The words never hold a password.

    ``after_s`` is how long the device itself asks to be left alone; None where it says nothing.
    """

    def __init__(self, kind: str, words: str, *, after_s: float | None = None) -> None:
        super().__init__(words)
        self.kind = kind
        self.after_s = after_s


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


class PowerPort(Protocol):
    """One machine's power. Every call may raise ``PowerFault``, and ends within the deadline it was made with."""

    @property
    def kind(self) -> str:
        """``redfish``, ``ipmi``, ``shelly``, ``tasmota``, or ``twin``."""
        ...

    def state(self) -> str:
        """One of ``STATES``."""
        ...

    def turn_on(self) -> None:
        """Order it on, without waiting until it is."""
        ...

    def turn_off(self, *, hard: bool = True) -> None:
        """Order it off: at once, or by asking its system to shut down; without waiting until it is."""
        ...

    def sensors(self) -> list[Reading]:
        """Every sensor that is fitted."""
        ...

    def events(self, after: str | None = None) -> LogPage:
        """What came into its event log after a cursor; all of it without one."""
        ...

    def power_w(self) -> Reading | None:
        """What it draws now, in watts; None where it does not measure that."""
        ...

    def restore_policy(self) -> str | None:
        """One of ``RESTORES``; None where it does not tell."""
        ...

    def power_limit(self) -> PowerLimit:
        """The limit that holds for the whole machine. ``unsupported`` where there can be none."""
        ...

    def set_power_limit(self, watts: int | None) -> None:
        """Order a limit, or none. What holds afterwards is for ``power_limit`` to say."""
        ...


def page_after(
    entries: Sequence[LogEntry], after: str | None, used_percent: int | None = None
) -> LogPage:
    """The part of a whole log, oldest first, that lies behind a cursor.

    A cursor names the last entry that was seen by id and time. A log that was cleared, or that ran over, does not hold it
    any more, and counts its ids anew: then everything that is not older than it is new.
    """
    marks = [_mark(each) for each in entries]
    cursor = marks[-1] if marks else after
    if after is None:
        return LogPage(entries=tuple(entries), cursor=cursor, gap=False, used_percent=used_percent)
    if after in marks:
        place = len(marks) - 1 - marks[::-1].index(after)
        new = entries[place + 1 :]
        return LogPage(entries=tuple(new), cursor=cursor, gap=False, used_percent=used_percent)
    since = after.rpartition("@")[2]
    least = int(since) if since.isdecimal() else None
    new = [e for e in entries if least is None or e.at_us is None or e.at_us >= least]
    return LogPage(entries=tuple(new), cursor=cursor, gap=True, used_percent=used_percent)


def _mark(entry: LogEntry) -> str:
    return f"{entry.id}@{'' if entry.at_us is None else entry.at_us}"
