"""Leases as they are billed, their charges, and an organisation's account, from the tables.

Decides which rows make a lease that can be priced, and that a lease's charges are recorded in the transaction that ends it (or at the
end of a month), as facts and rows alike. What it costs is decided by ``books.dues``; nothing here knows a price.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

from ouvrage.base.time import HOUR
from ouvrage.books.dues.account import Account, running_nano
from ouvrage.books.dues.charging import Charged, charges_due, credits_of
from ouvrage.books.dues.lease import Ended, Lease, amount_nano, burn_per_hour
from ouvrage.books.period import Period, month_of, period_named
from ouvrage.model.selling import OwnOffer
from ouvrage.model.tenancy import Organisation
from ouvrage.server.context import Platform
from ouvrage.server.recording import stated
from ouvrage.store.platform.dues import (
    attempts_of_leases,
    charged_in_all,
    charged_to,
    charges_of_leases,
    invoices_of,
    leases_called,
    leases_meeting,
    paid_before,
    put_charges,
    taxes,
)
from ouvrage.store.platform.selling import LeaseRow, offers_by_id
from ouvrage.store.platform.work import AttemptRow
from ouvrage.store.transaction import Connection, Transaction

ZONE = "UTC"
"""By whose clock months of charges and budgets end."""


def billed(connection: Connection, rows: Sequence[LeaseRow]) -> list[Lease]:
    """Leases as they are billed."""
    offers = offers_by_id(connection, {row.offer for row in rows})
    own = {row.lease for row in rows if row.kind == "job"}
    attempts = {each.lease: each for each in attempts_of_leases(connection, own)}
    return [_billed(row, offers[row.offer].terms, attempts.get(row.lease)) for row in rows]


def _billed(row: LeaseRow, terms: OwnOffer, attempt: AttemptRow | None) -> Lease:
    ended = None
    if row.ended_us is not None:
        outcome = attempt.outcome if attempt else None
        ended = Ended(at_us=row.ended_us, billable_us=row.billable_us or 0, outcome=outcome)
    peaks = attempt.peaks if attempt else None
    return Lease(
        lease=row.lease, org=row.org, project=row.project, kind=row.kind, attempt=row.attempt,
        job=attempt.job if attempt else None, node=row.node, devices=row.placed.devices, offer=terms,
        from_us=row.from_us, until_us=row.until_us, ended=ended,
        sent=peaks.sent_bytes if peaks else None, received=peaks.received_bytes if peaks else None,
    )  # fmt: skip


def charge(platform: Platform, tx: Transaction, names: Collection[str]) -> list[Charged]:
    """Record what is due of some leases now: of months that ended, and of their ends."""
    rows = leases_called(tx.connection, names)
    before: dict[str, list[Charged]] = {}
    for each in charges_of_leases(tx.connection, names):
        before.setdefault(each.value.lease, []).append(each)
    made: list[Charged] = []
    for lease in billed(tx.connection, rows):
        at_us = max(tx.now_us, lease.ended.at_us if lease.ended else 0)
        made += charges_due(lease, before.get(lease.lease, ()), at_us, ZONE)
    keep(platform, tx, made)
    return made


def give_back(platform: Platform, tx: Transaction, lease: str, why: str) -> list[Charged]:
    """Credit all that is left of a lease's charges on its tenant's account; nothing of it is charged again."""
    made = credits_of(charges_of_leases(tx.connection, [lease]), why)
    keep(platform, tx, made)
    return made


def keep(platform: Platform, tx: Transaction, made: Sequence[Charged]) -> None:
    """Record charges as facts and rows."""
    tx.note(
        [
            stated(
                platform,
                each.value,
                subject=f"lease:{each.value.lease}",
                natural=f"charge/{each.value.charge}",
                at_us=each.valid_from,
                until_us=each.end,
                grade=each.grade,
            )
            for each in made
        ]
    )
    put_charges(tx.connection, made)


def charge_months(platform: Platform, tx: Transaction, rows: Sequence[LeaseRow]) -> None:
    """Record the charges of months that ended, of leases that run over them."""
    begun = month_of(tx.now_us, ZONE).from_us
    over = [
        row.lease
        for row in rows
        if row.from_us < begun and (charged_to(tx.connection, row.lease) or row.from_us) < begun
    ]
    if over:
        charge(platform, tx, over)


def period_asked(name: str | None, now_us: int) -> Period:
    """The period of a name; without one this month."""
    return month_of(now_us, ZONE) if name is None else period_named(name, ZONE)


def tax_of(connection: Connection, org: Organisation, channel: str = "own") -> Fraction | None:
    """The share of tax that is stated for a tenant, else for the channel, else for all; None: not stated."""
    found = taxes(connection)
    names = (f"tenant:{org.name}", f"channel:{channel}", "channel:own")
    return next((Fraction(found[name]) for name in names if name in found), None)


def account(
    connection: Connection, org: Organisation, now_us: int, *, ahead: bool = True
) -> Account:
    """An organisation's money now; without ``ahead`` neither its burn nor when it will be used up is looked for."""
    rows = leases_meeting(connection, org=org.org, from_us=now_us, to_us=now_us + 1)
    going = [each for each in billed(connection, rows) if each.ended is None]
    running = running_nano(going, charges_of_leases(connection, [x.lease for x in going]), now_us)
    charged, waiting = charged_in_all(connection, org.org)
    invoices = [each.value for each in invoices_of(connection, org.org)]
    rate = tax_of(connection, org, going[0].offer.channel if going else "own")
    found = Account(
        org=org.org, name=org.name, currency=org.currency, billing=org.billing,
        limit=amount_nano(org.credit_limit) if org.billing == "credit" else 0,
        paid=paid_before(connection, org.org, now_us + 1), charged=charged, running=running,
        tax=sum(amount_nano(each.tax) for each in invoices),
        rounding=sum(amount_nano(each.rounding) for each in invoices),
        tax_to_come=None if rate is None else round((waiting + running) * rate),
        burn=burn_per_hour(going, now_us, HOUR) if ahead else 0, used_up_us=None, at_us=now_us,
    )  # fmt: skip
    return found.looking_ahead(going, rate) if ahead else found
