"""Three pairs of records that should agree: meter and bill, record and payout, what is owed and the bank.

Decides what a reconciliation of a period holds and that each of its sides adds up: every document is
paid or open, every line of the bank matched or not. Nothing in the books is changed by it; a difference
stays one until somebody states what was wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.time import DAY
from ouvrage.books.bank_items import Item
from ouvrage.books.differences import Difference
from ouvrage.books.period import Period
from ouvrage.books.reconcile_bank import Banked, Open, banked, in_period
from ouvrage.books.reconcile_meter import meter_differences, unbilled
from ouvrage.books.reconcile_payouts import Owing, owing, payout_differences
from ouvrage.books.reconcile_tenants import invoice_name, tenant_owing, unpaid
from ouvrage.books.record import OwnerRecord
from ouvrage.books.spans import Span

AGES = (30, 60, 90)
"""Ends of the classes of age of what is owed, in days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """One part of a side of the bank's reconciliation: ``all`` = ``matched`` + ``open``.

    ``what`` is ``invoices``, ``payments`` (of tenants) or ``bills`` of the documents, ``came`` or ``left`` of the bank's lines.
    """

    what: str
    currency: str
    all: Fraction
    matched: Fraction
    open: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """What somebody owes the owner (or is owed, negative): since when, how many days, for what."""

    who: str
    currency: str
    amount: Fraction
    since_us: int
    days: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """A period's reconciliation. ``documents`` and ``lines`` are the two sides' sums by currency."""

    period: Period
    energy: tuple[Difference, ...]
    unbilled: tuple[Span, ...]
    payouts: tuple[Difference, ...]
    owing: tuple[Owing, ...]
    bank: Banked
    documents: tuple[Total, ...]
    lines: tuple[Total, ...]
    debts: tuple[Debt, ...]

    @property
    def receivables(self) -> tuple[Debt, ...]:
        """What is owed to the owner."""
        return tuple(debt for debt in self.debts if debt.amount > 0)


def reconciled(record: OwnerRecord, site: str, period: Period) -> Reconciled:
    """The reconciliation of a site's period, by everything that is known.

    What channels owe and what the bank shows is the owner's, and told with the first site alone.
    """
    first = not record.sites or record.sites[0].value.site == site
    whole = banked(record) if first else Banked()
    bank = in_period(whole, period)
    return Reconciled(
        period=period,
        energy=tuple(meter_differences(record, site, period)),
        unbilled=tuple(unbilled(record, site, period)),
        payouts=tuple(payout_differences(record, period)) if first else (),
        owing=(*owing(record, period), *tenant_owing(record, period)) if first else (),
        bank=bank,
        documents=tuple(document_totals(whole, period)),
        lines=tuple(line_totals(whole, period)),
        debts=tuple(_debts(record, bank.open, record.as_of or period.to_us, period)),
    )


def document_totals(found: Banked, period: Period) -> Iterator[Total]:
    """What the documents of a period come to, by currency: paid, and open."""
    every = {i.key: i for m in found.matches for i in m.claims}
    every |= {each.item.key: each.item for each in found.open}
    open_: dict[str, Fraction] = {}
    for each in found.open:
        open_[each.item.key] = open_.get(each.item.key, Fraction(0)) + each.amount
    yield from _totals(every.values(), open_, period, ("invoices", "bills"))


def line_totals(found: Banked, period: Period) -> Iterator[Total]:
    """What the bank's lines of a period come to, by currency: matched, and not."""
    every = {i.key: i for m in found.matches for i in m.lines}
    every |= {each.item.key: each.item for each in found.unmatched}
    left = {each.item.key: each.amount for each in found.unmatched}
    yield from _totals(every.values(), left, period, ("came", "left"))


def _totals(
    items: Iterable[Item], open_: dict[str, Fraction], period: Period, names: tuple[str, str]
) -> Iterator[Total]:
    sums: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
    for item in items:
        if period.from_us <= item.day_us < period.to_us:
            told = "payments" if item.sort == "payment" else names[0 if item.amount > 0 else 1]
            key = (item.currency, told)
            whole, left = sums.get(key, (Fraction(0), Fraction(0)))
            sums[key] = (whole + item.amount, left + open_.get(item.key, Fraction(0)))
    for (currency, what), (whole, left) in sorted(sums.items()):
        yield Total(what=what, currency=currency, all=whole, matched=whole - left, open=left)


def _debts(record: OwnerRecord, open_: Sequence[Open], at_us: int, period: Period) -> list[Debt]:
    """Documents that are not paid. A payment that a bank does not show is no debt."""
    tenants = [
        Debt(
            who=who, currency=each.value.currency, amount=amount, since_us=each.value.issued_us,
            days=max(0, (at_us - each.value.issued_us) // DAY), name=invoice_name(each.value),
        )
        for each, who, amount in unpaid(record.tenants, period.to_us)
    ]  # fmt: skip
    found = tenants + [
        Debt(
            who=each.item.who, currency=each.item.currency, amount=each.amount,
            since_us=each.item.day_us, days=max(0, (at_us - each.item.day_us) // DAY),
            name=each.item.name,
        )
        for each in open_
        if each.item.sort != "payment"
    ]  # fmt: skip
    return sorted(found, key=lambda debt: (-debt.days, debt.name))


def age_class(days: int) -> str:
    """``up to 30 days``, ``31 to 60 days``, …, ``over 90 days``."""
    before = 0
    for end in AGES:
        if days <= end:
            return f"{before + 1} to {end} days" if before else f"up to {end} days"
        before = end
    return f"over {before} days"
