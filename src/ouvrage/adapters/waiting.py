"""Waits for what the kernel does in its own time, and tells nobody when it is done.

Decides how often it looks: often enough that nobody notices, seldom enough that it costs nothing.
"""

from __future__ import annotations

import select
from collections.abc import Callable

from ouvrage.adapters.clock import monotonic_us

_POLL_S = 0.002


def until(condition: Callable[[], bool], patience_us: int) -> bool:
    """Look again until it holds or the time is over; whether it held."""
    last = monotonic_us() + patience_us
    while True:
        if condition():
            return True
        if monotonic_us() > last:
            return False
        select.select([], [], [], _POLL_S)
