"""Lines of a bank's account as statements, from its CSV by a mapping or from camt.053.

Decides what makes two lines the same: the bank's own reference where there is one, else the day, the
amount and all that is written, and a count, because two equal lines on one day are two lines. A line is
never made to belong to a bill or a payout here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from ouvrage.adapters.catalogues.rows import Row, printable
from ouvrage.adapters.feeds.mapping import TableMap, mapped_rows, sign_of, with_days
from ouvrage.adapters.feeds.moments import day_of_text, day_period
from ouvrage.adapters.feeds.table import amount_text
from ouvrage.adapters.feeds.told import Told, key_part
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.ledger.stated import Stated
from ouvrage.model.cash import BankLine

_NEEDED = (("day",), ("amount", "debit", "credit"))
_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A booked line; ``reference`` is empty where the bank gives none."""

    place: str
    account: str
    day: date
    amount: Decimal
    currency: str
    reference: str
    counterparty: str
    text: str


def read_bank(
    text: str, told: Told, mapping: TableMap, account: str | None, currency: str | None
) -> list[Line]:
    """The lines of a CSV; rows that cannot be read go to ``told.faults``."""
    rows, names = mapped_rows(told, text, mapping, _NEEDED)
    sign = sign_of(rows, names, mapping, ("amount", "debit", "credit"))
    mapping = with_days(mapping, rows, names, told)
    found: list[Line] = []
    for row in rows:
        line = _line(row, names, sign, mapping, account, currency)
        told.faults += row.faults
        if line is not None and not row.faults:
            found.append(line)
    return found


def _line(
    row: Row,
    names: Mapping[str, str],
    sign: str | None,
    mapping: TableMap,
    account: str | None,
    currency: str | None,
) -> Line | None:
    def text(meaning: str) -> str:
        return (row.text(names[meaning]) or "") if meaning in names else ""

    day = _day(row, names["day"], text("day"), mapping)
    amount = _amount(row, names, sign)
    own, code = account or text("account"), text("currency") or mapping.currency or currency or ""
    if not own:
        row.fault(names.get("account", "account"), None, "the account: name it with --account")
    if len(code) != 3 or not code.isalpha() or not code.isupper():
        row.fault(
            names.get("currency", "currency"),
            code,
            "a currency such as EUR: name it with --currency",
        )
    if day is None or amount is None:
        return None
    return Line(
        place=row.place,
        account=own,
        day=day,
        amount=amount,
        currency=code,
        reference=text("reference"),
        counterparty=text("counterparty"),
        text=text("text"),
    )


def _day(row: Row, name: str, said: str, mapping: TableMap) -> date | None:
    for form in mapping.days:
        found = day_of_text(said, form)
        if found is not None:
            return found
    row.fault(name, said, "a day as the mapping writes it")
    return None


def _amount(row: Row, names: Mapping[str, str], sign: str | None) -> Decimal | None:
    """The amount, negative where money left; debit and credit may stand in columns of their own."""
    said = {
        m: str(row.cells.get(names[m]) or "").strip()
        for m in ("amount", "debit", "credit")
        if m in names
    }
    given = {m: t for m, t in said.items() if t}
    if "amount" in given:
        return _number(row, names["amount"], given["amount"], sign)
    if len(given) != 1:
        row.fault(
            names.get("amount", names.get("debit", "amount")),
            None,
            "an amount, or one of debit and credit",
        )
        return None
    meaning, text = given.popitem()
    found = _number(row, names[meaning], text, sign)
    if found is None:
        return None
    return -abs(found) if meaning == "debit" else found


def _number(row: Row, name: str, text: str, sign: str | None) -> Decimal | None:
    found = None if sign is None else amount_text(text, sign)
    if found is None:
        words = (
            "an amount" if sign else "an amount; the decimal sign is unclear: name it in a mapping"
        )
        row.fault(name, text, words)
    return found


def statements(lines: Iterable[Line], zone: str) -> list[Stated]:
    """Lines as statements, each once; equal ones of one file are counted."""
    seen: dict[str, int] = {}
    found: list[Stated] = []
    for line in lines:
        key = _key(line)
        seen[key] = seen.get(key, 0) + 1
        start, end = day_period(line.day, zone)
        found.append(
            Stated(
                natural=f"bank/{key}/{seen[key]}",
                value=BankLine(
                    account=line.account,
                    reference=line.reference,
                    amount=decimal_text(line.amount),
                    currency=line.currency,
                    counterparty=line.counterparty,
                    text=printable(line.text)[:_LONGEST],
                ),
                subject=f"account:{key_part(line.account)}",
                valid_from=start,
                valid_to=end,
                grade=Grade.METERED,
            )
        )
    return found


def _key(line: Line) -> str:
    account = key_part(line.account.replace(" ", ""))
    if line.reference:
        return f"{account}/ref/{key_part(line.reference, 200)}"
    said = canonical([str(line.amount.normalize()), line.currency, line.counterparty, line.text])
    return f"{account}/{line.day.isoformat()}/{sha256_hex(said)[:16]}"
