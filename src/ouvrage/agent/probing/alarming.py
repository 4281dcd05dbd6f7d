"""When people are told: by a process of its own, started where the view that was written says something else than before.

Decides only when: soon after a change, so that what came together is one message; each few minutes, for what has become worth
telling by lasting; and later and later again while a receiver is away. What is told, and to whom, is ``alerting``'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from ouvrage.agent.probing.passing import Passing
from ouvrage.base.time import MINUTE, SECOND

_GATHERS_US, _EACH_US = 3 * SECOND, 5 * MINUTE
_AGAIN_US, _LAST_AGAIN_US = 10 * SECOND, 10 * MINUTE
_LAST_S = 5.0


class Alerts:
    """Starts it and sees it end, one at a time. ``words`` empty: never."""

    def __init__(self, words: Sequence[str]) -> None:
        self.process = Passing(words)
        self._never = not words
        self._counting: object = None
        self._next_us: int | None = None
        self._changed = False
        self._again_us = _AGAIN_US

    def shown(self, counting: object) -> None:
        """The view was written, and this is what counts in it."""
        if counting != self._counting:
            self._counting, self._changed = counting, True

    def look(self, now: int, *, free: bool = True) -> None:
        """Start it where it is time, or see how it ended. ``free``: nothing else that is passing runs."""
        if self._never:
            return
        code = self.process.ended()
        if code is not None:
            self._again_us = _AGAIN_US if code == 0 else min(2 * self._again_us, _LAST_AGAIN_US)
            self._next_us = now + (_EACH_US if code == 0 else self._again_us)
        if self.process.runs:
            return
        if self._changed:
            self._changed = False
            self._next_us = min(self._next_us or now + _EACH_US, now + _GATHERS_US)
        due = self._next_us is not None and now >= self._next_us
        if due and self.process.start(now, free=free):
            self._next_us = now + _EACH_US

    def close(self) -> None:
        """Let it finish for a while; what was not told then is told when the watch runs again."""
        self.process.wait(_LAST_S)
