"""An account over a period: what changed it, line by line, from the opening balance to the closing one.

Decides what a line is (a charge when its time ended, a payment, an invoice's tax and rounding) and that the lines add up exactly. What still
runs is no line; it stands beside the closing balance.
"""

from __future__ import annotations

from collections.abc import Iterator

from ouvrage.base.errors import OuvrageError
from ouvrage.base.ids import code_of
from ouvrage.base.time import utc_text
from ouvrage.books.dues.lease import amount_nano, amount_text
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.services.billing import account, period_asked
from ouvrage.server.services.naming import organisation_meant
from ouvrage.store.platform.dues import (
    charged_before,
    charges_between,
    invoices_of,
    paid_before,
    payments_of,
)
from ouvrage.store.transaction import Connection
from ouvrage.wire.dues import StatementLine, StatementTold

MOST = 5000
Line = tuple[int, str, str, int]
"""When, of which sort, in which words, and by how many nano-units the account changed."""


def statement(
    platform: Platform, actor: Actor, *, org: str | None, period: str | None
) -> StatementTold:
    """An organisation's account over a period (None: this month)."""
    now = platform.clock()
    asked = period_asked(period, now)
    with platform.reading() as connection:
        found = organisation_meant(connection, actor, org)
        authorise(actor, "invoice.read", org=found.org)
        opening = _before(connection, found.org, asked.from_us)
        lines = sorted(_lines(connection, found.org, asked.from_us, asked.to_us))
        running = account(connection, found, now, ahead=False).running
    if len(lines) > MOST:
        raise OuvrageError(
            "statement/too-long", f"{len(lines)} lines in {asked.name}, and {MOST} at most are shown",
            hint="ask for a shorter period",
        )  # fmt: skip
    balance, told = opening, list[StatementLine]()
    for at_us, sort, words, nano in lines:
        balance += nano
        told.append(
            StatementLine(
                at=utc_text(at_us), sort=sort, words=words, amount=amount_text(nano),
                balance=amount_text(balance),
            )
        )  # fmt: skip
    return StatementTold.model_validate({
        "org": found.org, "name": found.name, "currency": found.currency, "from": utc_text(asked.from_us),
        "to": utc_text(asked.to_us), "opening": amount_text(opening), "lines": told,
        "closing": amount_text(balance), "running": amount_text(running), "as_of": utc_text(now),
    })  # fmt: skip


def _before(connection: Connection, org: str, at_us: int) -> int:
    """The balance before a moment."""
    beside = sum(
        amount_nano(each.value.tax) + amount_nano(each.value.rounding)
        for each in invoices_of(connection, org)
        if each.value.issued_us < at_us
    )
    return paid_before(connection, org, at_us) - charged_before(connection, org, at_us) - beside


def _lines(connection: Connection, org: str, from_us: int, to_us: int) -> Iterator[Line]:
    for each in charges_between(connection, org, from_us, to_us):
        value = each.value
        words = f"{value.rule} of lease {code_of(value.lease)}: {value.words}"
        sort = "credit" if value.credits else "charge"
        yield each.end, sort, words, -amount_nano(value.amount)
    for paid in payments_of(connection, org, from_us, to_us):
        words = paid.value.reference or "payment"
        yield paid.valid_from, "payment", words, amount_nano(paid.value.amount)
    for issued in invoices_of(connection, org):
        value = issued.value
        beside = amount_nano(value.tax) + amount_nano(value.rounding)
        if from_us <= value.issued_us < to_us and beside:
            words = f"tax {value.tax} and rounding {value.rounding} of invoice {value.number}"
            yield value.issued_us, "tax", words, -beside
