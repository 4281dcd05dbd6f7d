"""Faults of the kernel's log as facts: each stated once, when it is over and its count is final.

Decides when that is: no line of it has come for some minutes, or it has gone on for an hour and what follows is counted as
another. What a fault asks for is in a verdict at once and waits for nothing. A fault is known by its boot, part, code and
first moment, so that a log that is read again makes the same fact. What was stated and is a day old is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

from ouvrage.agent.probing.asking import Answer
from ouvrage.agent.probing.memory import Memory
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, HOUR
from ouvrage.health.driver_lines import Merged, event_of
from ouvrage.health.host_lines import HostFault, host_event
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import HealthEvent

_MOST = 1_000
"""Faults that are remembered at most: all of them are written down each time, and judged at each look."""

Fault = Merged | HostFault


class Events:
    """What was stated of the faults in one memory."""

    def __init__(self, node: str, memory: Memory, merge_us: int) -> None:
        self._node = node
        self._memory = memory
        self._merge_us = merge_us

    def over(self, answer: Answer) -> list[Stated]:
        """The faults that are over by an answer of the kernel's log and were not stated yet."""
        now, boot_us = answer.monotonic_us, answer.at_us - answer.monotonic_us
        made: list[Stated] = []
        for name, fault in self._each():
            if name not in self._memory.stated and self._is_over(fault, now):
                made.append(self._said(name, self._event(fault), boot_us))
                self._memory.stated.add(name)
        self._forget(now)
        return made

    def _is_over(self, fault: Fault, now: int) -> bool:
        last, first = fault.last_us or 0, fault.first_us or 0
        return now - last > self._merge_us or now - first > HOUR

    def _each(self) -> Iterator[tuple[str, Fault]]:
        boot = self._memory.boot
        for fault in self._memory.faults:
            first = fault.first
            wish = "" if first.recovery is None else f"/{first.recovery}"
            link = "" if first.nvlink is None else f"/{first.nvlink.unit}{first.nvlink.link}"
            told = f"{fault.kind}/{fault.device or ''}/{fault.code}{wish}{link}"
            yield f"event/{boot}/{told}/{fault.first_us or 0}", fault
        for each in self._memory.host_faults:
            yield f"event/{boot}/host/{each.device or ''}/{each.code}/{each.first_us}", each

    def _event(self, fault: Fault) -> HealthEvent:
        if isinstance(fault, HostFault):
            return host_event(fault, self._node, self._memory.boot)
        return event_of(fault, self._node, self._memory.boot)

    def _said(self, name: str, event: HealthEvent, boot_us: int) -> Stated:
        return Stated(
            natural=name,
            value=event,
            subject=f"node:{self._node}",
            valid_from=boot_us + event.first_monotonic_us,
            valid_to=boot_us + event.last_monotonic_us,
            grade=Grade.MEASURED,
        )

    def _forget(self, now: int) -> None:
        """Let go of faults a day old, and of the oldest where there are very many."""
        memory = self._memory
        if not (memory.stated or len(memory.faults) > _MOST or len(memory.host_faults) > _MOST):
            return
        memory.faults = [
            each for each in memory.faults[-_MOST:] if now - (each.last_us or now) < DAY
        ]
        memory.host_faults = [
            each for each in memory.host_faults[-_MOST:] if now - each.last_us < DAY
        ]
        memory.stated &= {name for name, _ in self._each()}
