"""The audit trail as it is read: newest first, of one organisation or of all, a part at a time.

The lines are facts like others; this asks the ledger for one kind of them without reading the rest.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from ouvrage.ledger.facts import Recorded
from ouvrage.model.tenancy import AuditEntry
from ouvrage.store.rows import recorded_of
from ouvrage.store.schema import facts


def trail(
    connection: Connection, *, subject: str | None, before: int | None, limit: int
) -> list[Recorded]:
    """Lines about one subject (None: all), those before a ``seq`` (None: the newest), at most ``limit``."""
    query = select(facts).where(facts.c.kind == AuditEntry.KIND)
    if subject is not None:
        query = query.where(facts.c.subject == subject)
    if before is not None:
        query = query.where(facts.c.seq < before)
    rows = connection.execute(query.order_by(facts.c.seq.desc()).limit(limit))
    return [recorded_of(row) for row in rows]
