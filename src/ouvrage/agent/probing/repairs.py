"""When a watch lets something be done about what it found: a process of its own, started where there is trouble.

Decides only when: at the start, before anything looks, for a rung that was under way when the machine went down; often while something is
CRITICAL; now and then else, for a window of maintenance or a person's word. What is done is ``repair``'s, and decided by the server or ``alone``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress

from ouvrage.base.time import MINUTE, SECOND

_IN_TROUBLE_US, _ELSE_US = 15 * SECOND, 10 * MINUTE
_RESUME_S = 20.0


class Repairs:
    """Starts it and sees it end, one at a time. ``words`` empty: never."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._child: subprocess.Popen[bytes] | None = None
        self._last_us: int | None = None
        self._trouble = False

    def resume(self) -> None:
        """What was under way is told, and its verification asked for, before the first look finds the old fault again."""
        if self._words:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [*self._words, "--resume"],
                    stdin=subprocess.DEVNULL,
                    timeout=_RESUME_S,
                    check=False,
                )

    def look(self, now: int, trouble: bool, *, free: bool = True) -> None:
        """Start it where it is time; when trouble is over, once more at once.

        ``free``: nothing else that is passing runs; without trouble it waits until that is so, since it weighs as much.
        """
        if self._child is not None and self._child.poll() is None:
            return
        self._child = None
        over, self._trouble = self._trouble and not trouble, trouble
        pause = _IN_TROUBLE_US if trouble else _ELSE_US
        due = self._last_us is None or now - self._last_us >= pause or over
        if not self._words or not due:
            return
        if not free and not trouble:
            self._trouble = over  # it is still to be started once more
            return
        self._last_us = now if trouble or not over else None
        with suppress(OSError):
            self._child = subprocess.Popen(self._words, stdin=subprocess.DEVNULL)

    def close(self) -> None:
        """Let it finish: what it does to a GPU is not cut short."""
        self._child = None
