"""The record of health that a server keeps in memory: read from the ledger once, and then only what is new.

Decides nothing. Several threads share it under a lock; a second server process has its own, which reads the same facts.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from ouvrage.health.record import KINDS_READ, HealthRecord
from ouvrage.store.news import news
from ouvrage.store.transaction import Connection


class HealthBook:
    """``at`` gives the record as it stands in a connection's state of the store."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._record = HealthRecord()

    @contextmanager
    def at(self, connection: Connection) -> Generator[HealthRecord]:
        """The record, up to date and nobody else's for as long as the context lasts. Nothing may be written to it.

        Within a transaction, ask before anything is appended in it: what is rolled back must never have been read.
        """
        with self._lock:
            last, new = news(connection, KINDS_READ, self._record.last_seq)
            for entry in new:
                self._record.take(entry)
            self._record.last_seq = max(last, self._record.last_seq)
            yield self._record
