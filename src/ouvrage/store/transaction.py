"""One transaction over the ledger and the tables beside it: all of it becomes true at once, or none.

The platform's state (who waits, what runs, which key is revoked) stands in tables; what happened stands in facts. Both
change here together. Every transaction first takes the one row of ``head``, so that writers queue on both databases alike
and whoever holds a transaction sees all that was committed before.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from ouvrage.ledger.admission import admit
from ouvrage.ledger.facts import Fact
from ouvrage.store.engine import reading, told, writing
from ouvrage.store.store import Outcome, Store, append_within, wait_for_head

__all__ = ["Connection", "Transaction", "transaction", "view"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An open transaction: its ``connection`` for the tables, the moment ``now_us``, and the ledger."""

    connection: Connection
    now_us: int
    own_source: str
    noted: list[Fact] = field(default_factory=list)
    memo: dict[str, Any] = field(default_factory=dict)
    """What was looked up once for the whole transaction; whoever changes it forgets it."""

    def note(self, batch: Sequence[Fact]) -> None:
        """Record facts at the end of this transaction, with all others noted, in one go.

        For many at once it is much cheaper than ``append``, and nobody may need the outcome.
        """
        for fact in batch:
            admit(fact)
        self.noted.extend(batch)

    def append(self, batch: Sequence[Fact]) -> list[Outcome]:
        """Record facts within this transaction; one outcome each, as ``Store.append``."""
        for fact in batch:
            admit(fact)
        return append_within(self.connection, batch, self.now_us, self.own_source)


@contextmanager
def transaction(store: Store, *, now_us: int, own_source: str) -> Generator[Transaction]:
    """A transaction that may write; commits at the end, rolls back on any exception."""
    with told(store.engine), writing(store.engine) as connection:
        wait_for_head(connection)
        opened = Transaction(connection=connection, now_us=now_us, own_source=own_source)
        yield opened
        if opened.noted:
            append_within(connection, opened.noted, now_us, own_source)


@contextmanager
def view(store: Store) -> Generator[Connection]:
    """A connection to read by; every statement over it sees the same state of ledger and tables."""
    with told(store.engine), reading(store.engine) as connection:
        yield connection
