"""The record of health that a server keeps in memory: read from the ledger once, and then only what is new.

Decides nothing. Several threads share it under a lock; a second server process has its own, which reads the same facts.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import select

from ouvrage.health.record import KINDS_READ, HealthRecord
from ouvrage.store.rows import recorded_of
from ouvrage.store.schema import facts, head
from ouvrage.store.transaction import Connection


class HealthBook:
    """``at`` gives the record as it stands in a connection's state of the store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._record = HealthRecord()

    @contextmanager
    def at(self, connection: Connection) -> Generator[HealthRecord]:
        """The record, up to date and nobody else's for as long as the context lasts. Nothing may be written to it."""
        with self._lock:
            self._catch_up(connection)
            yield self._record

    def _catch_up(self, connection: Connection) -> None:
        last = connection.execute(select(head.c.seq)).scalar_one()
        if last <= self._record.last_seq:
            return
        new = (facts.c.seq > self._record.last_seq) & (facts.c.kind.in_(KINDS_READ))
        for row in connection.execute(select(facts).where(new).order_by(facts.c.seq)):
            self._record.take(recorded_of(row))
        self._record.last_seq = last
