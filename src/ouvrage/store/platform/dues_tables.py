"""The tables of what tenants owe: charges, payments, budgets, invoices, taxes, and what was told of budgets.

Decides what is summed by the database (whole nano-units beside each exact text) and what is unique: an invoice's number, and the one
invoice of a charge. All but ``budget_warnings`` follow from facts and are compared with them by ``ouvrage verify``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from ouvrage.store.schema import metadata

charges = Table(
    "charges",
    metadata,
    Column("charge", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("lease", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("to_us", BigInteger, nullable=False),
    Column("nano", BigInteger, nullable=False),
    Column("grade", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("invoice", Text),
    Index("charges_lease", "lease"),
    Index("charges_org", "org", "invoice", "to_us"),
    Index("charges_project", "project", "from_us"),
)

payments = Table(
    "payments",
    metadata,
    Column("payment", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("nano", BigInteger, nullable=False),
    Column("value", Text, nullable=False),
    Index("payments_org", "org", "at_us"),
)

budgets = Table(
    "budgets",
    metadata,
    Column("project", Text, primary_key=True),
    Column("org", Text, nullable=False),
    Column("value", Text, nullable=False),
)

invoices = Table(
    "invoices",
    metadata,
    Column("invoice", Text, primary_key=True),
    Column("number", Text, nullable=False, unique=True),
    Column("org", Text, nullable=False),
    Column("issued_us", BigInteger, nullable=False),
    Column("from_us", BigInteger, nullable=False),
    Column("to_us", BigInteger, nullable=False),
    Column("value", Text, nullable=False),
    Index("invoices_org", "org", "number"),
)

sales_taxes = Table(
    "sales_taxes",
    metadata,
    Column("about", Text, primary_key=True),
    Column("rate", Text, nullable=False),
    Column("since_us", BigInteger, nullable=False),
)

budget_warnings = Table(
    "budget_warnings",
    metadata,
    Column("project", Text, primary_key=True),
    Column("period", Text, primary_key=True),
    Column("level", Integer, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)
"""The highest share of a budget that was told in a period, so that nobody is told twice."""
