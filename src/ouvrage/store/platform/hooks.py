"""Rows of webhooks, of deliveries, and how far the facts were looked through for them.

Reads and writes; what is worth a delivery, and when it is tried again, is decided by ``server``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import Connection, delete, func, insert, select, update

from ouvrage.ledger.facts import Recorded
from ouvrage.store.platform.hook_tables import deliveries, hook_cursor, webhooks
from ouvrage.store.rows import recorded_of
from ouvrage.store.schema import facts

_CURSOR = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRow:
    """A webhook; ``events`` are words with blanks between. It is told of facts after ``after_seq``."""

    webhook: str
    org: str
    url: str
    events: str
    secret: str = field(repr=False)
    created_us: int
    after_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """Something to be delivered, or that was: ``due_us`` None once it is over, ``done_us`` where it arrived."""

    delivery: str
    webhook: str
    org: str
    event: str
    body: str
    at_us: int
    tries: int
    due_us: int | None
    done_us: int | None = None
    said: str | None = None


def add_hook(connection: Connection, row: HookRow) -> None:
    """A new webhook."""
    connection.execute(insert(webhooks).values(**asdict(row)))


def hooks_of(connection: Connection, orgs: Sequence[str] | None) -> list[HookRow]:
    """The webhooks of organisations (None: all), newest first."""
    query = select(webhooks).order_by(webhooks.c.webhook.desc())
    if orgs is not None:
        query = query.where(webhooks.c.org.in_(orgs))
    return [HookRow(**row._mapping) for row in connection.execute(query)]


def hook_of(connection: Connection, hook: str) -> HookRow | None:
    """A webhook by its id."""
    row = connection.execute(select(webhooks).where(webhooks.c.webhook == hook)).first()
    return HookRow(**row._mapping) if row else None


def remove_hook(connection: Connection, hook: str) -> None:
    """Forget a webhook and what was to be delivered to it."""
    for table in (deliveries, webhooks):
        connection.execute(delete(table).where(table.c.webhook == hook))


def add_deliveries(connection: Connection, rows: Sequence[DeliveryRow]) -> None:
    """What is to be delivered."""
    if rows:
        connection.execute(insert(deliveries), [asdict(row) for row in rows])


def due(
    connection: Connection, now_us: int, limit: int, hook: str | None = None
) -> list[DeliveryRow]:
    """What is to be sent now, to all or to one: of each webhook the oldest alone, so that one that hangs holds up its own."""
    is_due = deliveries.c.due_us.is_not(None)
    firsts = select(func.min(deliveries.c.delivery)).where(is_due).group_by(deliveries.c.webhook)
    if hook is not None:
        firsts = firsts.where(deliveries.c.webhook == hook)
    query = select(deliveries).where(
        deliveries.c.delivery.in_(firsts), is_due, deliveries.c.due_us <= now_us
    )
    rows = connection.execute(query.order_by(deliveries.c.due_us).limit(limit))
    return [DeliveryRow(**row._mapping) for row in rows]


def change_delivery(connection: Connection, delivery: str, **values: str | int | None) -> None:
    """Set columns of a delivery."""
    where = deliveries.c.delivery == delivery
    connection.execute(update(deliveries).where(where).values(**values))


def deliveries_of(connection: Connection, hook: str, after: str, limit: int) -> list[DeliveryRow]:
    """Deliveries of a webhook, newest first, after one id."""
    query = select(deliveries).where(deliveries.c.webhook == hook)
    if after:
        query = query.where(deliveries.c.delivery < after)
    rows = connection.execute(query.order_by(deliveries.c.delivery.desc()).limit(limit))
    return [DeliveryRow(**row._mapping) for row in rows]


def forget_old_deliveries(connection: Connection, before_us: int) -> None:
    """Forget what is over and older than that."""
    over = deliveries.c.due_us.is_(None) & (deliveries.c.at_us < before_us)
    connection.execute(delete(deliveries).where(over))


def looked_up_to(connection: Connection) -> int | None:
    """The last fact that was looked at for deliveries; None where none ever was."""
    row = connection.execute(select(hook_cursor.c.seq).where(hook_cursor.c.name == _CURSOR)).first()
    return None if row is None else row.seq


def put_looked(connection: Connection, seq: int) -> None:
    """The facts up to this one were looked at."""
    moved = connection.execute(
        update(hook_cursor).where(hook_cursor.c.name == _CURSOR).values(seq=seq)
    )
    if not moved.rowcount:
        connection.execute(insert(hook_cursor).values(name=_CURSOR, seq=seq))


def facts_after(
    connection: Connection, seq: int, kinds: Sequence[str], limit: int
) -> list[Recorded]:
    """Facts of these kinds after one, in order."""
    query = select(facts).where(facts.c.seq > seq, facts.c.kind.in_(kinds))
    rows = connection.execute(query.order_by(facts.c.seq).limit(limit))
    return [recorded_of(row) for row in rows]


def last_fact(connection: Connection) -> int:
    """The number of the last fact there is."""
    return connection.execute(select(func.max(facts.c.seq))).scalar_one() or 0
