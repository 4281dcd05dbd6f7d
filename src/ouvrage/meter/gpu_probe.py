"""The child that reads GPUs: ``python -m ouvrage.meter.gpu_probe``, once a second, to its output.

It exists to be lost. The driver below it may block for ever, kill it or refuse; then this process
hangs, dies or ends, and the meter, which only reads a pipe, notices that no line came. It ends by
itself when its input is closed. It decides nothing about the run: it says what the cards said, each
line a JSON object, with the moment at which they had said it. What changes rarely is said again only
when it changed.

Where there is nothing to read (no library, no GPU) it says so before it ends, and is not needed again.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import sys
from collections.abc import Sequence
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.gpu_port import GpuLibrary, Identity, Lost, Rare, Reading, Unavailable
from ouvrage.adapters.parent_death import end_with_the_parent

PERIOD_US = 1_000_000
RETRY_TICKS = 30
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


class Probe:
    """Reads every GPU of a library again and again; ``write`` takes each line."""

    def __init__(self, library: GpuLibrary, output: int) -> None:
        self._library = library
        self._output = output
        self._count = 0
        self._known: dict[int, Identity] = {}
        self._lost: dict[int, int] = {}
        self._rare = Rare()
        self._tick = 0

    def open(self) -> bool:
        """Whether there are GPUs that can be read."""
        try:
            self._count = self._library.open()
        except Unavailable as error:
            if error.kind != "library":
                text = f"GPUs cannot be read: {error}"
                self._say({"k": "fault", "code": "driver", "text": text})
                return False
        if not self._count:
            self._say({"k": "nothing"})
        return bool(self._count)

    def tick(self) -> None:
        """One line of readings. What took longer than a period is too old to tell."""
        began = monotonic_us()
        values = [self._one(index) for index in range(self._count)]
        for index, xid in self._library.errors():
            self._say({"k": "xid", "t": monotonic_us(), "gpu": index, "xid": xid})
        now = monotonic_us()
        self._tick += 1
        if now - began < PERIOD_US:
            self._say({"k": "read", "t": now, "v": values})

    def _one(self, index: int) -> Reading | None:
        try:
            if index not in self._known and not self._found(index):
                return None
            return self._rare.shortened(index, self._library.read(index, self._tick))
        except Lost as error:
            if index not in self._lost:
                text = f"GPU {index} does not answer: {error}"
                self._say({"k": "fault", "code": f"lost-{index}", "text": text})
            self._known.pop(index, None)
            self._lost[index] = self._tick + RETRY_TICKS
            return None

    def _found(self, index: int) -> bool:
        """Whether a card that is new, or was lost, says who it is; a lost one is asked rarely."""
        if self._lost.get(index, 0) > self._tick:
            return False
        self._known[index] = self._library.describe(index)
        self._say({"k": "gpu", "about": self._known[index]})
        self._lost.pop(index, None)
        self._rare.forget(index)
        return True

    def _say(self, line: dict[str, Any]) -> None:
        data = (_encode(line) + "\n").encode("ascii")
        while data:
            data = data[os.write(self._output, data) :]


def serve(probe: Probe, requests: int) -> None:
    """Tick once a second, and whenever asked, until nobody holds the other end any more."""
    poller = select.poll()
    poller.register(requests, select.POLLIN)
    due = monotonic_us()
    while True:
        wait_us = due - monotonic_us()
        if wait_us > 0 and poller.poll((wait_us + 999) // 1000):
            if not os.read(requests, 64):
                return
        else:
            due = max(due, monotonic_us() - PERIOD_US) + PERIOD_US
        probe.tick()


def main(arguments: Sequence[str] = ()) -> int:
    """Read until told to end."""
    gc.disable()  # the binding makes thousands of classes, none of which ever goes
    from ouvrage.adapters.nvml import Nvml

    end_with_the_parent()
    probe = Probe(Nvml(), sys.stdout.fileno())
    with contextlib.suppress(BrokenPipeError):
        if probe.open():
            gc.freeze()
            gc.enable()
            serve(probe, sys.stdin.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
