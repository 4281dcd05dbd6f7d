"""What a provider billed, as lines: FOCUS CSV, Vast.ai's charges in JSON, or a plain CSV.

Decides which columns are a line's text, amount, quantity and period in each form. A row that cannot be
read is told and never left out in silence; what a line should have been is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ouvrage.adapters.catalogues.forms import csv_rows
from ouvrage.adapters.catalogues.rows import Context, Fault, Row, number_in
from ouvrage.adapters.json_text import load_json
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.pricing.market.invoice import CENT, BilledLine
from ouvrage.pricing.rates.usage import moment_us

_PLAIN = {
    "text": ("line", "description", "item", "name", "resource", "type"),
    "amount": ("amount", "cost", "total", "charge"),
    "currency": ("currency",),
    "quantity": ("quantity", "hours", "usage"),
    "unit": ("unit",),
    "from": ("from", "start", "period_start"),
    "to": ("to", "end", "period_end"),
}
_FOCUS = {
    "text": ("ChargeDescription", "SkuId", "ServiceName"),
    "amount": ("BilledCost",),
    "currency": ("BillingCurrency",),
    "quantity": ("ConsumedQuantity", "PricingQuantity", "UsageQuantity"),
    "unit": ("ConsumedUnit", "PricingUnit", "UsageUnit"),
    "from": ("ChargePeriodStart",),
    "to": ("ChargePeriodEnd",),
    "kind": ("ServiceCategory",),
}
_HOURS = re.compile(r"([0-9.]+) hours? at \$?([0-9.]+)/hour")
_VAST = {"gpu": "work", "disk": "storage", "bwd": "data in", "bwu": "results out"}
_KINDS = (
    (("tax", "vat"), "tax"),
    (("storage", "disk", "volume", "snapshot", "ebs"), "storage"),
    (("egress", "transfer out", "traffic out", "data out", "bwu", "upload"), "results out"),
    (("ingress", "transfer in", "data in", "bwd", "download"), "data in"),
    (("ip", "ipv4", "address"), "public IP"),
    (("reserv", "unused"), "reservation unused"),
    (("compute", "gpu", "instance", "machine", "hour", "vm", "node", "work"), "work"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The lines of a bill, and the rows that could not be read."""

    form: str
    lines: tuple[BilledLine, ...]
    faults: tuple[Fault, ...]


def load_bill(path: Path) -> Bill:
    """The bill in a file."""
    return bill_in(str(path), read_text(path, "invoice"))


def bill_in(file: str, text: str) -> Bill:
    """The bill that a text holds."""
    context = Context(catalogue="invoice", file=file, read_on="")
    faults: list[Fault] = []
    if file.lower().endswith(".json") or text.lstrip()[:1] in ("{", "["):
        rows = [
            Row(cells, place, context) for place, cells in _vast_rows(file, text, context, faults)
        ]
        return _bill("vast", rows, _vast_line, faults)
    rows = [Row(cells, place, context) for place, cells in csv_rows(text, context, faults)]
    names = {name for row in rows for name in row.cells}
    if "BilledCost" in names:
        return _bill("focus", rows, lambda row: _line(row, _FOCUS), faults)
    if names & set(_PLAIN["amount"]):
        return _bill("plain", rows, lambda row: _line(row, _PLAIN), faults)
    raise OuvrageError(
        "invoice/form",
        f"{file} is in no form of bill that is known here",
        where=(f"{file}:1   {', '.join(sorted(names)) or 'no row under a line of names'}"[:200],),
        hint="FOCUS CSV, Vast.ai charges JSON, or CSV with the columns line,amount,currency",
    )


def _bill(form: str, rows: Iterable[Row], line_of: Any, faults: list[Fault]) -> Bill:
    lines: list[BilledLine] = []
    for row in rows:
        line = line_of(row)
        faults += row.faults
        if line is not None and not row.faults:
            lines.append(line)
    return Bill(form=form, lines=tuple(lines), faults=tuple(faults))


def _vast_rows(
    file: str, text: str, context: Context, faults: list[Fault]
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    value = load_json(file, text, "invoice/json")
    items: Any = value
    if isinstance(value, dict):
        items = next(
            (v for k in ("charges", "results", "items", "invoices") if (v := value.get(k))), None
        )
    if not isinstance(items, list):
        raise OuvrageError(
            "invoice/form", f"{file} holds no list of charges", hint="a list under 'charges'"
        )
    for index, item in enumerate(items):
        place = f"charges[{index}]"
        inner = item.get("items") if isinstance(item, dict) else None
        if not inner or not isinstance(inner, list):
            yield from _tables([(place, item)], context, faults)
            continue
        yield from _tables(
            ((f"{place}.items[{n}]", each) for n, each in enumerate(inner)), context, faults
        )
        _check_sum(Row(item, place, context), inner, faults)


def _tables(
    items: Iterable[tuple[str, Any]], context: Context, faults: list[Fault]
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Those that are objects; the others are faults."""
    for place, each in items:
        if isinstance(each, dict):
            yield place, each
            continue
        told = Row({}, place, context)
        told.fault("charge", each, "an object with an amount")
        faults += told.faults


def _check_sum(row: Row, items: list[Any], faults: list[Fault]) -> None:
    """A charge of several items is their sum, but for the rounding of each."""
    if "amount" not in row.cells:
        return
    whole = _amount(row, "amount")
    parts = [_signed(each.get("amount")) for each in items if isinstance(each, dict)]
    known = [each for each in parts if each is not None]
    if whole is not None and len(known) == len(items):
        total = sum(known, Fraction(0))
        if abs(whole - total) >= CENT * (len(items) + 1):
            row.fault("amount", row.cells["amount"], f"{decimal_text(total)}, the sum of its items")
    faults += row.faults


def _vast_line(row: Row) -> BilledLine | None:
    kind = row.text("type") or ""
    text = row.text("description") or kind or "a charge"
    hours = _HOURS.search(text)
    quantity = number_in(hours[1]) if hours else row.number("quantity")
    amount = _amount(row, "amount")
    if amount is None:
        return None
    return BilledLine(
        place=row.place,
        text=text,
        kind=_VAST.get(kind, kind_of(text)),
        amount=amount,
        currency=(row.text("currency") or "USD").upper(),
        quantity=quantity,
        unit="h" if hours else row.text("rate_unit"),
        start=None,
        end=None,
    )


def _line(row: Row, names: Mapping[str, tuple[str, ...]]) -> BilledLine | None:
    found = {name: _first(row, names.get(name, ())) for name in (*_PLAIN, "kind")}
    amount = _amount(row, found["amount"] or names["amount"][0])
    if amount is None:
        return None
    text = (row.text(found["text"]) if found["text"] else None) or "a charge"
    hint = row.text(found["kind"]) if found["kind"] else None
    quantity = found["quantity"]
    unit = row.text(found["unit"]) if found["unit"] else None
    if quantity == "hours":
        unit = "h"
    return BilledLine(
        place=row.place,
        text=text,
        kind=kind_of(f"{text} {hint or ''}"),
        amount=amount,
        currency=((row.text(found["currency"]) if found["currency"] else None) or "").upper(),
        quantity=None if quantity is None else _quantity(row, quantity),
        unit=unit,
        start=_moment(row, found["from"]),
        end=_moment(row, found["to"]),
    )


def _first(row: Row, names: Iterable[str]) -> str | None:
    return next(
        (n for n in names if row.cells.get(n) not in (None, "") and not _null(row, n)), None
    )


def _null(row: Row, name: str) -> bool:
    return str(row.cells.get(name)).strip().upper() == "NULL"


def _amount(row: Row, name: str) -> Fraction | None:
    """An amount, which may be negative: a credit."""
    found = _signed(row.cells.get(name, ""))
    if found is None:
        row.fault(name, row.cells.get(name), "an amount of money")
    return found


def _quantity(row: Row, name: str) -> Fraction | None:
    """A quantity, which is negative in a credit."""
    found = _signed(row.cells.get(name, ""))
    if found is None:
        row.fault(name, row.cells.get(name), "a number")
    return found


def _signed(value: Any) -> Fraction | None:
    text = str(value).strip()
    found = number_in(text.removeprefix("-"))
    return -found if found is not None and text.startswith("-") else found


def _moment(row: Row, name: str | None) -> int | None:
    text = row.text(name) if name else None
    if text is None:
        return None
    found = moment_us(text) or moment_us(f"{text}Z") or moment_us(f"{text}T00:00:00Z")
    if found is None and name:
        row.fault(name, text, "a moment such as 2026-11-30T14:05:09Z, or a day")
    return found


def kind_of(text: str) -> str:
    """Which line of a quote a line of a bill answers to, by its words; ``other`` for none."""
    words = text.lower()
    tokens = set(re.findall("[a-z0-9]+", words))
    for marks, kind in _KINDS:
        if any((mark in tokens) if len(mark) <= 3 else (mark in words) for mark in marks):
            return kind
    return "other"
