"""A machine's power as seen from outside it: the port that BMCs (Redfish, IPMI) and smart plugs fill.

Decides what such a thing is asked and told, and in which ways it can fail to answer; nothing about when a machine may
be switched off. What a device does not know is None, or refused as ``unsupported``, and never guessed. Waiting until an
order has taken effect is ``power_order``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ouvrage.model.power import LogEntry, LogPage, PowerLimit, Reading

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
