"""Whether a service answers: asked from its own node, inside its sandbox, whether the server is there or not.

Decides what counts as well: an answer to its health check below 400, within a few seconds; without one, that its port takes a
connection. Until it was well for the first time it has a quarter of an hour, since a model takes its time to load.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading

from ouvrage.adapters.clock import monotonic_us
from ouvrage.adapters.inside import Listed, connect_inside
from ouvrage.base.time import MINUTE, SECOND

EVERY_US = 5 * SECOND
START_US = 15 * MINUTE
_WAIT_S = 5.0


class Wellness:
    """One service. ``look`` asks in a thread of its own, one at a time; ``well`` and ``ill_us`` tell what came of it."""

    def __init__(self, listed: Listed, port: int, path: str | None) -> None:
        self._listed = listed
        self._port = port
        self._path = path
        self._busy = threading.Lock()
        self._began_us = monotonic_us()
        self._next_us = 0
        self._well_us: int | None = None
        self.well: bool | None = None

    @property
    def ill_us(self) -> int:
        """For how long it has not been well; 0 while it may still be starting."""
        now = monotonic_us()
        if self.well is not False:
            return 0
        if self._well_us is not None:
            return now - self._well_us
        return max(0, now - self._began_us - START_US)

    def look(self) -> None:
        """Ask, where it is time and nobody does."""
        now = monotonic_us()
        if now < self._next_us or not self._busy.acquire(blocking=False):
            return
        self._next_us = now + (EVERY_US if self.well else SECOND)
        threading.Thread(target=self._ask, name="wellness", daemon=True).start()

    def _ask(self) -> None:
        try:
            self.well = self._answers()
            if self.well:
                self._well_us = monotonic_us()
        finally:
            self._busy.release()

    def _answers(self) -> bool:
        try:
            made = connect_inside(self._listed, self._port, _WAIT_S)
        except OSError:
            return False
        with contextlib.closing(made):
            return self._path is None or _status(made, self._path) < 400


def _status(made: socket.socket, path: str) -> int:
    """The status of the answer; 599 where none comes."""
    connection = http.client.HTTPConnection("localhost", timeout=_WAIT_S)
    connection.sock = made
    try:
        connection.request("GET", path, headers={"User-Agent": "ouvrage-health"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 599
