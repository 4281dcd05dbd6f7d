"""Charges, payments, budgets, invoices and taxes: what tenants owe.

A person's own home keeps these tables empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    _owed()
    _allowed()


def _key(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True, nullable=False) for name in names]


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _owed() -> None:
    op.create_table(
        "charges",
        *_key("charge"),
        *_texts("org", "project", "lease", "rule", "grade", "value"),
        *_big("from_us", "to_us", "nano"),
        sa.Column("invoice", sa.Text),
    )
    op.create_index("charges_lease", "charges", ["lease"])
    op.create_index("charges_org", "charges", ["org", "invoice", "to_us"])
    op.create_index("charges_project", "charges", ["project", "from_us"])
    op.create_table("payments", *_key("payment"), *_texts("org", "value"), *_big("at_us", "nano"))
    op.create_index("payments_org", "payments", ["org", "at_us"])
    op.create_table(
        "invoices",
        *_key("invoice"),
        sa.Column("number", sa.Text, nullable=False, unique=True),
        *_texts("org", "value"),
        *_big("issued_us", "from_us", "to_us"),
    )
    op.create_index("invoices_org", "invoices", ["org", "number"])


def _allowed() -> None:
    op.create_table("budgets", *_key("project"), *_texts("org", "value"))
    op.create_table("sales_taxes", *_key("about"), *_texts("rate"), *_big("since_us"))
    op.create_table(
        "budget_warnings",
        *_key("project", "period"),
        sa.Column("level", sa.Integer, nullable=False),
        *_big("at_us"),
    )
