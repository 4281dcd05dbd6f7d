"""Earnings in somebody's CSV, read by a mapping: by day, hour, period or block, in money or tokens.

Decides how a price and a quantity become an amount, how a chain's smallest units become its coin, how a
fee is stated (a fraction, a percentage, an amount; before or after it), and that rows about the same
machine, period and component in one file are added. Tokens stay tokens: only a dated rate of exchange,
recorded as such, makes money of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from ouvrage.adapters.catalogues.rows import Row
from ouvrage.adapters.feeds.mapping import TableMap, mapped_rows, sign_of, with_days
from ouvrage.adapters.feeds.moments import day_of_text, day_period, moment_of, wall_moment
from ouvrage.adapters.feeds.table import amount_text
from ouvrage.adapters.feeds.told import Told, key_part, name_part
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import PER_US
from ouvrage.base.time import HOUR, utc_text
from ouvrage.books.period import day_of
from ouvrage.ledger.stated import Stated
from ouvrage.model.cash import CostBill
from ouvrage.model.earnings import COMPONENTS, Earning

_NEEDED = (("day", "time", "from"), ("amount", "price"))
_NUMBERS = ("amount", "price", "quantity", "fee", "sold_hours")


@dataclass(frozen=True, slots=True, kw_only=True)
class Earned:
    """One row: what it is (``earning`` or a kind of cost), of which machine, and how much of what."""

    place: str
    what: str
    machine: str | None
    from_us: int
    to_us: int
    component: str
    amount: Fraction
    fee: Fraction | None
    currency: str
    tenant: str | None
    document: str | None
    sold_us: int | None
    rows: int = 1


def read_earnings(text: str, told: Told, mapping: TableMap, zone: str) -> list[Earned]:
    """The rows of a file that can be read; the others go to ``told.faults``."""
    rows, names = mapped_rows(told, text, mapping, _NEEDED)
    sign = sign_of(rows, names, mapping, _NUMBERS)
    mapping = with_days(mapping, rows, names, told)
    reader = _Rows(mapping, names, sign, mapping.zone or zone, told)
    found: list[Earned] = []
    seen: dict[str, str] = {}
    for row in rows:
        earned = reader.read(row)
        if earned is not None and not row.faults:
            reader.repeated(row, seen)
        told.faults += row.faults
        if earned is not None and not row.faults:
            found.append(earned)
    return found


class _Rows:
    """Reads rows under one mapping."""

    def __init__(
        self, mapping: TableMap, names: Mapping[str, str], sign: str | None, zone: str, told: Told
    ) -> None:
        self._map = mapping
        self._names = names
        self._sign = sign
        self._zone = zone
        self._told = told
        self._before: int | None = None

    def read(self, row: Row) -> Earned | None:
        """The row, or None where it is left out or refused."""
        what = self._what(row)
        if what is None:
            return None
        period = self._period(row)
        currency, scale = self._currency(row)
        if period is None or currency is None:
            return None
        amount = self._amount(row, period, scale)
        if amount is None:
            return None
        gross, fee = self._with_fee(row, amount)
        sold, tenant = self._number(row, "sold_hours"), self._text(row, "tenant")
        return Earned(
            place=row.place,
            what=what,
            machine=self._text(row, "machine"),
            from_us=period[0],
            to_us=period[1],
            component=self._component(row),
            amount=gross,
            fee=fee,
            currency=currency,
            tenant=None if tenant is None else name_part(tenant),
            document=self._text(row, "document"),
            sold_us=None if sold is None else round(sold * HOUR),
        )

    def repeated(self, row: Row, seen: dict[str, str]) -> None:
        """Refuse a row that repeats another whole one; where nothing tells two apart, both count."""
        first = seen.setdefault(row.raw, row.place)
        if first == row.place:
            return
        if any(self._text(row, meaning) for meaning in ("document", "time", "from")):
            row.fault("row", f"line {first} again", "each row once")
        else:
            self._told.note(
                f"line {row.place} equals line {first}; both count, as two equal sales of a day"
            )

    def _text(self, row: Row, meaning: str) -> str | None:
        return row.text(self._names[meaning]) if meaning in self._names else None

    def _number(self, row: Row, meaning: str) -> Fraction | None:
        name = self._names.get(meaning)
        said = None if name is None else row.cells.get(name)
        if name is None or said in (None, ""):
            return None
        found = amount_text(said, self._sign or ".")
        if found is None or self._sign is None:
            row.fault(name, said, "a number, with the decimal sign that the mapping names")
            return None
        return Fraction(found)

    def _what(self, row: Row) -> str | None:
        if not self._map.rows:
            return "earning"
        word = (self._text(row, "sort") or "").lower()
        what = self._map.rows.get(word)
        if what is None:
            row.fault(self._names.get("sort", "sort"), word, f"one of {', '.join(self._map.rows)}")
        elif what == "ignore":
            self._told.note(f"of sort {word}: left out, as the mapping says")
            return None
        return what

    def _component(self, row: Row) -> str:
        word = (self._text(row, "component") or self._map.component).lower()
        if word not in COMPONENTS:
            row.fault(
                self._names.get("component", "component"), word, f"one of {', '.join(COMPONENTS)}"
            )
        return word

    def _currency(self, row: Row) -> tuple[str | None, Fraction]:
        word = self._text(row, "currency") or self._map.currency
        if word is None:
            row.fault(self._names.get("currency", "currency"), None, "a currency")
            return None, Fraction(1)
        unit = self._map.denominations.get(word)
        if unit is not None:
            return unit.currency, Fraction(1, 10**unit.decimals)
        if not word.isalnum() or not word.isupper() or not 2 <= len(word) <= 10:
            known = ", ".join(self._map.denominations) or "EUR, USD, AKT"
            row.fault(self._names.get("currency", "currency"), word, f"a currency such as {known}")
            return None, Fraction(1)
        return word, Fraction(1)

    def _period(self, row: Row) -> tuple[int, int] | None:
        for meaning, of in (("from", self._between), ("time", self._hour), ("day", self._day)):
            if self._names.get(meaning) and self._text(row, meaning):
                return of(row)
        row.fault(self._names.get("day", "day"), None, "a day")
        return None

    def _day(self, row: Row) -> tuple[int, int] | None:
        said = self._text(row, "day") or ""
        for form in self._map.days:
            day = day_of_text(said, form)
            if day is not None:
                return day_period(day, self._zone)
        row.fault(
            self._names["day"], said, f"a day as {' or '.join(self._map.days) or 'ISO'} writes it"
        )
        return None

    def _moment(self, row: Row, meaning: str) -> int | None:
        said = self._text(row, meaning) or ""
        found = moment_of(said)
        for form in self._map.days if found is None else ():
            found = wall_moment(said, form, self._zone, None) if found is None else found
        if found is None:
            row.fault(self._names[meaning], said, "a moment such as 2026-11-30T14:05:09Z")
        return found

    def _hour(self, row: Row) -> tuple[int, int] | None:
        at = self._moment(row, "time")
        if at is None:
            return None
        if self._map.period == "hour":
            return at, at + HOUR
        return day_period(day_of(at, self._zone), self._zone)

    def _between(self, row: Row) -> tuple[int, int] | None:
        begins, said = self._moment(row, "from"), self._text(row, "to") or ""
        ends = self._moment(row, "to") if "to" in self._names else None
        if begins is None or ends is None:
            if ends is None and not row.faults:
                row.fault(self._names.get("to", "to"), said, "the end of the period")
            return None
        if self._map.to_included and len(said) <= 10:
            ends = day_period(day_of(ends, self._zone), self._zone)[1]
        if ends <= begins:
            row.fault(self._names["to"], said, "a moment after the beginning")
            return None
        return begins, ends

    def _amount(self, row: Row, period: tuple[int, int], scale: Fraction) -> Fraction | None:
        stated = self._number(row, "amount")
        if stated is not None:
            return stated * scale
        price = self._number(row, "price")
        if price is None:
            if not row.faults:
                row.fault(
                    self._names.get("amount", self._names.get("price", "amount")), None, "an amount"
                )
            return None
        quantity = self._quantity(row, period)
        return None if quantity is None else price * quantity * scale

    def _quantity(self, row: Row, period: tuple[int, int]) -> Fraction | None:
        stated = self._number(row, "quantity")
        if stated is not None:
            return stated
        per = self._map.per
        if per == "block":
            first, last = (self._block(row, name) for name in ("from_block", "to_block"))
            if first is None or last is None:
                return None
            if last < first:
                row.fault(self._names["to_block"], str(last), f"a block not before {first}")
                return None
            return Fraction(last - first)
        if per is None:
            row.fault(
                self._names["price"], row.cells.get(self._names["price"]), "a quantity beside it"
            )
            return None
        return Fraction(period[1] - period[0], PER_US[per])

    def _block(self, row: Row, meaning: str) -> int | None:
        said = self._text(row, meaning)
        if said is None or not said.isascii() or not said.isdigit():
            row.fault(self._names.get(meaning, meaning), said, "the number of a block")
            return None
        return int(said)

    def _with_fee(self, row: Row, amount: Fraction) -> tuple[Fraction, Fraction | None]:
        """The amount before the fee, and the fee; None where the file does not say."""
        stated = self._number(row, "fee")
        if stated is None and self._map.fee is not None:
            stated = Fraction(Decimal(self._map.fee))
        form = self._map.fee_form
        if stated is None or form is None:
            return amount, None
        if form == "amount":
            return (amount + stated if self._map.net_of_fee else amount), stated
        share = stated / 100 if form == "percent" else stated
        if not 0 <= share < 1:
            row.fault(
                self._names.get("fee", "fee"), decimal_text(stated), f"a {form} below the whole"
            )
            return amount, None
        gross = amount / (1 - share) if self._map.net_of_fee else amount
        return gross, gross * share


def statements(
    files: Sequence[Sequence[Earned]],
    channel: str,
    about_of: Mapping[str | None, str],
    grade: Grade,
) -> list[list[Stated]]:
    """Rows of files as statements: rows of one file about the same thing and period are added.

    Where two files state the same, the one with more rows of it counts, else the later.
    """
    added = [_together(earned) for earned in files]
    best: dict[tuple[object, ...], int] = {}
    for index, found in enumerate(added):
        for key, each in found.items():
            if key not in best or each.rows >= added[best[key]][key].rows:
                best[key] = index
    return [
        [
            _stated(each, channel, about_of[each.machine], grade)
            for key, each in found.items()
            if best[key] == index
        ]
        for index, found in enumerate(added)
    ]


def _together(earned: Sequence[Earned]) -> dict[tuple[object, ...], Earned]:
    found: dict[tuple[object, ...], Earned] = {}
    for each in earned:
        key = (
            each.what,
            each.machine,
            each.document,
            each.from_us,
            each.to_us,
            each.component,
            each.currency,
            each.tenant,
        )
        held = found.get(key)
        found[key] = each if held is None else _added(held, each)
    return found


def _added(one: Earned, other: Earned) -> Earned:
    return replace(
        one,
        rows=one.rows + other.rows,
        amount=one.amount + other.amount,
        fee=None if None in (one.fee, other.fee) else (one.fee or 0) + (other.fee or Fraction(0)),
        sold_us=None
        if None in (one.sold_us, other.sold_us)
        else (one.sold_us or 0) + (other.sold_us or 0),
    )


def _stated(each: Earned, channel: str, about: str, grade: Grade) -> Stated:
    key = [
        channel,
        each.machine or "-",
        each.document or "-",
        utc_text(each.from_us)[:16],
        each.what,
        each.component,
    ]
    if each.tenant:
        key.append(each.tenant)
    natural = "csv/" + "/".join(key_part(part) for part in key) + f"/{each.currency}"
    value = (
        _earning(each, channel, about) if each.what == "earning" else _cost(each, channel, about)
    )
    return Stated(
        natural=natural,
        value=value,
        subject=about,
        valid_from=each.from_us,
        valid_to=each.to_us,
        grade=grade,
    )


def _earning(each: Earned, channel: str, about: str) -> Earning:
    return Earning(
        channel=channel,
        about=about,
        component=each.component,
        amount=decimal_text(each.amount),
        currency=each.currency,
        fee=None if each.fee is None else decimal_text(each.fee),
        sold_us=each.sold_us,
        list_price=None,
        tenant=each.tenant,
        document=each.document,
    )


def _cost(each: Earned, channel: str, about: str) -> CostBill:
    number = each.document or f"{channel} {utc_text(each.from_us)[:10]} {each.what}"
    return CostBill(
        number=number,
        about=about,
        sort=each.what,
        what=f"{channel}: {each.what}",
        amount=decimal_text(abs(each.amount)),
        tax=None,
        currency=each.currency,
        energy_j=None,
        due=None,
    )


def machines_in(earned: Iterable[Earned]) -> list[str]:
    """The machines that rows name, in order."""
    return sorted({each.machine for each in earned if each.machine})
