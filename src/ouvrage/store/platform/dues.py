"""What tenants owe, as rows: charges, payments, budgets, invoices, taxes, warnings.

Decides how they are looked up and summed, not what they mean: a row holds a fact's value as it was stated, and gives it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, Row, Select, func, insert, select, update

from ouvrage.base.grades import grade_of
from ouvrage.books.dues.charging import CREDIT_NOTE, Charged
from ouvrage.books.dues.lease import amount_nano
from ouvrage.books.known import Known
from ouvrage.model.dues import Budget, LeaseCharge, Payment, TenantInvoice
from ouvrage.store.platform.dues_tables import (
    budget_warnings,
    budgets,
    charges,
    invoices,
    payments,
    sales_taxes,
)
from ouvrage.store.platform.json_rows import page, put, text_of, value_of
from ouvrage.store.platform.selling import LeaseRow, lease_row
from ouvrage.store.platform.work import AttemptRow, attempt_row
from ouvrage.store.platform.work_tables import attempts, jobs, leases


def charge_values(each: Charged) -> dict[str, Any]:
    """A charge's row as its columns, without its invoice."""
    value = each.value
    return {
        "charge": value.charge, "org": value.org, "project": value.project, "lease": value.lease,
        "rule": value.rule, "from_us": each.valid_from, "to_us": each.end, "nano": amount_nano(value.amount),
        "grade": each.grade.word, "value": text_of(value),
    }  # fmt: skip


def put_charges(connection: Connection, made: Iterable[Charged]) -> None:
    """Keep new charges."""
    rows = [charge_values(each) for each in made]
    if rows:
        connection.execute(insert(charges), rows)


def _charged(row: Row[Any]) -> Charged:
    return Known(
        value=value_of(LeaseCharge, row.value), valid_from=row.from_us, valid_to=row.to_us,
        grade=grade_of(row.grade), key=row.charge,
    )  # fmt: skip


def _charges(connection: Connection, query: Select[Any]) -> list[Charged]:
    rows = connection.execute(query.order_by(charges.c.from_us, charges.c.charge))
    return [_charged(row) for row in rows]


def charges_of_leases(connection: Connection, ids: Collection[str]) -> list[Charged]:
    """Every charge of some leases."""
    found: list[Charged] = []
    wanted = sorted(set(ids))
    for first in range(0, len(wanted), 500):
        part = wanted[first : first + 500]
        found += _charges(connection, select(charges).where(charges.c.lease.in_(part)))
    return found


def charges_open(connection: Connection, org: str, to_us: int) -> list[Charged]:
    """An organisation's charges up to a moment that stand on no invoice."""
    where = (charges.c.org == org) & charges.c.invoice.is_(None) & (charges.c.to_us <= to_us)
    return _charges(connection, select(charges).where(where))


def charges_on(connection: Connection, invoice: str, org: str) -> list[Charged]:
    """The charges of an invoice."""
    where = (charges.c.org == org) & (charges.c.invoice == invoice)
    return _charges(connection, select(charges).where(where))


def charges_between(
    connection: Connection,
    org: str,
    from_us: int,
    to_us: int,
    projects: Collection[str] | None = None,
) -> list[Charged]:
    """An organisation's charges whose time ended in a period, of some projects (None: all)."""
    where = (charges.c.org == org) & (charges.c.to_us >= from_us) & (charges.c.to_us < to_us)
    query = select(charges).where(where)
    if projects is not None:
        query = query.where(charges.c.project.in_(sorted(projects)))
    return _charges(connection, query)


def charged_before(connection: Connection, org: str, at_us: int) -> int:
    """What an organisation was charged for time that ended before a moment, in nano-units."""
    where = (charges.c.org == org) & (charges.c.to_us < at_us)
    return _sum(connection, select(func.sum(charges.c.nano)).where(where))


def charged_by_org(connection: Connection, from_us: int, to_us: int) -> dict[str, int]:
    """What each organisation was charged for time that ended in a period, in nano-units."""
    ended = (charges.c.to_us >= from_us) & (charges.c.to_us < to_us)
    query = select(charges.c.org, func.sum(charges.c.nano).label("nano")).where(ended)
    return {row.org: int(row.nano) for row in connection.execute(query.group_by(charges.c.org))}


def charged_in_all(connection: Connection, org: str) -> tuple[int, int]:
    """What an organisation was charged, and what of it stands on no invoice, in nano-units."""
    own = select(func.sum(charges.c.nano)).where(charges.c.org == org)
    return _sum(connection, own), _sum(connection, own.where(charges.c.invoice.is_(None)))


def charged_since(connection: Connection, project: str, from_us: int) -> int:
    """What a project's leases cost in charges whose time began at or after a moment, in nano-units."""
    query = select(func.sum(charges.c.nano)).where(
        charges.c.project == project, charges.c.from_us >= from_us, charges.c.rule != CREDIT_NOTE
    )
    return _sum(connection, query)


def charged_to(connection: Connection, lease: str) -> int | None:
    """Until when a lease was charged; None where it never was."""
    query = select(func.max(charges.c.to_us)).where(charges.c.lease == lease)
    return connection.execute(query).scalar_one()


def _sum(connection: Connection, query: Select[Any]) -> int:
    return int(connection.execute(query).scalar_one() or 0)


def put_payment(connection: Connection, payment: Payment, at_us: int) -> None:
    """Keep a payment."""
    connection.execute(insert(payments).values(**payment_values(payment, at_us)))


def payment_values(payment: Payment, at_us: int) -> dict[str, Any]:
    """A payment's row as its columns."""
    return {
        "payment": payment.payment, "org": payment.org, "at_us": at_us,
        "nano": amount_nano(payment.amount), "value": text_of(payment),
    }  # fmt: skip


def payments_of(connection: Connection, org: str, from_us: int, to_us: int) -> list[Known[Payment]]:
    """An organisation's payments in a period."""
    where = (payments.c.org == org) & (payments.c.at_us >= from_us) & (payments.c.at_us < to_us)
    rows = connection.execute(select(payments).where(where).order_by(payments.c.at_us))
    return [payment_row(row) for row in rows]


def payment_row(row: Row[Any]) -> Known[Payment]:
    """A payment as its row states it."""
    return Known(
        value=value_of(Payment, row.value), valid_from=row.at_us, valid_to=row.at_us,
        grade=grade_of("metered"), key=row.payment,
    )  # fmt: skip


def payment_page(
    connection: Connection, orgs: Collection[str] | None, *, limit: int, cursor: str | None
) -> list[Known[Payment]]:
    """Payments of some organisations (None: all), newest first, one more where more follow."""
    query = select(payments)
    if orgs is not None:
        query = query.where(payments.c.org.in_(sorted(orgs)))
    rows = connection.execute(page(query, payments.c.payment, limit=limit, cursor=cursor))
    return [payment_row(row) for row in rows]


def paid_before(connection: Connection, org: str, at_us: int) -> int:
    """What an organisation paid before a moment, in nano-units."""
    query = select(func.sum(payments.c.nano)).where(payments.c.org == org, payments.c.at_us < at_us)
    return _sum(connection, query)


def put_budget(connection: Connection, budget: Budget) -> None:
    """A project's budget from now on."""
    put(connection, budgets, budget_values(budget))


def budget_values(budget: Budget) -> dict[str, Any]:
    """A budget's row as its columns."""
    return {"project": budget.project, "org": budget.org, "value": text_of(budget)}


def budgets_of(connection: Connection, projects: Collection[str]) -> dict[str, Budget]:
    """The budgets of some projects, by project."""
    query = select(budgets).where(budgets.c.project.in_(sorted(set(projects))))
    return {row.project: value_of(Budget, row.value) for row in connection.execute(query)}


def budgets_of_org(connection: Connection, org: str, after: str) -> list[Budget]:
    """The budgets of an organisation's projects, by project, after one."""
    where = (budgets.c.org == org) & (budgets.c.project > after)
    query = select(budgets).where(where).order_by(budgets.c.project)
    return [value_of(Budget, row.value) for row in connection.execute(query)]


def warned(connection: Connection, project: str, period: str) -> int:
    """The highest share of a budget that was told in a period."""
    query = select(budget_warnings.c.level).where(
        budget_warnings.c.project == project, budget_warnings.c.period == period
    )
    return connection.execute(query).scalar() or 0


def put_warned(connection: Connection, project: str, period: str, level: int, at_us: int) -> None:
    """A share of a budget was told."""
    row = {"project": project, "period": period, "level": level, "at_us": at_us}
    put(connection, budget_warnings, row)


def forget_warned(connection: Connection, project: str) -> None:
    """A budget was changed: what is reached of the new one is told anew."""
    connection.execute(
        update(budget_warnings).where(budget_warnings.c.project == project).values(level=0)
    )


def put_invoice(connection: Connection, invoice: TenantInvoice, from_us: int, to_us: int) -> None:
    """Keep an issued invoice, and note on its charges where they stand."""
    connection.execute(insert(invoices).values(**invoice_values(invoice, from_us, to_us)))
    named = list(invoice.charges)
    for first in range(0, len(named), 500):
        part = charges.c.charge.in_(named[first : first + 500])
        connection.execute(update(charges).where(part).values(invoice=invoice.invoice))


def invoice_values(invoice: TenantInvoice, from_us: int, to_us: int) -> dict[str, Any]:
    """An invoice's row as its columns."""
    return {
        "invoice": invoice.invoice, "number": invoice.number, "org": invoice.org, "issued_us": invoice.issued_us,
        "from_us": from_us, "to_us": to_us, "value": text_of(invoice),
    }  # fmt: skip


def _invoice(row: Row[Any]) -> Known[TenantInvoice]:
    return Known(
        value=value_of(TenantInvoice, row.value), valid_from=row.from_us, valid_to=row.to_us,
        grade=grade_of("metered"), key=row.invoice,
    )  # fmt: skip


def invoice_called(connection: Connection, name: str) -> Known[TenantInvoice] | None:
    """The invoice of a number or an id."""
    where = (invoices.c.number == name) | (invoices.c.invoice == name)
    row = connection.execute(select(invoices).where(where)).first()
    return None if row is None else _invoice(row)


def invoices_of(connection: Connection, org: str) -> list[Known[TenantInvoice]]:
    """Every invoice of an organisation in the order of issue."""
    query = select(invoices).where(invoices.c.org == org)
    rows = connection.execute(query.order_by(invoices.c.issued_us, invoices.c.number))
    return [_invoice(row) for row in rows]


def invoice_page(
    connection: Connection, orgs: Collection[str] | None, *, limit: int, cursor: str | None
) -> list[Known[TenantInvoice]]:
    """Invoices of some organisations (None: all), newest first, one more where more follow."""
    query = select(invoices)
    if orgs is not None:
        query = query.where(invoices.c.org.in_(sorted(orgs)))
    rows = connection.execute(page(query, invoices.c.number, limit=limit, cursor=cursor))
    return [_invoice(row) for row in rows]


def issued_in(connection: Connection, year: str) -> int:
    """How many invoices a year's series has."""
    query = select(func.count()).select_from(invoices)
    return connection.execute(query.where(invoices.c.number.startswith(f"{year}-"))).scalar_one()


def put_tax(connection: Connection, about: str, rate: str, since_us: int) -> None:
    """The tax on what is charged to a tenant, or through a channel, from now on."""
    put(connection, sales_taxes, {"about": about, "rate": rate, "since_us": since_us})


def taxes(connection: Connection) -> dict[str, str]:
    """The rates of tax by what they are about, as they stand."""
    rows = connection.execute(select(sales_taxes))
    return {row.about: row.rate for row in rows}


def leases_meeting(
    connection: Connection,
    *,
    org: str | None = None,
    project: str | None = None,
    from_us: int,
    to_us: int,
) -> list[LeaseRow]:
    """Leases of an organisation or project that held at any moment of a period, oldest first."""
    query = select(leases).where(
        leases.c.from_us < to_us, leases.c.ended_us.is_(None) | (leases.c.ended_us >= from_us)
    )
    if org is not None:
        query = query.where(leases.c.org == org)
    if project is not None:
        query = query.where(leases.c.project == project)
    return [
        lease_row(row)
        for row in connection.execute(query.order_by(leases.c.from_us, leases.c.lease))
    ]


def leases_called(connection: Connection, ids: Collection[str]) -> list[LeaseRow]:
    """Some leases."""
    found: list[LeaseRow] = []
    wanted = sorted(set(ids))
    for first in range(0, len(wanted), 500):
        query = select(leases).where(leases.c.lease.in_(wanted[first : first + 500]))
        found += [lease_row(row) for row in connection.execute(query)]
    return found


def attempts_of_leases(connection: Connection, ids: Collection[str]) -> list[AttemptRow]:
    """The attempts in some leases, oldest first."""
    found: list[AttemptRow] = []
    wanted = sorted(set(ids))
    for first in range(0, len(wanted), 500):
        query = select(attempts).where(attempts.c.lease.in_(wanted[first : first + 500]))
        found += [
            attempt_row(row) for row in connection.execute(query.order_by(attempts.c.attempt))
        ]
    return found


def earlier_attempts(
    connection: Connection, org: str, projects: Collection[str] | None, name: str, limit: int
) -> list[AttemptRow]:
    """An organisation's attempts that ended well of jobs of a name, in these projects (None: any), newest first."""
    query = (
        select(attempts)
        .join(jobs, jobs.c.job == attempts.c.job)
        .where(jobs.c.org == org, jobs.c.name == name, attempts.c.outcome == "done")
        .order_by(attempts.c.attempt.desc())
        .limit(limit)
    )
    if projects is not None:
        query = query.where(jobs.c.project.in_(projects))
    return [attempt_row(row) for row in connection.execute(query)]


def attempts_called(connection: Connection, ids: Collection[str]) -> list[AttemptRow]:
    """Some attempts."""
    found: list[AttemptRow] = []
    wanted = sorted(set(ids))
    for first in range(0, len(wanted), 500):
        query = select(attempts).where(attempts.c.attempt.in_(wanted[first : first + 500]))
        found += [attempt_row(row) for row in connection.execute(query)]
    return found
