"""The in-memory twin of a machine's power: does what it is told after as many looks as it was made with, and fails on cue.

Decides nothing. It stands in for a BMC where a test is about what is done with one; ``faults`` are handed out one a call,
oldest first, so that a slow, a busy and a deaf BMC can be had at will.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from ouvrage.adapters.power_port import PowerFault, page_after
from ouvrage.model.power import OFF, ON, LogEntry, LogPage, PowerLimit, Reading


class PowerTwin:
    """A machine that is switched in memory. ``looks`` is how often it is asked before a change shows."""

    kind = "twin"

    def __init__(
        self,
        *,
        state: str = ON,
        looks: int = 0,
        deaf: bool = False,
        readings: Sequence[Reading] = (),
        log: Sequence[LogEntry] = (),
        restore: str | None = "last",
        limit: PowerLimit | None = None,
        draws_w: int | None = 320,
    ) -> None:
        self.now = state
        self.looks = looks
        self.deaf = deaf
        self.readings = list(readings)
        self.log = list(log)
        self.restore = restore
        self.limit = limit
        self.draws_w = draws_w
        self.faults: list[PowerFault | None] = []
        self.orders: list[str] = []
        self._coming: tuple[str, int] | None = None

    def _asked(self) -> None:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault

    def state(self) -> str:
        """The state, once it was looked at often enough after an order."""
        self._asked()
        if self._coming is not None:
            wanted, left = self._coming
            self._coming = None if left <= 0 else (wanted, left - 1)
            self.now = wanted if left <= 0 else self.now
        return self.now

    def _order(self, wanted: str, words: str) -> None:
        self._asked()
        self.orders.append(words)
        if not self.deaf:
            self._coming = (wanted, self.looks)

    def turn_on(self) -> None:
        """Order it on."""
        self._order(ON, "on")

    def turn_off(self, *, hard: bool = True) -> None:
        """Order it off."""
        self._order(OFF, "off" if hard else "shut down")

    def sensors(self) -> list[Reading]:
        """The readings it was made with."""
        self._asked()
        return list(self.readings)

    def events(self, after: str | None = None) -> LogPage:
        """Its log."""
        self._asked()
        return page_after(self.log, after, min(100, len(self.log)))

    def power_w(self) -> Reading | None:
        """Nothing while it is off."""
        self._asked()
        if self.draws_w is None:
            return None
        watts = Decimal(self.draws_w if self.now == ON else 0)
        return Reading(name="power", value=watts, unit="W", verdict="OK")

    def restore_policy(self) -> str | None:
        """What it was made with."""
        self._asked()
        return self.restore

    def power_limit(self) -> PowerLimit:
        """The limit, where it was made with one."""
        self._asked()
        if self.limit is None:
            raise PowerFault("unsupported", "this machine's power has no limit")
        return self.limit

    def set_power_limit(self, watts: int | None) -> None:
        """Set it; a deaf one takes the order and changes nothing."""
        limit = self.power_limit()
        least, most = limit.least, limit.most
        if watts is not None and not (least or 0) <= watts <= (most or watts):
            raise PowerFault("failed", f"{watts} W is outside {least} to {most} W")
        self.orders.append(f"limit {watts}")
        if not self.deaf:
            self.limit = replace(limit, watts=watts)
