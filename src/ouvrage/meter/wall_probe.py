"""The child that asks a meter at the wall: a reading a second, or fewer where the meter is slow.

A plug on a network may answer late, never, or with nonsense, so it is asked here and not in the
meter. Each answer becomes a line with the moment at which it came. What fails is told once by its
words and tried again; it ends when its input is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.wall_meter import PlugMeter, WallFault, WallMeter

PERIOD_US = 1_000_000


def serve(ask: Callable[[], dict[str, Any]], requests: int, output: int) -> None:
    """Ask once a period until nobody holds the other end any more."""
    poller = select.poll()
    poller.register(requests, select.POLLIN)
    due = monotonic_us()
    while True:
        wait_us = max(0, due - monotonic_us())
        if poller.poll((wait_us + 999) // 1000) and not os.read(requests, 64):
            return
        now = monotonic_us()
        due = max(due + PERIOD_US, now)
        _say(output, ask())


def _asked(meter: WallMeter) -> dict[str, Any]:
    try:
        reading = meter.read()
    except WallFault as error:
        text = f"the meter at the wall did not tell: {str(error)[:200]}"
        return {"k": "fault", "code": "no-answer", "text": text}
    values = [reading.power_mw, reading.energy_uj]
    return {"k": "read", "t": monotonic_us(), "v": values}


def _say(output: int, line: dict[str, Any]) -> None:
    data = (json.dumps(line, separators=(",", ":")) + "\n").encode("ascii")
    while data:
        data = data[os.write(output, data) :]


def main(arguments: Sequence[str]) -> int:
    """Ask the plug behind the one URL given."""
    with contextlib.suppress(BrokenPipeError):
        meter = PlugMeter(arguments[0])
        serve(lambda: _asked(meter), sys.stdin.fileno(), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
