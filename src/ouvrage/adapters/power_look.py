"""One look at a BMC or plug for a check: everything it tells, each question put again where it was busy.

Decides that what a device cannot do is no fault of the machine, and that one which does not answer ends the look. The questions
come one after another; a BMC that is asked less often lives longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.power_turn import asked
from ouvrage.health.bmc import BmcLook

Told = TypeVar("Told")


def look_at(
    port: PowerPort,
    wanted: str | None = None,
    after: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> BmcLook:
    """What it tells now; of its log what came ``after`` a cursor. Raises ``PowerFault`` where it does not answer."""

    def told(ask: Callable[[], Told]) -> Told | None:
        try:
            return asked(ask, pause=pause)
        except PowerFault as fault:
            if fault.kind in ("unsupported", "garbled"):
                return None
            raise

    state = asked(port.state, pause=pause)
    return BmcLook(
        state=state,
        sensors=told(port.sensors) or (),
        log=told(lambda: port.events(after)),
        restore=told(port.restore_policy),
        wanted=wanted,
        draws=told(port.power_w),
    )
