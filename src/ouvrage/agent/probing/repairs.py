"""When a watch lets something be done about what it found: a process of its own, started where there is trouble.

Decides only when: at the start, before anything looks, for a rung that was under way when the machine went down; often while something is
CRITICAL and new, less often where it stays as it is; now and then else, for a window of maintenance or a person's word. What is
done is ``repair``'s, and decided by the server or ``alone``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress

from ouvrage.agent.probing.passing import HASTE_US, PATIENCE_US, Passing
from ouvrage.base.time import MINUTE, SECOND

_IN_TROUBLE_US, _ELSE_US = 15 * SECOND, 10 * MINUTE
_OLD_US, _IN_OLD_TROUBLE_US = 10 * MINUTE, MINUTE
"""Trouble in which nothing changed for so long waits for a person or a part: then it is asked each minute."""
_RESUME_S = 20.0


class Repairs:
    """Starts it and sees it end, one at a time. ``words`` empty: never."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self.process = Passing(words)
        self._last_us: int | None = None
        self._trouble = False
        self._counting: object = None
        self._changed_us = 0

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

    def look(
        self, now: int, trouble: bool, *, free: bool = True, counting: object = None
    ) -> None:  # fmt: skip
        """Start it where it is time; when trouble is over, once more at once.

        ``free``: nothing else that is passing runs. ``counting`` is what counts now: another value, and trouble is new again.
        """
        self.process.ended()
        if self.process.runs or not self._words:
            return
        if counting != self._counting or trouble != self._trouble:
            self._counting, self._changed_us = counting, now
        over, self._trouble = self._trouble and not trouble, trouble
        due = self._last_us is None or now - self._last_us >= self._pause_us(now) or over
        if not due:
            return
        patience_us = HASTE_US if trouble else PATIENCE_US
        if self.process.start(now, free=free, patience_us=patience_us):
            self._last_us = now if trouble or not over else None
        else:
            self._trouble = self._trouble or over  # it is still to be started once more

    def _pause_us(self, now: int) -> int:
        if not self._trouble:
            return _ELSE_US
        return _IN_TROUBLE_US if now - self._changed_us < _OLD_US else _IN_OLD_TROUBLE_US

    def close(self) -> None:
        """Let it finish: what it does to a GPU is not cut short."""
        self.process.forget()
