"""What tenants of a platform owe its owner: charged and not invoiced, invoiced and not paid, paid and not seen in a bank.

Decides that what a tenant paid settles its invoices in the order of their numbers, a credit note first of all the invoice that it
corrects, and that a payment which the platform recorded is a claim on the bank until one of its lines shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, number
from ouvrage.books.bank_items import Item, lasting, words_of_number
from ouvrage.books.dues.lease import amount_nano
from ouvrage.books.dues.record import DuesRecord
from ouvrage.books.known import Known
from ouvrage.books.period import Period
from ouvrage.books.reconcile_payouts import Earned, Owing
from ouvrage.books.record import OwnerRecord
from ouvrage.model.dues import TenantInvoice

Unpaid = tuple[Known[TenantInvoice], str, Fraction]
"""An invoice, its tenant's name, and what is still owed of it."""


def tenant_owing(record: OwnerRecord, period: Period) -> Iterator[Owing]:
    """What each tenant was charged by the end of a period that stands on no invoice."""
    tenants = record.tenants
    invoiced = {
        name
        for each in tenants.invoices
        if each.value.issued_us < period.to_us
        for name in each.value.charges
    }
    for org in tenants.organisations.values():
        ours = [
            each for each in tenants.charges
            if each.value.org == org.org and each.end <= period.to_us and each.value.charge not in invoiced
        ]  # fmt: skip
        nano = sum(amount_nano(each.value.amount) for each in ours)
        if nano > 0 and org.side == "tenant":
            earned = Earned(
                gross=Fraction(nano, NANO), fee=Fraction(0), grade=max(each.grade for each in ours),
                keys=tuple(each.key for each in ours),
            )  # fmt: skip
            yield Owing(
                channel=org.name, currency=org.currency, since_us=min(e.valid_from for e in ours),
                earned=earned, why="charged, and on no invoice yet",
            )  # fmt: skip


def unpaid(tenants: DuesRecord, at_us: int) -> Iterator[Unpaid]:
    """The invoices that what was paid by a moment does not cover, oldest first."""
    for org in tenants.organisations.values():
        mine = [e for e in tenants.invoices if e.value.org == org.org and e.value.issued_us < at_us]
        credit = _credited(mine)
        paid = [e for e in tenants.payments if e.value.org == org.org and e.valid_from < at_us]
        left = sum(amount_nano(each.value.amount) for each in paid)
        for each in mine:
            total = amount_nano(each.value.total) - credit.get(each.value.invoice, 0)
            if each.value.credits or total <= 0:
                continue
            owed = total - min(max(left, 0), total)
            left -= total
            if owed:
                yield each, org.name, Fraction(owed, NANO)


def _credited(invoices: Iterable[Known[TenantInvoice]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in invoices:
        if each.value.credits:
            back = -amount_nano(each.value.total)
            found[each.value.credits] = found.get(each.value.credits, 0) + back
    return found


def invoice_name(value: TenantInvoice) -> str:
    """``invoice/own/2026-0001``: how a person calls an invoice of the platform."""
    return f"invoice/own/{value.number}"


def paid_items(record: OwnerRecord) -> Iterator[Item]:
    """What tenants paid as the platform recorded it, to be found in the bank."""
    for each in record.tenants.payments:
        value = each.value
        org = record.tenants.organisations.get(value.org)
        name = org.name if org else value.org
        yield Item(
            name=f"payment/{name}/{value.reference or value.payment}", sort="payment", who=name,
            words=f"payment {value.reference} of {name}", amount=number(value.amount), less=Fraction(0),
            currency=value.currency, day_us=each.valid_from, due_us=None,
            numbers=words_of_number(value.reference), names=frozenset([name.lower()]), text="",
            key=each.key, fact=each.key, lasting=lasting(each.key), grade=max(each.grade, Grade.METERED),
        )  # fmt: skip
