"""Payments: what tenants paid in or were paid back, as the owner records it.

Decides that an amount is in the organisation's own currency, that it is not nothing, and that it is dated by now at the latest. Whether a bank
saw it is found out by the books.
"""

from __future__ import annotations

from ouvrage.base.ids import code_of
from ouvrage.base.time import utc_text
from ouvrage.books.dues.lease import amount_nano
from ouvrage.books.known import Known
from ouvrage.model.dues import Payment
from ouvrage.model.tenancy import Organisation
from ouvrage.pricing.rates.usage import moment_us
from ouvrage.server.authorise import authorise, visible_orgs
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.naming import organisation_meant
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.dues import payment_page, put_payment
from ouvrage.store.platform.tenancy import organisation_of
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.dues import NewPayment, PaymentTold


def add(tx: Transaction, platform: Platform, actor: Actor, asked: NewPayment) -> PaymentTold:
    """Record a payment."""
    org = organisation_meant(tx.connection, actor, asked.org)
    authorise(actor, "payment.create", org=org.org)
    if org.side == "owner":
        raise conflict(
            "payment/owner",
            "the owner pays nobody here",
            hint="name a tenant: --org NAME",
            field="org",
        )
    if not amount_nano(asked.amount):
        raise unreadable(
            "payment/nothing", "a payment of nothing", hint="say how much was paid", field="amount"
        )
    payment = Payment(
        payment=platform.ids(), org=org.org, amount=asked.amount, currency=org.currency,
        reference=asked.reference, by=actor.login,
    )  # fmt: skip
    at_us = _moment(asked.at, tx.now_us)
    put_payment(tx.connection, payment, at_us)
    fact = stated(
        platform,
        payment,
        subject=f"org:{org.org}",
        natural=f"payment/{payment.payment}",
        at_us=at_us,
        until_us=at_us,
    )
    detail = f"{payment.amount} {payment.currency} {payment.reference}".strip()
    record(
        tx, platform, actor, "payment.add", org=org.org, target=payment.payment, detail=detail, facts=(fact,)
    )  # fmt: skip
    platform.wakes.tell(ENGINE)
    return _told(
        Known(value=payment, valid_from=at_us, valid_to=at_us, grade=fact.grade, key=""), org.name
    )


def _moment(text: str | None, now_us: int) -> int:
    if text is None:
        return now_us
    written = text if len(text) > 10 else f"{text}T00:00:00Z"
    found = moment_us(written)
    if found is None or found > now_us:
        raise unreadable(
            "payment/moment",
            f"{text!r} is no moment up to now",
            hint="write it as 2026-11-30 or 2026-11-30T14:05:09Z",
            field="at",
        )
    return found


def listed(
    platform: Platform, actor: Actor, *, org: str | None, cursor: str | None, limit: int
) -> list[PaymentTold]:
    """Payments that somebody may see, newest first, one more than ``limit`` where more follow."""
    names: dict[str, str] = {}
    with platform.reading() as connection:
        orgs = orgs_paying(connection, actor, org, "payment.read")
        found = payment_page(connection, orgs, limit=limit, cursor=cursor)
        for each in found:
            names.setdefault(each.value.org, _name(organisation_of(connection, each.value.org)))
    return [_told(each, names[each.value.org]) for each in found]


def orgs_paying(
    connection: Connection, actor: Actor, org: str | None, action: str
) -> frozenset[str] | None:
    """The organisations whose money somebody may see; None: of all. Refuses who may see none."""
    if org is not None:
        found = organisation_meant(connection, actor, org)
        authorise(actor, action, org=found.org)
        return frozenset([found.org])
    within = visible_orgs(actor)
    if within is None:
        authorise(actor, action, org=None)
        return None
    for each in within:
        authorise(actor, action, org=each)
    return within


def _name(org: Organisation | None) -> str:
    return org.name if org else ""


def _told(each: Known[Payment], name: str) -> PaymentTold:
    value = each.value
    return PaymentTold(
        payment=value.payment, code=code_of(value.payment), org=value.org, name=name, amount=value.amount,
        currency=value.currency, reference=value.reference, by=value.by, at=utc_text(each.valid_from),
    )  # fmt: skip
