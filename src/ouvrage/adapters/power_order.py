"""An order carried out: the state read before, the order given, the state read again until it is what was asked for.

Decides what counts as done (the machine itself says so, within a time), and that a power cycle is off, then on, each seen:
a machine that was restarted without losing power may keep a GPU that fell off the bus. That a system runs again afterwards
is proved by its new boot id, which nobody outside can read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.power_turn import asked
from ouvrage.model.power import DONE, FAILED, NOTHING_TO_DO, OFF, ON, UNKNOWN_STATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds: for a change of state at most, between two looks, without power in a cycle; ``soft`` shutdowns at most."""

    change_s: float = 60
    look_s: float = 5
    off_s: float = 10
    soft_s: float = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What became of an order. ``seen`` are the states in the order they were seen, ``why`` says what went wrong."""

    order: str
    outcome: str
    before: str
    after: str
    seen: tuple[str, ...]
    took_us: int
    why: str = ""


class Switch:
    """Carries out orders on one machine; ``pause`` and ``clock`` are the time it waits by."""

    def __init__(
        self,
        port: PowerPort,
        pace: Pace,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], int] = monotonic_us,
    ) -> None:
        self._port = port
        self._pace = pace
        self._pause = pause
        self._clock = clock
        self._seen: list[str] = []

    @property
    def seen(self) -> tuple[str, ...]:
        """The states so far, in the order they were seen; what is left of an order that was broken off."""
        return tuple(self._seen)

    def carry_out(self, order: str, *, hard: bool) -> Carried:
        """Do it and see it done. Raises ``PowerFault`` only where the state before could not be read.

        Nothing is ordered where the machine is as it should be already; a cycle of one that is off only turns it on.
        """
        began = self._clock()
        before = self._look()
        self._seen = [before]
        steps = {"on": (ON,), "off": (OFF,), "cycle": (OFF, ON)}[order]
        if order != "cycle" and before == steps[0]:
            return self._end(order, NOTHING_TO_DO, began, f"it is {before} already")
        if order == "cycle" and before == OFF:
            steps = (ON,)
        why = ""
        for place, step in enumerate(steps):
            if place:
                self._pause(self._pace.off_s)
            why = self._step(step, hard)
            if why:
                break
        return self._end(order, FAILED if why else DONE, began, why)

    def _step(self, wanted: str, hard: bool) -> str:
        """Order one state and wait for it; why it did not come, or nothing."""
        soft = wanted == OFF and not hard
        patience_s = self._pace.soft_s if soft else self._pace.change_s
        last = self._clock() + int(patience_s * 1_000_000)
        lost: PowerFault | None = None
        try:
            self._port.turn_on() if wanted == ON else self._port.turn_off(hard=hard)
        except PowerFault as fault:
            if fault.kind != "silent":
                return str(fault)
            lost = fault  # it may have heard: what it does now tells
        while True:
            try:
                state = self._look()
            except PowerFault as fault:
                state, lost = UNKNOWN_STATE, fault
            if state != self._seen[-1]:
                self._seen.append(state)
            if state == wanted:
                return ""
            if self._clock() >= last:
                said = f"; {lost}" if lost is not None else ""
                return f"it is {state} {patience_s:g} s after it was told to be {wanted}{said}"
            self._pause(self._pace.look_s)

    def _look(self) -> str:
        return asked(self._port.state, pause=self._pause)

    def _end(self, order: str, outcome: str, began: int, why: str) -> Carried:
        return Carried(
            order=order,
            outcome=outcome,
            before=self._seen[0],
            after=self._seen[-1],
            seen=tuple(self._seen),
            took_us=self._clock() - began,
            why=why,
        )


def set_limit(port: PowerPort, watts: int | None) -> None:
    """Set a limit of the whole machine, or none, and see that it holds. Raises ``PowerFault``."""
    port.set_power_limit(watts)
    holds = asked(port.power_limit).watts
    if holds != watts:
        told = "no limit" if holds is None else f"{holds} W"
        wanted = "none" if watts is None else f"{watts} W"
        raise PowerFault("failed", f"it reads {told} after it was told {wanted}")
