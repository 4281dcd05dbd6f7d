"""The tables of what tenants owe as the facts give them, to hold against what the tables hold.

Decides nothing: each row follows from one fact, and where a charge stands follows from the invoices. ``ouvrage verify`` compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, delete, insert, select

from ouvrage.books.dues.record import SALES_TAX
from ouvrage.books.known import Known
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.model.dues import Budget, LeaseCharge, Payment, TenantInvoice
from ouvrage.model.sites import Term
from ouvrage.store.engine import reading, told, writing
from ouvrage.store.platform.dues import (
    budget_values,
    charge_values,
    invoice_values,
    payment_values,
)
from ouvrage.store.platform.dues_tables import budgets, charges, invoices, payments, sales_taxes
from ouvrage.store.platform.rebuild import as_given
from ouvrage.store.store import Store, wait_for_head

Rows = dict[tuple[str, str], dict[str, Any]]
_TABLES: tuple[tuple[Table, str], ...] = (
    (charges, "charge"),
    (payments, "payment"),
    (budgets, "project"),
    (invoices, "invoice"),
    (sales_taxes, "about"),
)
_KINDS = frozenset(kind.KIND for kind in (LeaseCharge, Payment, Budget, TenantInvoice, Term))


def rows_given(records: Sequence[Recorded]) -> Rows:
    """By table and key, the row that the facts give."""
    rows: Rows = {}
    for entry in records:
        if entry.fact.kind in _KINDS:
            _place(rows, entry, read(entry.fact))
    for (table, _), row in list(rows.items()):
        if table == "invoices":
            for charge in row.pop("charges"):
                if ("charges", charge) in rows:
                    rows["charges", charge]["invoice"] = row["invoice"]
    return rows


def _place(rows: Rows, entry: Recorded, value: Any) -> None:
    fact = entry.fact
    begins, ends = fact.valid_from, fact.valid_to or fact.valid_from
    if isinstance(value, LeaseCharge):
        known = Known(value=value, valid_from=begins, valid_to=ends, grade=fact.grade, key=fact.key)
        rows["charges", value.charge] = {**charge_values(known), "invoice": None}
    elif isinstance(value, Payment):
        rows["payments", value.payment] = payment_values(value, begins)
    elif isinstance(value, Budget):
        rows["budgets", value.project] = budget_values(value)
    elif isinstance(value, TenantInvoice):
        row = invoice_values(value, begins, ends)
        rows["invoices", value.invoice] = {**row, "charges": value.charges}
    elif isinstance(value, Term) and value.name == SALES_TAX:
        row = {"about": value.about, "rate": value.value, "since_us": begins}
        rows["sales_taxes", value.about] = row


def rows_held(store: Store) -> Rows:
    """By table and key, the row that the tables hold."""
    held: Rows = {}
    with reading(store.engine) as connection:
        for table, key in _TABLES:
            for row in connection.execute(select(table)):
                values = dict(row._mapping)
                held[table.name, values[key]] = values
    return held


def dues_law(store: Store) -> Law:
    """The law that the tables are what the facts give."""

    return as_given(
        "store/dues",
        "charges, payments, budgets, invoices and taxes in tables are what the facts state",
        rows_given,
        lambda: rows_held(store),
    )


def rebuild_odd_dues(store: Store) -> bool:
    """Make the tables anew where they are not what the facts give; whether they were not."""
    given = rows_given(store.records())
    if given == rows_held(store):
        return False
    with told(store.engine), writing(store.engine) as connection:
        wait_for_head(connection)
        for table, _ in _TABLES:
            connection.execute(delete(table))
            rows = [row for (name, _), row in given.items() if name == table.name]
            if rows:
                connection.execute(insert(table), rows)
    return True
