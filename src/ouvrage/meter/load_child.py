"""A child that keeps one part of the machine busy: ``python -m ouvrage.meter.load_child KIND SETTINGS``.

It says once a second how much was done and how much of it was wrong, and ends when its time is up or whoever started it is
gone. It decides nothing about either: a part that ends early, or says nothing, is judged by its parent.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ouvrage.adapters.clock import monotonic_us, own_cpu_us
from ouvrage.adapters.load_work import keep_core_busy, keep_disk_busy, keep_memory_busy
from ouvrage.adapters.parent_death import end_with_the_parent

TOLD_US = 1_000_000
MOST_TOLD = 1000
"""Lines that a child says at most, however long it works."""


class Account:
    """What was done and wrong, told once in a while; a step says whether there is time left."""

    def __init__(self, until_us: int, told_us: int, output: int) -> None:
        self._until = until_us
        self._every = told_us
        self._output = output
        self._due = monotonic_us() + told_us
        self._done = self._wrong = 0
        self._cpu = own_cpu_us()

    def step(self, done: int, wrong: int) -> bool:
        """Count; False when the time is up, and then all is told."""
        self._done += done
        self._wrong += wrong
        now = monotonic_us()
        over = now >= self._until
        if over or now >= self._due:
            self._due = now + self._every
            cpu = own_cpu_us()
            told = {"done": self._done, "wrong": self._wrong, "over": over}
            line = {"t": now, "cpu": cpu - self._cpu, **told}
            self._cpu = cpu
            os.write(self._output, json.dumps(line).encode() + b"\n")
            self._done = self._wrong = 0
        return not over


def _every(seconds: float) -> int:
    """A second, less in a load of a few seconds and more in one of hours."""
    whole = round(seconds * 1_000_000)
    return max(whole // MOST_TOLD, min(TOLD_US, whole // 10))


def main(arguments: Sequence[str]) -> int:
    """Keep busy what is named, with the settings given as JSON."""
    end_with_the_parent()
    os.nice(1)  # whoever watches the load must get a turn
    kind, settings = arguments
    given: dict[str, Any] = json.loads(settings)
    if kind == "cpu" and given["cpu"] is not None:
        os.sched_setaffinity(0, {given["cpu"]})
    until = monotonic_us() + round(given["seconds"] * 1_000_000)
    step = Account(until, _every(given["seconds"]), sys.stdout.fileno()).step
    work: dict[str, Callable[[], None]] = {
        "cpu": lambda: keep_core_busy(step),
        "memory": lambda: keep_memory_busy(given["size"], step),
        "disk": lambda: keep_disk_busy(given["directory"], given["size"], step),
    }
    work[kind]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
