"""The heartbeat: that this process lives, said every few seconds by a thread that waits for nothing else.

Decides its file and pace. Whatever a probe, a driver or a server does, it goes on; it stops when the process is gone or
its disk no longer takes a line, and both are what a heartbeat is there to tell.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from ouvrage.adapters.clock import monotonic_us, now_us

FILE = "heartbeat"
EVERY_S = 5.0


class Heart:
    """Beats from ``start`` to ``stop``."""

    def __init__(self, state: Path, boot: str) -> None:
        self._path = state / FILE
        self._draft = state / f".{FILE}"
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
            try:
                self._draft.write_text(json.dumps(told) + "\n", "ascii")
                self._draft.replace(self._path)
            except OSError:
                pass  # the next one may get through
            if self._ending.wait(EVERY_S):
                return


def last_beat(state: Path) -> dict[str, Any] | None:
    """The last beat, None where there was none."""
    try:
        return json.loads((state / FILE).read_bytes())
    except (OSError, ValueError):
        return None
