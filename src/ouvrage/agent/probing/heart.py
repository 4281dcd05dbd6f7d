"""The heartbeat: that this process lives, said every few seconds by a thread that waits for nothing else.

Decides its file and pace. Whatever a probe, a driver or a server does, it goes on; it stops when the process is gone or
its disk no longer takes a line, and both are what a heartbeat is there to tell. The line is written over the last one, in
room that the file has already, so that a full disk does not stop it.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import monotonic_us, now_us

FILE = "heartbeat"
EVERY_S = 5.0
_MOMENTS = ("at_us", "monotonic_us")
_LINE = 200
"""Bytes of a beat, blanks at its end included."""


class Heart:
    """Beats from ``start`` to ``stop``."""

    def __init__(self, state: Path, boot: str) -> None:
        self._path = state / FILE
        self._boot = boot
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def start(self) -> None:
        """Begin, with a beat at once."""
        self._thread.start()

    def stop(self) -> None:
        """End soon."""
        self._ending.set()

    def _beat(self) -> None:
        while True:
            told = {"at_us": now_us(), "boot": self._boot, "monotonic_us": monotonic_us()}
            with suppress(OSError):  # the next one may get through
                self._write(json.dumps(told).ljust(_LINE - 1) + "\n")
            if self._ending.wait(EVERY_S):
                return

    def _write(self, line: str) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(descriptor, line.encode("ascii"), 0)
            os.ftruncate(descriptor, _LINE)
        finally:
            os.close(descriptor)


def last_beat(state: Path) -> dict[str, Any] | None:
    """The last beat, None where there was none."""
    try:
        told = json.loads((state / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    whole = isinstance(told, dict) and all(isinstance(told.get(n), int) for n in _MOMENTS)
    return told if whole and isinstance(told.get("boot"), str) else None
