"""Vast.ai's payouts to a host, as its interface lists them in JSON.

Decides which rows are documents of what a host is owed: those of type ``payout``. Payouts are made
weekly and from 20 USD on, so a small week waits for the next. ``Paid`` there means that the order was
handed in; only a line of the bank says that the money came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ouvrage.adapters.feeds.moments import moment_of
from ouvrage.adapters.feeds.told import Told, amount_in, documents, key_part
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.ledger.stated import Stated
from ouvrage.model.earnings import ChannelInvoice

CURRENCY = "USD"
LEAST = 20
_LISTS = ("results", "invoices", "payouts", "items")
_WHEN = ("when", "timestamp", "date", "created_at")
_NUMBER = ("invoice_id", "number", "id", "payout_id")


def read_invoices(text: str, told: Told, channel: str) -> None:
    """The payouts in a file, as statements in ``told``. Raises ``OuvrageError`` ``vast/form``."""
    found = list(_rows(told, text))
    if not found and not told.faults:
        raise OuvrageError(
            "vast/form",
            f"{told.file} holds no invoices of Vast.ai",
            where=(told.file,),
            hint="save the answer of vastai show invoices-v1 --invoices --raw",
        )
    for place, item in found:
        told.rows += 1
        _row(place, item, told, channel)


def _rows(told: Told, text: str) -> Iterable[tuple[str, Any]]:
    for place, value in documents(told, text):
        name = next(
            (n for n in _LISTS if isinstance(value, dict) and isinstance(value.get(n), list)), None
        )
        if name is None:
            if isinstance(value, dict) and "amount" in value:
                yield place or "1", value
            continue
        for index, item in enumerate(value[name]):
            yield f"{place + ' ' if place else ''}{name}[{index}]", item


def _first(item: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((item[name] for name in names if item.get(name) not in (None, "")), None)


def _row(place: str, item: Any, told: Told, channel: str) -> None:
    if not isinstance(item, dict):
        told.fault(place, "row", item, "an object with named fields")
        return
    sort = str(item.get("type") or "").lower()
    if sort != "payout":
        told.note(f"of type {sort or 'none'}: no payout to a host, left out")
        return
    amount, when = amount_in(item.get("amount")), moment_of(_first(item, _WHEN))
    currency = str(item.get("currency") or CURRENCY).upper()
    if amount is None or not amount:
        told.fault(place, "amount", item.get("amount"), "an amount of money")
    elif when is None:
        told.fault(place, "when", _first(item, _WHEN), "seconds since 1970")
    elif currency != CURRENCY:
        told.fault(place, "currency", currency, f"{CURRENCY}: Vast.ai pays in it alone")
    else:
        number = key_part(str(_first(item, _NUMBER) or f"payout-{when // 10**6}"))
        if abs(amount) < LEAST:
            told.note(f"a payout of less than {LEAST} {CURRENCY}: the threshold was not kept")
        if str(item.get("status") or "").lower() == "paid":
            told.note("Paid means that the order was handed in; a bank line says when it came")
        told.stated.append(_stated(channel, number, when, decimal_text(abs(amount))))


def _stated(channel: str, number: str, when: int, net: str) -> Stated:
    return Stated(
        natural=f"invoice/{channel}/{number}",
        value=ChannelInvoice(
            channel=channel,
            number=number,
            issued_us=when,
            gross=None,
            fee=None,
            tax=None,
            net=net,
            currency=CURRENCY,
        ),
        subject=f"channel:{channel}",
        valid_from=when,
        valid_to=when,
        grade=Grade.METERED,
    )
