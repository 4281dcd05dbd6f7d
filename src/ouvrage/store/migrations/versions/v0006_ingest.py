"""Runs that were received, and how far each source of telemetry has been heard.

A person's own home keeps these tables empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "received_runs",
        sa.Column("run", sa.Text, primary_key=True, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("org", "project", "said_by")),
        sa.Column("attempt", sa.Integer, nullable=False),
        *_big("received_us", "bytes"),
    )
    op.create_index("received_runs_project", "received_runs", ["project", "run"])
    op.create_index("received_runs_org", "received_runs", ["org", "run"])
    op.create_table(
        "sample_sources",
        *(
            sa.Column(name, sa.Text, primary_key=True, nullable=False)
            for name in ("node", "source")
        ),
        *_big("sequence", "heard_us"),
    )
    op.create_table(
        "sample_logs",
        sa.Column("log", sa.Text, primary_key=True, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        *_big("bytes", "batches", "from_us", "to_us", "begun_us"),
    )


def _big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]
