"""The tables, for both databases.

``facts`` is the ledger: append-only, refused otherwise by triggers that the migrations create.
``head`` is one row that says how far the ledger goes; updating it first makes every writer wait for
the one before it, on both databases alike, which is what keeps ``seq`` without gaps. Everything
else is a projection: it can be dropped and made anew from the facts.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

REVISION = "0008"
"""The migration that these tables stand at; a test holds it to the newest one."""

VERSION_TABLE = "ouvrage_version"

metadata = MetaData()

# SQLite gives a row its own place in the file only for a key of the type INTEGER.
_seq = BigInteger().with_variant(Integer(), "sqlite")

facts = Table(
    "facts",
    metadata,
    Column("seq", _seq, primary_key=True, autoincrement=False),
    Column("source", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("subject", Text, nullable=False),
    Column("valid_from", BigInteger, nullable=False),
    Column("valid_to", BigInteger),
    Column("recorded_at", BigInteger, nullable=False),
    Column("grade", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("corrects", Text),
    UniqueConstraint("source", "id", name="facts_identity"),
    Index("facts_subject", "subject"),
    Index("facts_kind", "kind"),
)

head = Table(
    "head",
    metadata,
    Column("one", Integer, CheckConstraint("one = 1", name="head_only"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
)

projection_runs = Table(
    "projection_runs",
    metadata,
    Column("run", Text, primary_key=True),
    Column("code", Text, nullable=False),
    Column("label", Text),
    Column("command", Text, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("report_json", Text, nullable=False),
    Index("projection_runs_started", "started_us"),
)

projection_market = Table(
    "projection_market",
    metadata,
    Column("catalogue", Text, primary_key=True),
    Column("lots", Text, nullable=False),
)

projection_state = Table(
    "projection_state",
    metadata,
    Column("name", Text, primary_key=True),
    Column("maker", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
)
