"""The table of what is asked of a Slurm: one row for each attempt that is to have a place, until Slurm is done with it.

Decides nothing. It is how things stand with somebody else's scheduler this minute, which tells it again whenever it is asked: it is not rebuilt
from facts. What came of an attempt stands with the attempt.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text

from ouvrage.store.schema import metadata

slurm_jobs = Table(
    "slurm_jobs",
    metadata,
    Column("attempt", Text, primary_key=True),
    Column("job", Text, nullable=False),
    Column("state", Text, nullable=False),
    # The number of the job at Slurm, once it is known; when it was last asked for.
    Column("number", BigInteger),
    Column("asked_us", BigInteger),
    # Slurm's own words when it was last looked at, and the node.
    Column("word", Text),
    Column("reason", Text),
    Column("node", Text),
    # Why it is to be taken back from Slurm.
    Column("withdrawn", Text),
    Column("made_us", BigInteger, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Index("slurm_jobs_state", "state", "attempt"),
    Index("slurm_jobs_job", "job"),
)
