"""Organisations, projects, people, their credentials, and answers kept for repeated requests.

A platform holds all of them; a person's own home keeps the tables empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    _tenancy()
    _credentials()
    _kept()


def _text(
    name: str, *, nullable: bool = False, primary_key: bool = False, unique: bool | None = None
) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable, primary_key=primary_key, unique=unique)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _tenancy() -> None:
    op.create_table(
        "organisations",
        _text("org", primary_key=True),
        _text("name", unique=True),
        *map(_text, ("side", "currency", "billing", "credit_limit")),
        _number("closed"),
    )
    op.create_table(
        "projects",
        _text("project", primary_key=True),
        *map(_text, ("org", "name", "weight")),
        _number("trusted"),
        _number("closed"),
        sa.UniqueConstraint("org", "name", name="projects_name"),
    )
    op.create_table(
        "memberships",
        _text("user_id", primary_key=True),
        _text("org", primary_key=True),
        _text("project", primary_key=True),
        *map(_text, ("login", "role")),
    )
    op.create_index("memberships_org", "memberships", ["org"])


def _credentials() -> None:
    op.create_table(
        "users",
        _text("user_id", primary_key=True),
        _text("org"),
        _text("login", unique=True),
        _text("kind"),
        _text("password", nullable=True),
        _moment("changed_us"),
        _text("issuer", nullable=True),
        _text("subject", nullable=True),
        sa.UniqueConstraint("issuer", "subject", "org", name="users_identity"),
    )
    op.create_index("users_org", "users", ["org"])
    op.create_table(
        "tokens",
        _text("token", primary_key=True),
        *map(_text, ("user_id", "name", "hash", "scopes", "project")),
        _moment("created_us"),
        _moment("expires_us"),
        _moment("used_us", nullable=True),
        _moment("revoked_us", nullable=True),
    )
    op.create_index("tokens_user", "tokens", ["user_id"])
    op.create_table(
        "sessions",
        _text("session", primary_key=True),
        *map(_text, ("user_id", "hash")),
        *map(_moment, ("created_us", "seen_us", "expires_us")),
    )
    op.create_index("sessions_user", "sessions", ["user_id"])
    _nodes()


def _nodes() -> None:
    op.create_table(
        "enrolments",
        _text("enrolment", primary_key=True),
        _text("hash"),
        _moment("created_us"),
        _moment("expires_us"),
        _moment("used_us", nullable=True),
        _text("node", nullable=True),
    )
    op.create_table(
        "node_keys",
        _text("node_key", primary_key=True),
        _text("node"),
        _text("hash"),
        _moment("created_us"),
        _moment("revoked_us", nullable=True),
    )
    op.create_index("node_keys_node", "node_keys", ["node"])


def _kept() -> None:
    op.create_table(
        "idempotent_answers",
        _text("actor", primary_key=True),
        _text("idempotency_key", primary_key=True),
        _text("request"),
        _text("answer"),
        _moment("at_us"),
    )
    op.create_index("idempotent_answers_at", "idempotent_answers", ["at_us"])
    op.create_table(
        "login_throttles",
        _text("name", primary_key=True),
        _number("failures"),
        _moment("last_us"),
        _moment("until_us"),
    )
