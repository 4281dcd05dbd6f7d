"""What is asked of a Slurm for each attempt.

A platform without one keeps the table empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "slurm_jobs",
        sa.Column("attempt", sa.Text, primary_key=True, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("job", "state")),
        *(sa.Column(name, sa.BigInteger) for name in ("number", "asked_us")),
        *(sa.Column(name, sa.Text) for name in ("word", "reason", "node", "withdrawn")),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("made_us", "priority")),
    )
    op.create_index("slurm_jobs_state", "slurm_jobs", ["state", "attempt"])
    op.create_index("slurm_jobs_job", "slurm_jobs", ["job"])
