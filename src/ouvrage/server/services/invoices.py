"""Invoices: drafted at any time, issued once, shown the same for ever, corrected by credit notes.

Decides which rows an invoice is made of, that issuing first records every charge that is due, and that the number is taken in the same
transaction as the invoice, so that the series has no gap. What stands on it is decided by ``books.dues.invoice``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import utc_text
from ouvrage.books.dues.charging import Charged
from ouvrage.books.dues.invoice import (
    Counted,
    Invoice,
    credit_note,
    credits_for,
    draft,
    issued,
    number_of,
    to_issue,
)
from ouvrage.books.dues.invoice_json import invoice_json
from ouvrage.books.dues.record import SALES_TAX, DuesRecord
from ouvrage.books.known import FOR_EVER, Known
from ouvrage.books.period import Period, day_of
from ouvrage.console.invoice_view import Letterhead, Shown, shown
from ouvrage.console.invoice_words import language
from ouvrage.model.dues import TenantInvoice
from ouvrage.model.sites import Term
from ouvrage.model.tenancy import Organisation
from ouvrage.model.work import AttemptOrdered, JobSubmitted
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unknown
from ouvrage.server.recording import record, stated
from ouvrage.server.services.billing import ZONE, billed, charge, keep, period_asked
from ouvrage.server.services.counted import counted
from ouvrage.server.services.naming import organisation_meant, owner
from ouvrage.server.services.payments import orgs_paying
from ouvrage.store.platform.dues import (
    attempts_of_leases,
    charges_of_leases,
    charges_on,
    charges_open,
    invoice_called,
    invoice_page,
    invoices_of,
    issued_in,
    leases_called,
    leases_meeting,
    payments_of,
    put_invoice,
    put_tax,
    taxes,
)
from ouvrage.store.platform.tenancy import list_projects, organisation_of
from ouvrage.store.platform.work import AttemptRow, jobs_by_id
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.dues import (
    InvoiceListed,
    InvoiceShown,
    InvoiceTold,
    NewCredit,
    NewInvoice,
    NewTax,
    SumShown,
    TableShown,
    TaxTold,
)

LETTERHEADS = "letterheads"
"""The folder in the state directory with a text file for each organisation that has one, called by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An invoice, who it is to, and the number of the invoice that it corrects."""

    invoice: Invoice
    org: Organisation
    corrects: str | None


def drafted(platform: Platform, actor: Actor, org: str | None, period: str | None) -> Made:
    """The invoice of an organisation as it would be issued now, with what still runs beside it."""
    now = platform.clock()
    asked = period_asked(period, now)
    with platform.reading() as connection:
        found = organisation_meant(connection, actor, org)
        authorise(actor, "invoice.read", org=found.org)
        made = _draft(platform, connection, found, asked, now)
    return Made(invoice=made, org=found, corrects=None)


def _draft(
    platform: Platform, connection: Connection, org: Organisation, period: Period, now_us: int
) -> Invoice:
    end = min(now_us, period.to_us)
    open_ = charges_open(connection, org.org, period.to_us)
    going = leases_meeting(
        connection, org=org.org, from_us=max(period.from_us, 0), to_us=max(end, 1)
    )
    names = {each.value.lease for each in open_} | {row.lease for row in going}
    found, units = _record(platform, connection, org, names, ())
    return draft(found, org.org, period, units, now_us)


def _record(
    platform: Platform,
    connection: Connection,
    org: Organisation,
    leases: set[str],
    charges: Sequence[Charged],
) -> tuple[DuesRecord, dict[str, Counted]]:
    """The part of the record that an invoice needs: some leases with all their charges, and what was paid."""
    rows = leases_called(connection, leases)
    attempts = attempts_of_leases(connection, leases)
    jobs = jobs_by_id(connection, [each.job for each in attempts])
    inside: dict[str, list[AttemptOrdered]] = {}
    for each in attempts:
        inside.setdefault(each.lease, []).append(_ordered(each))
    projects = list_projects(connection, orgs=[org.org], within=None, after="", limit=100_000)
    host = owner(connection)
    found = DuesRecord(
        organisations={org.org: org, host.org: host},
        projects={each.project: each for each in projects},
        nodes={},
        jobs={
            job: JobSubmitted(
                job=job, org=row.org, project=row.project, user=row.user_id, offer=row.offer,
                lease=row.lease, spec=row.spec,
            )
            for job, row in jobs.items()
        },
        attempts={},
        inside={lease: tuple(found) for lease, found in inside.items()},
        leases=tuple(billed(connection, rows)),
        unpriced=(),
        charges=tuple({e.key: e for e in (*charges_of_leases(connection, leases), *charges)}.values()),
        payments=tuple(payments_of(connection, org.org, 0, FOR_EVER)),
        budgets={},
        invoices=tuple(invoices_of(connection, org.org)),
        terms=tuple(_term(about, rate) for about, rate in taxes(connection).items()),
    )  # fmt: skip
    return found, counted(platform.store, connection, [each.attempt for each in attempts])


def _ordered(each: AttemptRow) -> AttemptOrdered:
    return AttemptOrdered(
        attempt=each.attempt, job=each.job, number=each.number, lease=each.lease, placed=each.placed, why=""
    )  # fmt: skip


def _term(about: str, rate: str) -> Known[Term]:
    value = Term(about=about, name=SALES_TAX, value=rate, unit="1", said_by="")
    return Known(value=value, valid_from=0, valid_to=None, grade=Grade.METERED, key="")


def one(platform: Platform, actor: Actor, number: str) -> Made:
    """An issued invoice, by its number or id."""
    with platform.reading() as connection:
        known, org = _seen(connection, actor, number, "invoice.read")
        charges = charges_on(connection, known.value.invoice, org.org)
        names = {each.value.lease for each in charges}
        unbilled = leases_meeting(
            connection, org=org.org, from_us=known.valid_from, to_us=known.end
        )
        names |= {row.lease for row in unbilled if row.ended_us is not None and not row.billable_us}
        found, units = _record(platform, connection, org, names, charges)
        corrected = invoice_called(connection, known.value.credits or "")
    return Made(
        invoice=issued(found, known, units), org=org,
        corrects=corrected.value.number if corrected else None,
    )  # fmt: skip


def _seen(
    connection: Connection, actor: Actor, number: str, action: str
) -> tuple[Known[TenantInvoice], Organisation]:
    """An invoice that somebody may see, and whose it is. 404 where there is none to see."""
    known = invoice_called(connection, number)
    if known is None:
        raise unknown("invoice", number)
    try:
        org = organisation_meant(connection, actor, known.value.org)
    except OuvrageError as error:
        raise unknown("invoice", number) from error
    authorise(actor, action, org=org.org)
    return known, org


def issue(tx: Transaction, platform: Platform, actor: Actor, asked: NewInvoice) -> InvoiceTold:
    """Issue what an organisation was charged up to the end of a period, or up to now where that comes first."""
    org = organisation_meant(tx.connection, actor, asked.org)
    authorise(actor, "invoice.create", org=org.org)
    period = period_asked(asked.period, tx.now_us)
    if period.from_us > tx.now_us:
        raise conflict(
            "invoice/too-early",
            f"{period.name} has not begun",
            hint="name a period that has",
            field="period",
        )
    rows = leases_meeting(tx.connection, org=org.org, from_us=period.from_us, to_us=tx.now_us + 1)
    charge(platform, tx, [row.lease for row in rows])
    made = _draft(platform, tx.connection, org, period, tx.now_us)
    return _issued(platform, tx, actor, org, made, None)


def _issued(
    platform: Platform,
    tx: Transaction,
    actor: Actor,
    org: Organisation,
    made: Invoice,
    corrects: Known[TenantInvoice] | None,
) -> InvoiceTold:
    fact = to_issue(
        made,
        [each.value for each in invoices_of(tx.connection, org.org)],
        platform.ids(),
        tx.now_us,
    )
    year = day_of(tx.now_us, ZONE).year
    fact = replace(fact, number=number_of(year, issued_in(tx.connection, str(year)) + 1))
    begins, ends = made.period.from_us, made.period.to_us
    put_invoice(tx.connection, fact, begins, ends)
    recorded = stated(
        platform,
        fact,
        subject=f"org:{org.org}",
        natural=f"invoice/{fact.invoice}",
        at_us=begins,
        until_us=ends,
    )
    what = "credit note" if fact.credits else "invoice"
    detail = f"{what} {fact.number}: {fact.total} {fact.currency}"
    record(
        tx, platform, actor, "invoice.issue", org=org.org, target=fact.invoice, detail=detail, facts=(recorded,)
    )  # fmt: skip
    told = replace(made, number=fact.number, issued_us=fact.issued_us, running=0)
    number = corrects.value.number if corrects else None
    return told_of(platform, Made(invoice=told, org=org, corrects=number), "en")


def credit(
    tx: Transaction, platform: Platform, actor: Actor, number: str, asked: NewCredit
) -> InvoiceTold:
    """Give back an invoice, or some of its charges, by a credit note."""
    known, org = _seen(tx.connection, actor, number, "invoice.create")
    if known.value.credits is not None:
        raise conflict(
            "invoice/is-a-credit", f"{known.value.number} is a credit note itself",
            hint="name the invoice that is wrong",
        )  # fmt: skip
    charges = charges_on(tx.connection, known.value.invoice, org.org)
    missing = sorted(set(asked.charges) - {each.value.charge for each in charges})
    if missing:
        raise unknown("charge", missing[0], field="charges")
    leases = {each.value.lease for each in charges}
    found, _ = _record(platform, tx.connection, org, leases, charges)
    made = credits_for(found, known.value, asked.why, asked.charges)
    keep(platform, tx, made)
    return _issued(platform, tx, actor, org, credit_note(found, known, made, tx.now_us), known)


def listed(
    platform: Platform, actor: Actor, *, org: str | None, cursor: str | None, limit: int
) -> list[InvoiceListed]:
    """Invoices that somebody may see, newest first, one more than ``limit`` where more follow."""
    with platform.reading() as connection:
        orgs = orgs_paying(connection, actor, org, "invoice.read")
        found = invoice_page(connection, orgs, limit=limit, cursor=cursor)
        names: dict[str, str] = {}
        for name in {each.value.org for each in found}:
            org_ = organisation_of(connection, name)
            names[name] = org_.name if org_ else name
    return [_listed(each, names[each.value.org]) for each in found]


def _listed(each: Known[TenantInvoice], name: str) -> InvoiceListed:
    value = each.value
    return InvoiceListed.model_validate({
        "invoice": value.invoice, "number": value.number, "org": value.org, "name": name,
        "currency": value.currency, "net": value.net, "tax": value.tax, "total": value.total,
        "issued_at": utc_text(value.issued_us), "from": utc_text(each.valid_from), "to": utc_text(each.end),
        "charges": len(value.charges), "credits": value.credits,
    })  # fmt: skip


def tax(tx: Transaction, platform: Platform, actor: Actor, asked: NewTax) -> TaxTold:
    """State the tax on what tenants are charged from now on, of all or of one."""
    authorise(actor, "invoice.create", org=None)
    tenant = (
        None if asked.tenant is None else organisation_meant(tx.connection, actor, asked.tenant)
    )
    about = "channel:own" if tenant is None else f"tenant:{tenant.name}"
    term = Term(about=about, name=SALES_TAX, value=asked.rate, unit="1", said_by=actor.login)
    put_tax(tx.connection, about, asked.rate, tx.now_us)
    fact = stated(platform, term, subject=about, at_us=tx.now_us)
    org = tenant.org if tenant else None
    record(
        tx, platform, actor, "tax.state", org=org, target=about, detail=asked.rate, facts=(fact,)
    )  # fmt: skip
    return TaxTold(about=about, rate=asked.rate)


def view_of(platform: Platform, made: Made, code: str) -> Shown:
    """An invoice in words of a language, with the letterheads of both sides."""
    found = made.invoice
    head = Letterhead(
        issuer=_letterhead(platform.state_dir, found.issuer),
        recipient=_letterhead(platform.state_dir, found.name),
    )
    return shown(found, language(code), made.corrects, head)


def _letterhead(state: Path, name: str) -> tuple[str, ...]:
    """The lines of an organisation's letterhead; names are slugs, so that no path leads elsewhere."""
    try:
        text = (state / LETTERHEADS / f"{name}.txt").read_text("utf-8")
    except OSError:
        return ()
    return tuple(line.strip() for line in text.splitlines() if line.strip())[:12]


def told_of(platform: Platform, made: Made, code: str) -> InvoiceTold:
    """An invoice as it is answered, with its words in a language."""
    page = view_of(platform, made, code)
    words = InvoiceShown(
        language=page.language, title=page.title, headline=page.headline, draft=page.draft,
        issuer=list(page.issuer), recipient=list(page.recipient), about=[list(each) for each in page.about],
        tables=[
            TableShown(
                heading=t.heading, columns=list(t.columns), rows=[list(row) for row in t.rows], right=t.right
            )
            for t in page.tables
        ],
        sums=[SumShown(label=s.label, text=s.text, strong=s.strong) for s in page.sums],
        notes=list(page.notes),
    )  # fmt: skip
    return InvoiceTold.model_validate({**invoice_json(made.invoice), "shown": words})
