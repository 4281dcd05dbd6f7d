"""Facts of some kinds that came since a place in the ledger, within a transaction or a view.

Decides nothing. Whoever keeps a record in memory reads the ledger once, and then only what is new.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from ouvrage.ledger.facts import Recorded
from ouvrage.store.rows import recorded_of
from ouvrage.store.schema import facts, head


def news(connection: Connection, kinds: Collection[str], after: int) -> tuple[int, list[Recorded]]:
    """How far the ledger goes, and the facts of these kinds behind ``after``, in their order."""
    last: int = connection.execute(select(head.c.seq)).scalar_one()
    if last <= after:
        return last, []
    new = (facts.c.seq > after) & (facts.c.kind.in_(sorted(kinds)))
    rows = connection.execute(select(facts).where(new).order_by(facts.c.seq))
    return last, [recorded_of(row) for row in rows]
