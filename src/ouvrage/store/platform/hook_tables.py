"""The tables of webhooks and of what is to be delivered to them.

A webhook's secret signs what is sent, so it must be readable; like every credential it stands here alone, in no fact and no log. ``hook_cursor`` is one
row: up to which fact deliveries were made.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from ouvrage.store.schema import metadata

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("after_seq", BigInteger, nullable=False),
    Index("webhooks_org", "org"),
)

deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("delivery", Text, primary_key=True),
    Column("webhook", Text, nullable=False),
    Column("org", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due_us", BigInteger),
    Column("done_us", BigInteger),
    Column("said", Text),
    Index("webhook_deliveries_due", "due_us"),
    Index("webhook_deliveries_webhook", "webhook", "delivery"),
)

hook_cursor = Table(
    "webhook_cursor",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
)
