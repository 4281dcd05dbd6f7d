"""Exports of bills in FOCUS: rows as charges, and when a row is the same charge read again.

Decides that a charge is known by what it is for (every column that holds no amount, quantity, price or
tag) and, where one export has several such rows, by all that they say. Moments without a zone are read as UTC,
which the specification requires, and told. A row that repeats itself is as many charges as it has rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ouvrage.adapters.catalogues.rows import Row, printable
from ouvrage.adapters.feeds.told import Told, amount_in, name_part
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import utc_us
from ouvrage.ledger.kinds import payload_of
from ouvrage.ledger.stated import HASHED, Stated
from ouvrage.model.focus import FocusCharge

NEEDED = ("BilledCost", "ChargePeriodStart", "ChargePeriodEnd")
"""Without these a row is no charge of an amount over a time. What else the specification requires and a
file lacks is told."""
_FIELDS = {
    "provider": "ProviderName",
    "charge_class": "ChargeClass",
    "pricing_unit": "PricingUnit",
}
_NUMBERS = {
    "billed": "BilledCost",
    "effective": "EffectiveCost",
    "listed": "ListCost",
    "contracted": "ContractedCost",
    "list_unit_price": "ListUnitPrice",
    "pricing_quantity": "PricingQuantity",
    "consumed_quantity": "ConsumedQuantity",
}
_OWN = {
    *_FIELDS.values(), *_NUMBERS.values(), *NEEDED, "BillingCurrency", "ChargeCategory",
}  # fmt: skip
_CHANGES = {"ContractedUnitPrice", "EffectiveUnitPrice", "Tags"}
"""Columns besides our numbers that an export made again may have otherwise for the same charge."""
_NULL = ("", "NULL")
_LONGEST_CELL = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """Data row ``row`` of the file (from 1) and the charge that it states, for a half-open period.

    ``identity`` is what the charge is for, hashed: the same in an export made again with other amounts.
    ``payload`` is the charge's.
    """

    row: int
    charge: FocusCharge
    from_us: int
    to_us: int
    identity: str
    payload: str

    @property
    def content(self) -> str:
        """All that the row says, hashed."""
        return _content(self.payload, self.from_us, self.to_us)


def _content(payload: str, from_us: int, to_us: int | None) -> str:
    return sha256_hex(payload + canonical([from_us, to_us]))[:HASHED]


def read_focus(text: str, told: Told, currency: str | None = None) -> list[Charged]:
    """The charges of an export; rows that cannot be read are faults in ``told``.

    ``currency`` is that of a file that has no column for it.
    """
    found: list[Charged] = []
    for number, row in _rows(text, told, currency):
        charged = _charged(number, row, told)
        told.faults += row.faults
        if charged is not None and not row.faults:
            found.append(charged)
    return found


def _rows(text: str, told: Told, currency: str | None) -> Iterator[tuple[int, Row]]:
    """Every row with its number from 1; a broken quotation costs the rest of the file, and is told."""
    whole: dict[str, str] = {}
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    head: list[str] = []
    try:
        for cells in reader:
            if not head:
                head = _head(cells, told)
                whole = _absent(head, told, currency)
                continue
            if not cells:
                continue
            told.rows += 1
            if len(cells) == len(head):
                values = {**whole, **dict(zip(head, cells, strict=True))}
                yield told.rows, told.row(values, f"row {told.rows}")
            else:
                told.fault(f"row {told.rows}", "row", f"{len(cells)} cells", f"{len(head)} cells")
    except csv.Error as error:
        told.fault(f"line {reader.line_num}", "rest of the file", str(error), "CSV")
    if not head:
        _head([], told)


def _head(cells: Sequence[str], told: Told) -> list[str]:
    names = [printable(cell) for cell in cells]
    absent = [name for name in NEEDED if name not in names]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if absent or twice:
        wrong = f"lacks {', '.join(absent)}" if absent else f"has {', '.join(twice)} twice"
        raise OuvrageError(
            "focus/columns",
            f"the first line {wrong}",
            where=(f"{told.file}:1",),
            hint="export the bill in FOCUS 1.0 or later as CSV, with its line of names",
        )
    return names


def _absent(head: Sequence[str], told: Told, currency: str | None) -> dict[str, str]:
    """What holds for every row of a file without a column that the specification requires."""
    whole: dict[str, str] = {}
    if "BillingCurrency" not in head:
        if currency is None or not re.fullmatch("[A-Z]{3}", currency):
            raise OuvrageError(
                "focus/currency",
                "the file has no BillingCurrency",
                where=(f"{told.file}:1",),
                hint="say it: --currency USD",
            )
        whole["BillingCurrency"] = currency
        told.note(f"no BillingCurrency: taken as {currency}, as you say")
    if "ChargeCategory" not in head:
        whole["ChargeCategory"] = "Usage"
        told.note("no ChargeCategory: every row is taken as Usage, so that no credit can be told")
    return whole


def _charged(number: int, row: Row, told: Told) -> Charged | None:
    cells = {name: _cell(value) for name, value in row.cells.items()}
    numbers = {field: _number(row, cells, name) for field, name in _NUMBERS.items()}
    currency = _needed(row, cells, "BillingCurrency")
    category = _needed(row, cells, "ChargeCategory")
    begins = _moment(row, cells, "ChargePeriodStart", told)
    ends = _moment(row, cells, "ChargePeriodEnd", told)
    if currency is None or category is None or begins is None or ends is None:
        return None
    if ends < begins:
        row.fault("ChargePeriodEnd", cells["ChargePeriodEnd"], "an end after the beginning")
        return None
    others = {field: cells.get(name) for field, name in _FIELDS.items()}
    rest = {name: text for name, text in cells.items() if text is not None and name not in _OWN}
    charge = FocusCharge(
        category=category, currency=currency, columns=canonical(rest), **numbers, **others
    )
    fixed = {name: text for name, text in rest.items() if name not in _CHANGES}
    about = [*others.values(), category, currency, begins, ends, fixed]
    identity = sha256_hex(canonical(about))[:HASHED]
    return Charged(
        row=number, charge=charge, from_us=begins, to_us=ends, identity=identity,
        payload=payload_of(charge),
    )  # fmt: skip


@lru_cache(maxsize=65_536)
def _cell(value: str) -> str | None:
    """A cell without the blanks around it, None for none; the same ones come again and again."""
    text = printable(value)
    return None if text in _NULL else text


def _number(row: Row, cells: Mapping[str, str | None], name: str) -> str | None:
    text = cells.get(name)
    if text is None:
        return None
    found = _amount_text(text)
    if found is None:
        row.fault(name, text, "a number")
    return found


def _needed(row: Row, cells: Mapping[str, str | None], name: str) -> str | None:
    if cells[name] is None:
        row.fault(name, None, "a text")
    return cells[name]


def _moment(row: Row, cells: Mapping[str, str | None], name: str, told: Told) -> int | None:
    text = cells[name]
    if text is None:
        row.fault(name, None, "a moment")
        return None
    found, without = _read_moment(text)
    if found is None:
        row.fault(name, text, "a moment in UTC, 2024-09-01T00:00:00Z")
    elif without:
        told.note(f"{name} {without}")
    return found


@lru_cache(maxsize=4096)
def _read_moment(text: str) -> tuple[int | None, str]:
    """A moment, and what it was written without; the same ones come again and again."""
    written = text.replace(" ", "T", 1)
    try:
        return utc_us(written), ""
    except (ValueError, OverflowError):
        pass
    day = "T00:00:00" if len(written) == len("2024-09-01") else ""
    try:
        found = utc_us(f"{written}{day}Z")
    except (ValueError, OverflowError):
        return None, ""
    if day:
        return found, "is a day alone, and is read as its first moment in UTC"
    return found, "has no zone and is read as UTC, as FOCUS requires"


@lru_cache(maxsize=65_536)
def _amount_text(text: str) -> str | None:
    """The decimal text of an amount, None for none."""
    found = amount_in(text)
    return None if found is None else decimal_text(found)


def statements(known: Iterable[Stated], charged: Sequence[Charged]) -> list[Stated]:
    """What an export states, given what is known: the same rows, corrected ones, and new ones.

    A row corrects a known one where each is the only one of its kind; otherwise what is not known word
    for word is new, so that no charge is ever lost to another.
    """
    held: dict[str, list[Stated]] = {}
    for each in known:
        held.setdefault(each.natural.split("/")[1], []).append(each)
    groups: dict[str, list[Charged]] = {}
    for each in charged:
        groups.setdefault(each.identity, []).append(each)
    return [s for identity, rows in groups.items() for s in _group(rows, held.get(identity, []))]


def _group(rows: Sequence[Charged], held: Sequence[Stated]) -> Iterator[Stated]:
    """Rows of one identity under the names of known ones; a new name begins with what the row says."""
    if len(rows) == len(held) == 1:
        yield _stated(rows[0], held[0].natural)
        return
    names: dict[str, list[str]] = {}
    for each in held:
        names.setdefault(_content(each.text, each.valid_from, each.valid_to), []).append(
            each.natural
        )
    times: Counter[str] = Counter()
    for row in rows:
        content = row.content
        times[content] += 1
        known = names.get(content)
        new = f"focus/{row.identity}/{content}/{times[content]}"
        yield _stated(row, known.pop(0) if known else new)


def _stated(each: Charged, natural: str) -> Stated:
    return Stated(
        natural=natural,
        value=each.charge,
        subject=f"cloud:{name_part(each.charge.provider or 'unnamed')}",
        valid_from=each.from_us,
        valid_to=each.to_us,
        grade=Grade.METERED,
        payload=each.payload,
    )
