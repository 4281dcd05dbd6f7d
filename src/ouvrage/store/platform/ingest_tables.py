"""The tables of what came from elsewhere: whose each received run is, and how far each source of telemetry has been heard.

Decides that whose a run is stands beside its fact, while the places in telemetry stand here alone: they are how far a log on
this disk is good, and go where it goes.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from ouvrage.store.schema import metadata

received_runs = Table(
    "received_runs",
    metadata,
    Column("run", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("said_by", Text, nullable=False),
    Column("received_us", BigInteger, nullable=False),
    # What was sent about it so far, unpacked: what a project may fill the owner's disk with is limited.
    Column("bytes", BigInteger, nullable=False),
    Index("received_runs_project", "project", "run"),
    Index("received_runs_org", "org", "run"),
)

sample_sources = Table(
    "sample_sources",
    metadata,
    Column("node", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    # The last batch that is kept; the next one has the number after it.
    Column("sequence", BigInteger, nullable=False),
    Column("heard_us", BigInteger, nullable=False),
)

sample_logs = Table(
    "sample_logs",
    metadata,
    Column("log", Text, primary_key=True),
    # The source of the server whose directory the file stands in.
    Column("source", Text, nullable=False),
    # Up to where the file of this name was acknowledged; what follows there was promised to nobody.
    Column("bytes", BigInteger, nullable=False),
    Column("batches", BigInteger, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("to_us", BigInteger, nullable=False),
    Column("begun_us", BigInteger, nullable=False),
)
