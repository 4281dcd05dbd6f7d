"""Waking those who wait for something to change: a runner for its orders, a reader for a log's next lines, the engine.

Decides nothing and promises little: a wake-up says "look again", may come without reason, and reaches this process alone. So
whoever waits registers first, looks, and then waits with a deadline; another process's change is seen at the next look.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

ENGINE = "engine"
"""Told when something waits or something came free."""
HEALTH = "health"
"""Told when something was said about the health of a machine."""


class Ear:
    """One who waits in a thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        """Wake whoever waits here, now or at the next wait."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Wait until woken or for so long; whether it was woken. Later wake-ups count anew."""
        woken = self._event.wait(seconds)
        self._event.clear()
        return woken


class AsyncEar:
    """One who waits in an event loop; rung from any thread."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        """Wake whoever waits here, now or at the next wait."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Wait until woken or for so long; whether it was woken. Later wake-ups count anew."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except asyncio.TimeoutError:  # another class than TimeoutError in Python 3.10
            return False
        self._event.clear()
        return True


class Wakes:
    """Who waits for what, by topic: ``engine``, ``health``, ``node:ID``, ``log:ATTEMPT``, ``job:ID``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ears: dict[str, set[Ear | AsyncEar]] = {}
        self.closed = False
        """Set when the server ends: whoever waits stops waiting."""

    def close(self) -> None:
        """Wake everybody for the last time."""
        self.closed = True
        with self._lock:
            ears = [ear for listed in self._ears.values() for ear in listed]
        for ear in ears:
            ear.ring()

    def tell(self, *topics: str) -> None:
        """Wake all who wait for these; call it after the change is committed."""
        with self._lock:
            ears = [ear for topic in topics for ear in self._ears.get(topic, ())]
        for ear in ears:
            ear.ring()

    @contextmanager
    def listening(self, *topics: str) -> Generator[Ear]:
        """An ear for a thread, for as long as the context lasts."""
        ear = Ear()
        with self._listed(ear, topics):
            yield ear

    @contextmanager
    def listening_async(self, *topics: str) -> Generator[AsyncEar]:
        """An ear for a coroutine, for as long as the context lasts."""
        ear = AsyncEar()
        with self._listed(ear, topics):
            yield ear

    @contextmanager
    def _listed(self, ear: Ear | AsyncEar, topics: tuple[str, ...]) -> Generator[None]:
        with self._lock:
            for topic in topics:
                self._ears.setdefault(topic, set()).add(ear)
        try:
            yield
        finally:
            with self._lock:
                for topic in topics:
                    self._forget(ear, topic)

    def _forget(self, ear: Ear | AsyncEar, topic: str) -> None:
        left = self._ears[topic]
        left.discard(ear)
        if not left:
            del self._ears[topic]
