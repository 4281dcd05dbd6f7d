"""Public keys of people; webhooks and what is delivered to them.

A person's own home keeps these tables empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "ssh_keys",
        sa.Column("ssh_key", sa.Text, primary_key=True, nullable=False),
        *_texts("user_id", "name", "kind", "body", "fingerprint"),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("user_id", "fingerprint", name="ssh_keys_fingerprint"),
        sa.UniqueConstraint("user_id", "name", name="ssh_keys_name"),
    )
    op.create_table(
        "webhooks",
        sa.Column("webhook", sa.Text, primary_key=True, nullable=False),
        *_texts("org", "url", "events", "secret"),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("after_seq", sa.BigInteger, nullable=False),
    )
    op.create_index("webhooks_org", "webhooks", ["org"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("delivery", sa.Text, primary_key=True, nullable=False),
        *_texts("webhook", "org", "event", "body"),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        *(sa.Column(name, sa.BigInteger) for name in ("due_us", "done_us")),
        sa.Column("said", sa.Text),
    )
    op.create_index("webhook_deliveries_due", "webhook_deliveries", ["due_us"])
    op.create_index("webhook_deliveries_webhook", "webhook_deliveries", ["webhook", "delivery"])
    op.create_table(
        "webhook_cursor",
        sa.Column("name", sa.Text, primary_key=True, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]
