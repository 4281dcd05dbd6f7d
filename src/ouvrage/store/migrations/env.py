"""How Alembic runs the steps: on the connection and in the transaction that it is handed.

It decides neither where the database is nor when to commit; ``store/upgrade.py`` does, so that a
database is only ever opened in one way.
"""

from __future__ import annotations

from alembic import context

from ouvrage.store.platform import (
    dues_tables,
    hook_tables,
    ingest_tables,
    slurm_tables,
    tenancy_tables,
    work_tables,
)
from ouvrage.store.schema import VERSION_TABLE, metadata

__all__ = [
    "dues_tables",
    "hook_tables",
    "ingest_tables",
    "slurm_tables",
    "tenancy_tables",
    "work_tables",
]  # imported so that ``metadata`` knows them

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
# A no-op here: the caller's transaction is open, and commits or rolls back all steps as one.
with context.begin_transaction():
    context.run_migrations()
