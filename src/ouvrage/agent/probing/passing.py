"""A process that comes and goes beside the watch: how it is started, and that only one weighs at a time.

Decides that those which pass (what takes facts away, repairs, tells people, looks each minute) wait for one another, since
each weighs as much as all that stays; and that none waits long, a repair least of all, since one that hangs must not keep the
others from their work. When each is due is its own affair.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress

from ouvrage.base.time import SECOND

HASTE_US, PATIENCE_US = 15 * SECOND, 60 * SECOND
"""So long one that is due waits for others: a look at the machine or a repair, and all that can wait. On a machine that is
loaded to its limits taking facts away alone lasts longer than the first."""


class Passing:
    """At most one process of ``words`` at a time; empty words: never one."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._child: subprocess.Popen[bytes] | None = None
        self._began_us = 0
        self._waits_us: int | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started and its end has not been seen."""
        return self._child is not None

    def ended(self) -> int | None:
        """Its exit code, once, when it has ended; None while it runs or was not started."""
        code = None if self._child is None else self._child.poll()
        if code is not None:
            self._child = None
        return code

    def holds(self, now: int) -> bool:
        """Whether a look at the machine is to wait for it."""
        return self._child is not None and now - self._began_us < HASTE_US

    def end_after(self, now: int, most_us: int) -> None:
        """Kill it where it has run longer than it may."""
        if self._child is not None and now - self._began_us > most_us:
            self._child.kill()

    def start(self, now: int, *, free: bool, patience_us: int = PATIENCE_US) -> bool:
        """Start it where nothing else passes or it has waited long; whether its turn has come."""
        self._waits_us = now if self._waits_us is None else self._waits_us
        if not free and now - self._waits_us < patience_us:
            return False
        self._began_us, self._waits_us = now, None
        self.start_now()
        return True

    def start_now(self) -> None:
        """Start it whatever else runs; where that fails it is tried again when it is due again."""
        with suppress(OSError):
            self._child = subprocess.Popen(self._words, stdin=subprocess.DEVNULL)

    def wait(self, seconds: float) -> None:
        """Let it finish, for a while."""
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)

    def forget(self) -> None:
        """Let it go on alone."""
        self._child = None
