"""Nodes, offers, leases, jobs and their attempts: the work of a platform.

A person's own home keeps these tables empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    _machines()
    _selling()
    _jobs()
    _attempts()


def _key(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True, nullable=False) for name in names]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _maybe_texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text) for name in names]


def _big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _maybe_big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer, nullable=False) for name in names]


def _machines() -> None:
    op.create_table(
        "nodes",
        *_key("node"),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *_texts("cpus", "devices", "isolations", "cgroup", "boot", "version"),
        *_big("memory_mib", "disk_mib", "enrolled_us"),
        *_numbers("listed"),
    )
    op.create_table("runners", *_key("node"), *_big("sequence", "seen_us", "present_us", "told_us"))
    op.create_table(
        "fences",
        *_key("node", "device", "holder"),
        *_texts("why", "said_by"),
        *_big("since_us"),
    )
    op.create_table("shares", *_key("project"), *_big("used_us", "at_us"))
    op.create_table("claims", *_key("name"), *_texts("token"), *_big("expires_us"))


def _selling() -> None:
    op.create_table(
        "offers",
        *_key("offer"),
        *_texts("name", "audience", "terms"),
        *_big("created_us"),
        *_maybe_big("withdrawn_us"),
    )
    op.create_index("offers_name", "offers", ["name"])
    op.create_table(
        "leases",
        *_key("lease"),
        *_texts("offer", "org", "project", "kind", "node", "placed"),
        *_big("from_us"),
        *_maybe_big("until_us", "ended_us", "billable_us"),
        *_maybe_texts("attempt", "end", "ending"),
    )
    op.create_index("leases_open", "leases", ["ended_us", "node"])
    op.create_index("leases_org", "leases", ["org", "lease"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        *_key("job"),
        *_texts("org", "project", "user_id", "name", "spec", "state", "not_on"),
        *_maybe_texts("offer", "lease", "code", "reason"),
        *_big("submitted_us", "not_before_us"),
        *_maybe_big("ended_us"),
        *_numbers("attempts"),
    )
    op.create_index("jobs_state", "jobs", ["state", "submitted_us"])
    op.create_index("jobs_org", "jobs", ["org", "job"])
    op.create_table(
        "job_files",
        *_key("job", "direction", "name"),
        *_texts("sha256"),
        *_big("bytes", "at_us"),
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        *_key("attempt"),
        *_texts("job", "org", "lease", "node", "placed", "state"),
        *_maybe_texts("outcome", "cause", "reason", "isolation", "peaks", "scrub", "scrub_detail"),
        *_maybe_texts("stop", "stop_reason", "progress"),
        *_big("ordered_us"),
        *_maybe_big("began_us", "ended_us", "wall_us", "sent_us", "known_us", "missing_us"),
        *_maybe_big("stop_grace_us"),
        *_numbers("number", "forgotten"),
        sa.Column("exit_code", sa.Integer),
        sa.Column("signal", sa.Integer),
    )
    op.create_index("attempts_node", "attempts", ["node", "forgotten"])
    op.create_index("attempts_job", "attempts", ["job", "number"])
    op.create_index("attempts_lease", "attempts", ["lease"])
    op.create_index("attempts_state", "attempts", ["state"])
