"""A tenant's invoice: every charge of a period with the rule that made it, the work it bought, tax and total.

Decides which charges are on it (those that no invoice has yet), that its lines add up to the nano-unit and the difference to
whole cents is a line of its own, and that nothing simulated is ever asked for. A draft may be made at any time, and shows what
still runs beside the total; an issued invoice is made again from its own charges alone. Words and languages are the page's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, decimal_text, number
from ouvrage.books.dues.account import running_nano
from ouvrage.books.dues.charging import Charged, credits_of
from ouvrage.books.dues.lease import amount_nano, amount_text
from ouvrage.books.dues.record import DuesRecord
from ouvrage.books.known import Known
from ouvrage.books.period import Period, day_of, next_month
from ouvrage.model.dues import TenantInvoice

NO_CENTS = frozenset(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"))  # fmt: skip
THOUSANDTHS = frozenset(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"))
"""Currencies without cents, and with a thousand parts: ISO 4217's minor units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Units that an attempt finished, by its run."""

    unit: str
    finished: int
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class InvoiceLine:
    """One charge on an invoice. ``job_name`` is None for a lease of a term;."""

    charge: str
    project: str
    job: str | None
    job_name: str | None
    lease: str
    attempt: str | None
    offer: str
    from_us: int
    to_us: int
    rule: str
    words: str
    price: str | None
    quantity: Fraction
    unit: str
    nano: int
    credits: str | None
    grade: Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLine:
    """What was bought for the money: a job, or what was leased for a term (``job`` None), with the time that was paid.

    ``finished`` is None where nobody counted units, and then there is no cost per unit.
    """

    project: str
    job: str | None
    name: str
    us: int
    nano: int
    unit: str | None
    finished: int | None
    grade: Grade

    @property
    def per_unit(self) -> Fraction | None:
        """Nano-units of money for each unit finished."""
        return Fraction(self.nano, self.finished) if self.finished else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbilled:
    """An attempt or lease that was held and is not charged, and why."""

    project: str
    job_name: str | None
    lease: str
    us: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """An invoice or a draft of one (``number`` None). Amounts in nano-units.

    ``tax`` and ``total`` are None where the owner states no rate of tax. ``running`` is what leases cost beyond their charges at
    ``as_of``, in a draft alone; ``projects`` are sums by project; ``prepaid`` is what was paid and not taken by an earlier
    invoice. ``grade`` is the weakest of the charges'.
    """

    org: str
    name: str
    issuer: str
    currency: str
    period: Period
    number: str | None
    issued_us: int | None
    corrects: str | None
    lines: tuple[InvoiceLine, ...]
    work: tuple[WorkLine, ...]
    unbilled: tuple[Unbilled, ...]
    projects: tuple[tuple[str, int], ...]
    rounding: int
    net: int
    tax_rate: Fraction | None
    tax: int | None
    total: int | None
    running: int
    prepaid: int
    grade: Grade
    as_of: int

    @property
    def due(self) -> int | None:
        """What is still to be paid of it: nothing of a credit note, or where enough was paid before."""
        return None if self.total is None else max(0, self.total - max(0, self.prepaid))

    @property
    def too_small(self) -> bool:
        """Whether there are charges, and together less than can be paid: they stay open, for the next invoice."""
        return bool(self.lines) and self.net == 0 and self.charged > 0 and self.corrects is None

    @property
    def charged(self) -> int:
        """The sum of the lines, before rounding."""
        return sum(line.nano for line in self.lines)


def cents(currency: str) -> int:
    """Decimal places that amounts of a currency are paid in."""
    return 0 if currency in NO_CENTS else 3 if currency in THOUSANDTHS else 2


def to_pay(nano: Fraction | int, currency: str) -> int:
    """An amount in nano-units that can be paid: whole cents, half away from zero."""
    step = NANO // 10 ** cents(currency)
    whole, rest = divmod(abs(Fraction(nano)), step)
    return (int(whole) + (2 * rest >= step)) * step * (-1 if nano < 0 else 1)


def open_charges(record: DuesRecord, org: str, period: Period) -> list[Charged]:
    """The charges of an organisation up to the end of a period that stand on no invoice yet."""
    invoiced = {name for each in record.invoices for name in each.value.charges}
    return [
        each
        for each in record.charges
        if each.value.org == org and each.end <= period.to_us and each.value.charge not in invoiced
    ]


def draft(
    record: DuesRecord, org: str, period: Period, units: Mapping[str, Counted], at_us: int
) -> Invoice:
    """The invoice of an organisation as it would be issued now. ``units`` are those counted, by attempt."""
    end = min(at_us, period.to_us)
    held = [each for each in record.leases if each.org == org and each.from_us < end]
    before = [each for each in record.charges if each.value.org == org and each.end <= end]
    return _made(
        record, org, period, open_charges(record, org, period), units, None,
        running=running_nano(held, before, end), at_us=at_us,
    )  # fmt: skip


def issued(
    record: DuesRecord, invoice: Known[TenantInvoice], units: Mapping[str, Counted]
) -> Invoice:
    """An issued invoice again, from the charges that it names."""
    value = invoice.value
    named = set(value.charges)
    charges = [each for each in record.charges if each.value.charge in named]
    first, after = day_of(invoice.valid_from, "UTC"), day_of(invoice.end, "UTC")
    name = (
        f"{first:%Y-%m}" if after == next_month(first) and first.day == 1 else f"{first}..{after}"
    )
    period = Period(from_us=invoice.valid_from, to_us=invoice.end, zone="UTC", name=name)
    return _made(record, value.org, period, charges, units, value, running=0, at_us=value.issued_us)


def _made(
    record: DuesRecord,
    org: str,
    period: Period,
    charges: Sequence[Charged],
    units: Mapping[str, Counted],
    value: TenantInvoice | None,
    *,
    running: int,
    at_us: int,
) -> Invoice:
    organisation = record.organisations[org]
    lines = tuple(_lines(record, charges))
    exact = sum(line.nano for line in lines)
    rate = _rate(record, org, charges, at_us) if value is None else number(value.tax_rate)
    net = to_pay(exact, organisation.currency)
    tax = None if rate is None else to_pay(net * rate, organisation.currency)
    owner = next((o.name for o in record.organisations.values() if o.side == "owner"), "")
    return Invoice(
        org=org, name=organisation.name, issuer=owner, currency=organisation.currency, period=period,
        number=value.number if value else None, issued_us=value.issued_us if value else None,
        corrects=value.credits if value else None, lines=lines,
        work=tuple(_work(record, lines, units)),
        unbilled=() if value and value.credits else tuple(_unbilled(record, org, period)),
        projects=tuple(_projects(lines)), rounding=net - exact, net=net, tax_rate=rate, tax=tax,
        total=None if tax is None else net + tax, running=running, prepaid=_prepaid(record, org, value, at_us),
        grade=max((line.grade for line in lines), default=Grade.METERED), as_of=at_us,
    )  # fmt: skip


def _rate(record: DuesRecord, org: str, charges: Sequence[Charged], at_us: int) -> Fraction | None:
    """The one rate of tax of the channels that the charges came through; None where one has none."""
    ours = {each.value.lease for each in charges}
    channels = {each.offer.channel for each in record.leases if each.lease in ours} or {"own"}
    name = record.organisations[org].name
    rates = {record.tax_rate(name, channel, at_us) for channel in channels}
    return rates.pop() if len(rates) == 1 else None


def _lines(record: DuesRecord, charges: Iterable[Charged]) -> Iterable[InvoiceLine]:
    leases = {each.lease: each for each in record.leases}
    for each in sorted(charges, key=_in_order):
        value, lease = each.value, leases.get(each.value.lease)
        project = record.projects.get(value.project)
        yield InvoiceLine(
            charge=value.charge, project=project.name if project else value.project, job=value.job,
            job_name=_job_name(record, value.job), lease=value.lease, attempt=value.attempt,
            offer=lease.offer.name if lease else "", from_us=each.valid_from, to_us=each.end,
            rule=value.rule, words=value.words, price=value.price, quantity=number(value.quantity),
            unit=value.unit, nano=amount_nano(value.amount), credits=value.credits, grade=each.grade,
        )  # fmt: skip


def _in_order(each: Charged) -> tuple[str, int, str, bool, str]:
    """A lease's charges stand together, what was given back of them after them."""
    value = each.value
    return (
        value.project,
        each.valid_from,
        value.lease,
        value.credits is not None,
        value.rule,
    )


def _job_name(record: DuesRecord, job: str | None) -> str | None:
    found = record.jobs.get(job or "")
    return found.spec.name if found else None


def _work(
    record: DuesRecord, lines: Sequence[InvoiceLine], units: Mapping[str, Counted]
) -> Iterable[WorkLine]:
    groups: dict[tuple[str, str], list[InvoiceLine]] = {}
    for line in lines:
        groups.setdefault((line.project, line.job or line.lease), []).append(line)
    for (project, _), ours in groups.items():
        first = ours[0]
        spans = {(x.lease, x.from_us, x.to_us) for x in ours if not x.credits}
        attempts = {x.attempt for x in ours if x.attempt} or {
            each.attempt for each in record.inside.get(first.lease, ())
        }
        counted = [units[name] for name in sorted(attempts) if name in units]
        names = {each.unit for each in counted}
        one = names.pop() if len(names) == 1 else None
        yield WorkLine(
            project=project, job=first.job, name=first.job_name or first.offer,
            us=sum(end - begin for _, begin, end in spans), nano=sum(x.nano for x in ours), unit=one,
            finished=sum(each.finished for each in counted) if one else None,
            grade=max([*(x.grade for x in ours), *(each.grade for each in counted)]),
        )  # fmt: skip


def _unbilled(record: DuesRecord, org: str, period: Period) -> Iterable[Unbilled]:
    for each in record.leases:
        ended = each.ended
        if each.org != org or ended is None or not each.unbilled:
            continue
        if period.from_us <= ended.at_us < period.to_us:
            project = record.projects.get(each.project)
            yield Unbilled(
                project=project.name if project else each.project, job_name=_job_name(record, each.job),
                lease=each.lease, us=each.held_us(ended.at_us), why=ended.outcome or "not charged",
            )  # fmt: skip


def _projects(lines: Iterable[InvoiceLine]) -> Iterable[tuple[str, int]]:
    sums: dict[str, int] = {}
    for line in lines:
        sums[line.project] = sums.get(line.project, 0) + line.nano
    return sums.items()


def _prepaid(record: DuesRecord, org: str, value: TenantInvoice | None, at_us: int) -> int:
    """What was paid and no earlier invoice has taken; below zero where earlier ones are not paid."""
    paid = sum(
        amount_nano(each.value.amount)
        for each in record.payments
        if each.value.org == org and each.valid_from <= at_us
    )
    earlier = [
        each.value for each in record.invoices
        if each.value.org == org and (value is None or each.value.number < value.number)
    ]  # fmt: skip
    return paid - sum(amount_nano(each.total) for each in earlier)


def next_number(invoices: Iterable[TenantInvoice], issued_us: int) -> str:
    """The number after the last of the year: ``2026-0001``, ``2026-0002``; one series for all tenants."""
    year = day_of(issued_us, "UTC").year
    taken = [each.number for each in invoices if each.number.startswith(f"{year}-")]
    return number_of(year, len(taken) + 1)


def number_of(year: int, place: int) -> str:
    """The number of the invoice in this place of its year."""
    return f"{year}-{place:04d}"


def to_issue(
    found: Invoice, invoices: Iterable[TenantInvoice], invoice: str, issued_us: int
) -> TenantInvoice:
    """The fact that issues a draft. Raises ``OuvrageError`` ``invoice/...`` where it can't be issued."""
    if not found.lines:
        raise OuvrageError(
            "invoice/empty", f"{found.name} has nothing to be invoiced in {found.period.name}",
            hint="ouvrage usage shows what was charged and when",
        )  # fmt: skip
    if found.too_small:
        raise OuvrageError(
            "invoice/below-a-cent",
            f"{found.name} was charged {amount_text(found.charged)} {found.currency} in {found.period.name}, less than can be paid",
            hint="nothing is lost: its charges stay open and go onto the next invoice",
        )  # fmt: skip
    if found.grade is Grade.SIMULATED:
        made_up = [line.charge for line in found.lines if line.grade is Grade.SIMULATED]
        raise OuvrageError(
            "invoice/simulated", f"{len(made_up)} charges are simulated: they can never be invoiced",
            where=tuple(made_up[:5]), hint="a demonstration's charges belong in a store of their own",
        )  # fmt: skip
    if found.tax_rate is None or found.tax is None or found.total is None:
        raise OuvrageError(
            "invoice/tax-not-stated", "nobody states the tax on what tenants are charged",
            hint="ouvrage invoice tax 0.20, or 0 where there is none; --tenant NAME for one alone",
        )  # fmt: skip
    return TenantInvoice(
        invoice=invoice, number=next_number(invoices, issued_us), issued_us=issued_us, org=found.org,
        currency=found.currency, rounding=amount_text(found.rounding), net=amount_text(found.net),
        tax=amount_text(found.tax), tax_rate=decimal_text(found.tax_rate), total=amount_text(found.total),
        charges=tuple(line.charge for line in found.lines), credits=found.corrects,
    )  # fmt: skip


def credits_for(
    record: DuesRecord, invoice: TenantInvoice, why: str, only: Sequence[str] = ()
) -> list[Charged]:
    """The credits that give back an invoice's charges, or ``only`` some of them, as far as nothing gave them back.

    Raises ``OuvrageError`` ``invoice/nothing-left`` where all was given back before.
    """
    found = credits_of(record.charges, why, set(only or invoice.charges) & set(invoice.charges))
    if not found:
        raise OuvrageError(
            "invoice/nothing-left", f"nothing of invoice {invoice.number} is left to give back",
            hint="ouvrage invoice show NUMBER lists its charges",
        )  # fmt: skip
    return found


def credit_note(
    record: DuesRecord, corrected: Known[TenantInvoice], credits: Sequence[Charged], at_us: int
) -> Invoice:
    """The draft of the note that issues some credits of an invoice, at the tax of that invoice."""
    period = Period(
        from_us=corrected.valid_from, to_us=corrected.end, zone="UTC", name=f"invoice {corrected.value.number}"
    )  # fmt: skip
    value = corrected.value
    pretended = TenantInvoice(
        invoice="", number="", issued_us=at_us, org=value.org, currency=value.currency, rounding="0", net="0",
        tax="0", tax_rate=value.tax_rate, total="0", charges=(), credits=value.invoice,
    )  # fmt: skip
    return _made(record, value.org, period, credits, {}, pretended, running=0, at_us=at_us)
