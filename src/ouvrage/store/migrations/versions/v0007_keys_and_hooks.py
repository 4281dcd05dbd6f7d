"""Public keys of people.

A person's own home keeps the table empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "ssh_keys",
        sa.Column("ssh_key", sa.Text, primary_key=True, nullable=False),
        *_texts("user_id", "name", "kind", "body", "fingerprint"),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("user_id", "fingerprint", name="ssh_keys_fingerprint"),
        sa.UniqueConstraint("user_id", "name", name="ssh_keys_name"),
    )


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]
