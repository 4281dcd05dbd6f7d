"""What tenants were invoiced and what they paid, as entries before their accounts have names.

Decides what an invoice moves: what its charges accrued becomes owed, with the tax that is the state's and the difference to whole
cents; and what a payment moves: money received, against what is owed. What a tenant owes is made from the charges and not from the
invoice's own total, so that the law of the balance says something. The journal names the accounts and converts currencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ouvrage.books.dues.lease import amount_nano
from ouvrage.books.dues.record import DuesRecord
from ouvrage.books.known import Known

RECEIVABLE, ACCRUED, TAX, ROUNDING, RECEIVED = (
    "receivable",
    "accrued",
    "tax",
    "rounding",
    "received",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """``nano`` of the entry's currency on an account: its sort, and whose it is (a tenant's or a channel's name)."""

    sort: str
    name: str
    nano: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantEntry:
    """Legs that add up to nothing at a moment, and the fact behind them."""

    at_us: int
    text: str
    currency: str
    legs: tuple[Leg, ...]
    known: Known[Any]


def tenant_entries(record: DuesRecord) -> Iterator[TenantEntry]:
    """The entries of every invoice and payment, in order of time."""
    yield from sorted([*_invoices(record), *_payments(record)], key=lambda e: (e.at_us, e.text))


def owed(record: DuesRecord, entries: Iterable[TenantEntry]) -> dict[str, int]:
    """What each organisation owes by the postings, in nano-units of its own currency; below zero: it has paid ahead."""
    sums = {each.name: 0 for each in record.organisations.values()}
    for entry in entries:
        for leg in entry.legs:
            if leg.sort == RECEIVABLE:
                sums[leg.name] = sums.get(leg.name, 0) + leg.nano
    return sums


def _name(record: DuesRecord, org: str) -> str:
    found = record.organisations.get(org)
    return found.name if found else org


def _invoices(record: DuesRecord) -> Iterator[TenantEntry]:
    channels = {each.lease: each.offer.channel for each in record.leases}
    charges = {each.value.charge: each.value for each in record.charges}
    for each in record.invoices:
        value, sums = each.value, dict[str, int]()
        for name in value.charges:
            charge = charges.get(name)
            if charge is not None:
                channel = channels.get(charge.lease, "own")
                sums[channel] = sums.get(channel, 0) + amount_nano(charge.amount)
        tax, rounding = amount_nano(value.tax), amount_nano(value.rounding)
        tenant = _name(record, value.org)
        legs = [
            Leg(sort=RECEIVABLE, name=tenant, nano=sum(sums.values()) + tax + rounding),
            *(Leg(sort=ACCRUED, name=channel, nano=-nano) for channel, nano in sums.items()),
            Leg(sort=TAX, name="", nano=-tax),
            Leg(sort=ROUNDING, name="", nano=-rounding),
        ]
        sort = "credit note" if value.credits else "invoice"
        yield TenantEntry(
            at_us=value.issued_us, text=f"{sort} {value.number} to {tenant}", currency=value.currency,
            legs=tuple(leg for leg in legs if leg.nano), known=each,
        )  # fmt: skip


def _payments(record: DuesRecord) -> Iterator[TenantEntry]:
    for each in record.payments:
        nano, tenant = amount_nano(each.value.amount), _name(record, each.value.org)
        yield TenantEntry(
            at_us=each.valid_from, text=f"payment {each.value.reference} of {tenant}".replace("  ", " "),
            currency=each.value.currency, known=each,
            legs=(
                Leg(sort=RECEIVED, name=tenant, nano=nano),
                Leg(sort=RECEIVABLE, name=tenant, nano=-nano),
            ),
        )  # fmt: skip
