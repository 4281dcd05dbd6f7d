"""The ledger, its head, the projection of runs, and the triggers by which the databases refuse
to change what was recorded.

Both databases raise an integrity error. SQLite has no TRUNCATE, but has INSERT OR REPLACE, which
deletes without asking the delete trigger; the insert trigger refuses that. PostgreSQL's triggers
are ENABLE ALWAYS, since a session that replays replication would skip others.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

GROWS = "the ledger only grows: state a correction or a withdrawal instead"
FORWARD = "the head of the ledger only moves forward"

SQLITE = (
    f"""CREATE TRIGGER facts_no_update BEFORE UPDATE ON facts
        BEGIN SELECT RAISE(ABORT, '{GROWS}'); END""",
    f"""CREATE TRIGGER facts_no_delete BEFORE DELETE ON facts
        BEGIN SELECT RAISE(ABORT, '{GROWS}'); END""",
    f"""CREATE TRIGGER facts_no_replace BEFORE INSERT ON facts
        WHEN NEW.seq <= (SELECT seq FROM head)
          OR EXISTS (SELECT 1 FROM facts WHERE source = NEW.source AND id = NEW.id)
        BEGIN SELECT RAISE(ABORT, '{GROWS}'); END""",
    f"""CREATE TRIGGER head_forward BEFORE UPDATE ON head
        WHEN NEW.seq < OLD.seq OR NEW.recorded_at < OLD.recorded_at
        BEGIN SELECT RAISE(ABORT, '{FORWARD}'); END""",
    f"""CREATE TRIGGER head_no_delete BEFORE DELETE ON head
        BEGIN SELECT RAISE(ABORT, '{FORWARD}'); END""",
)

POSTGRESQL = (
    f"""CREATE FUNCTION ouvrage_ledger_grows() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{GROWS}' USING ERRCODE = 'integrity_constraint_violation'; END $$""",
    f"""CREATE FUNCTION ouvrage_head_forward() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'UPDATE' AND NEW.seq >= OLD.seq AND NEW.recorded_at >= OLD.recorded_at THEN
            RETURN NEW;
          END IF;
          RAISE EXCEPTION '{FORWARD}' USING ERRCODE = 'integrity_constraint_violation';
        END $$""",
    """CREATE TRIGGER facts_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON facts
        FOR EACH STATEMENT EXECUTE FUNCTION ouvrage_ledger_grows()""",
    """CREATE TRIGGER head_forward BEFORE UPDATE OR DELETE ON head
        FOR EACH ROW EXECUTE FUNCTION ouvrage_head_forward()""",
    """CREATE TRIGGER head_no_truncate BEFORE TRUNCATE ON head
        FOR EACH STATEMENT EXECUTE FUNCTION ouvrage_head_forward()""",
    "ALTER TABLE facts ENABLE ALWAYS TRIGGER facts_no_change",
    "ALTER TABLE head ENABLE ALWAYS TRIGGER head_forward",
    "ALTER TABLE head ENABLE ALWAYS TRIGGER head_no_truncate",
)


def upgrade() -> None:
    """Create everything, and the head of an empty ledger."""
    _create_ledger()
    _create_projections()
    triggers = SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL
    for statement in triggers:
        op.execute(statement)


def _create_ledger() -> None:
    op.create_table(
        "facts",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("valid_from", sa.BigInteger, nullable=False),
        sa.Column("valid_to", sa.BigInteger),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sa.Column("grade", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("corrects", sa.Text),
        sa.UniqueConstraint("source", "id", name="facts_identity"),
    )
    op.create_index("facts_subject", "facts", ["subject"])
    head = op.create_table(
        "head",
        sa.Column("one", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sa.CheckConstraint("one = 1", name="head_only"),
    )
    op.bulk_insert(head, [{"one": 1, "seq": 0, "recorded_at": 0}])


def _create_projections() -> None:
    op.create_table(
        "projection_runs",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("report_json", sa.Text, nullable=False),
    )
    op.create_index("projection_runs_started", "projection_runs", ["started_us"])
    state = op.create_table(
        "projection_state",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("maker", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(state, [{"name": "runs", "maker": "", "seq": 0}])
