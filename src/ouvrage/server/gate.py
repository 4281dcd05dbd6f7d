"""How many large requests are under way at once, in all and of one asker: the others are told to come back.

Decides when there are too many. Bodies are held in memory while they are read and judged, so their number must have a bound
that no asker can use up alone; small requests never wait here.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from ouvrage.server.errors import Refused

AT_ONCE, OF_ONE, AGAIN_S = 8, 2, 2


class Gate:
    """Counts who is inside. Safe in several threads and in the event loop: it never waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: Counter[str] = Counter()

    @contextmanager
    def entered(self, who: str) -> Generator[None]:
        """Inside until the end of the block. ``Refused`` 503 with the seconds to wait where too many are."""
        with self._lock:
            if self._inside.total() >= AT_ONCE or self._inside[who] >= OF_ONE:
                raise Refused(
                    "server/busy",
                    "too many large requests are under way",
                    status=503,
                    hint=f"wait {AGAIN_S} s and send it again",
                    retry_after=AGAIN_S,
                )
            self._inside[who] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[who] -= 1
                self._inside += Counter()  # drops those who have left
