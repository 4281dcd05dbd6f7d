"""Telemetry on its way in: a bounded queue before one thread that writes what has gathered, all at once.

Decides how long it gathers, how much may wait, and that whoever comes when the queue is full, or the disk nearly so, is told when to
come back. One write to the disk and one short transaction serve all who wait; those who ask for pages never wait for telemetry.
"""

from __future__ import annotations

import shutil
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import structlog

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import MINUTE, SECOND
from ouvrage.server.errors import Refused
from ouvrage.server.recent import KEPT_US, Recent
from ouvrage.store.sample_frames import frames_in
from ouvrage.store.store import Store
from ouvrage.store.telemetry import Kept, Offered, SampleLog, logs_of, path_of

GATHER_S = 0.1
MOST_WAITING, MOST_OF_NODE, MOST_BYTES = 4000, 4, 32 << 20
MOST_AT_ONCE = 1000
ROOM_BYTES = 512 << 20
"""What telemetry leaves free on the disk, for everything else."""
_LOOK_US = 5 * SECOND
_log = structlog.get_logger("ouvrage.server")
_Waiting = tuple[Offered, "Future[Kept]"]


class Intake:
    """Takes batches from any thread; one thread of its own keeps them.

    ``unsealable`` are files that could not be sealed; they are left until the next start.
    """

    def __init__(self, log: SampleLog, clock: Callable[[], int], free: Callable[[], int]) -> None:
        self.recent = Recent()
        self.unsealable: set[str] = set()
        self._log = log
        self._clock = clock
        self._free = free
        self._room, self._looked_us = True, 0
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0
        self._of_node: dict[str, int] = {}
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="ouvrage-telemetry", daemon=True)

    def start(self) -> None:
        """Begin to keep."""
        self._thread.start()

    def stop(self) -> None:
        """Keep what waits, then end."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        self._log.close()

    @property
    def open_log(self) -> str | None:
        """The file that is being written to."""
        return self._log.open_log

    def refill(self, store: Store, source: str, home: Path) -> None:
        """Hold again what the files have of the last minutes."""
        since = self._clock() - KEPT_US
        for row in logs_of(store, source):
            if row.to_us < since - MINUTE or not row.bytes:
                continue
            try:
                for frame in frames_in(path_of(home, row.log), row.bytes):
                    if frame.at_us >= since:
                        self.recent.add(frame)
            except (OuvrageError, OSError) as error:
                _log.error("telemetry.unreadable", log=row.log, why=str(error))

    def offer(self, offered: Offered) -> Future[Kept]:
        """Queue a batch; its outcome comes once it is kept. ``Refused`` 429 or 503 where it must come later."""
        node, waits = offered.frame.node, Future[Kept]()
        with self._changed:
            if self._of_node.get(node, 0) >= MOST_OF_NODE:
                raise _later("samples/one-at-a-time", "earlier batches of this node wait", 429, 1)
            if len(self._queue) >= MOST_WAITING or self._bytes >= MOST_BYTES or self._ending:
                raise _later("samples/busy", "more telemetry waits than is taken", 503, 5)
            if not self._has_room():
                raise _later("samples/no-room", "the server's disk is nearly full", 503, 60)
            self._queue.append((offered, waits))
            self._bytes += len(offered.frame.content)
            self._of_node[node] = self._of_node.get(node, 0) + 1
            self._changed.notify()
        return waits

    def _has_room(self) -> bool:
        """Whether the disk has room, as far as was seen lately."""
        now = self._clock()
        if now >= self._looked_us + _LOOK_US:
            self._room, self._looked_us = self._free() >= ROOM_BYTES, now
        return self._room

    def _run(self) -> None:
        while group := self._gathered():
            try:
                kept = self._log.append([offered for offered, _ in group], self._clock())
            except Exception as error:  # noqa: BLE001 -- whatever it was, those who wait are told and send again
                _log.error("telemetry.not_kept", exc_info=error)
                refusal = _later("samples/not-kept", "telemetry can't be kept just now", 503, 5)
                self._done(group)
                for _, waits in group:
                    if waits.running():
                        waits.set_exception(refusal)
                continue
            self._done(group)
            for (offered, waits), outcome in zip(group, kept, strict=True):
                if outcome.result == "accepted":
                    self.recent.add(offered.frame)
                if waits.running():
                    waits.set_result(outcome)

    def _gathered(self) -> list[_Waiting]:
        """What is to be kept next: waits for the first, then a moment for others; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ending)
            if not self._ending:
                self._changed.wait_for(
                    lambda: len(self._queue) >= MOST_AT_ONCE or self._ending, GATHER_S
                )
            many = min(len(self._queue), MOST_AT_ONCE)
            group = [self._queue.popleft() for _ in range(many)]
        for _, waits in group:
            waits.set_running_or_notify_cancel()  # whoever has left is not told, and no longer waited for
        return group

    def _done(self, group: list[_Waiting]) -> None:
        with self._changed:
            for offered, _ in group:
                self._bytes -= len(offered.frame.content)
                left = self._of_node[offered.frame.node] - 1
                if left:
                    self._of_node[offered.frame.node] = left
                else:
                    del self._of_node[offered.frame.node]


def _later(code: str, message: str, status: int, seconds: int) -> Refused:
    return Refused(
        code,
        message,
        status=status,
        hint=f"wait {seconds} s and send it again",
        retry_after=seconds,
    )


def free_of(directory: Path) -> Callable[[], int]:
    """How much room the disk of a directory has."""
    return lambda: shutil.disk_usage(directory).free
