"""The offers in force, by catalogue, and a way to the facts of one kind.

A store with a market holds tens of thousands of facts of one kind. Without the index every question about
another kind reads past all of them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, its state, and the index."""
    op.create_table(
        "projection_market",
        sa.Column("catalogue", sa.Text, primary_key=True),
        sa.Column("lots", sa.Text, nullable=False),
    )
    op.execute("INSERT INTO projection_state (name, maker, seq) VALUES ('market', '', 0)")
    op.create_index("facts_kind", "facts", ["kind"])
