"""Bills in a CSV by a mapping: what was billed for which period, and the energy that it states.

Decides that a bill needs a number, an amount, a currency and what it is for, and that the same number of
the same sort about the same thing is the same bill, so that a corrected file corrects it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from ouvrage.adapters.catalogues.rows import Row
from ouvrage.adapters.feeds.mapping import TableMap, mapped_rows, sign_of, with_days
from ouvrage.adapters.feeds.moments import day_of_text
from ouvrage.adapters.feeds.table import amount_text
from ouvrage.adapters.feeds.told import Told, key_part
from ouvrage.base.grades import Grade
from ouvrage.base.names import is_campaign
from ouvrage.base.numbers import decimal_text
from ouvrage.books.period import day_start
from ouvrage.ledger.stated import Stated
from ouvrage.model.cash import COSTS, CostBill
from ouvrage.model.sites import OBJECTS

_NEEDED = (("number",), ("amount",), ("from", "day"))
_KWH = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What holds for rows that do not say it themselves, and the zone of their days."""

    about: str | None
    sort: str | None
    currency: str | None
    zone: str


def read_bills(text: str, told: Told, mapping: TableMap, defaults: Defaults) -> None:
    """The bills of a file, as statements in ``told``; rows that cannot be read are faults."""
    rows, names = mapped_rows(told, text, mapping, _NEEDED)
    sign = sign_of(rows, names, mapping, ("amount", "tax", "kwh"))
    mapping = with_days(mapping, rows, names, told)
    seen: set[str] = set()
    for row in rows:
        stated = _Bill(row, names, sign, mapping, defaults).stated()
        if stated is not None and stated.natural in seen:
            row.fault(names["number"], row.cells.get(names["number"]), "each number once in a file")
        told.faults += row.faults
        if stated is not None and not row.faults:
            seen.add(stated.natural)
            told.stated.append(stated)


class _Bill:
    """One row, read under a mapping."""

    def __init__(
        self,
        row: Row,
        names: Mapping[str, str],
        sign: str | None,
        mapping: TableMap,
        defaults: Defaults,
    ) -> None:
        self._row = row
        self._names = names
        self._sign = sign
        self._map = mapping
        self._defaults = defaults

    def stated(self) -> Stated | None:
        """The bill, or None where the row's faults say why not."""
        number, amount = self._text("number"), self._number("amount")
        about = self._word("about", self._defaults.about)
        sort = self._word("sort", self._defaults.sort)
        currency = self._word("currency", self._map.currency or self._defaults.currency)
        period = self._period()
        tax, kwh = self._number("tax"), self._number("kwh")
        self._checked(number, amount, about, sort, currency, kwh)
        if period is None or self._row.faults or amount is None:
            return None
        value = CostBill(
            number=number,
            about=about,
            sort=sort,
            what=self._text("what") or sort,
            amount=decimal_text(amount),
            tax=None if tax is None else decimal_text(tax),
            currency=currency,
            energy_j=None if kwh is None else int(kwh * _KWH),
            due=self._due(),
        )
        return Stated(
            natural=f"bill/{about}/{sort}/{key_part(number, 200)}",
            value=value,
            subject=about,
            valid_from=period[0],
            valid_to=period[1],
            grade=Grade.METERED,
        )

    def _checked(
        self,
        number: str,
        amount: Decimal | None,
        about: str,
        sort: str,
        currency: str,
        kwh: Decimal | None,
    ) -> None:
        given: list[tuple[str, bool, object, str]] = [
            ("number", bool(number), None, "the bill's number"),
            ("amount", amount is not None, self._text("amount"), "an amount"),
            (
                "about",
                about.partition(":")[0] in OBJECTS and is_campaign(about.partition(":")[2]),
                about,
                "site:NAME or node:NAME, or --about",
            ),
            ("sort", sort in COSTS, sort, f"one of {', '.join(COSTS)}"),
            (
                "currency",
                len(currency) == 3 and currency.isupper(),
                currency,
                "a currency such as EUR, or --currency",
            ),
            ("kwh", kwh is None or kwh >= 0, kwh, "energy that is not negative"),
        ]
        for meaning, good, found, expected in given:
            if not good and not any(
                f.field == self._names.get(meaning, meaning) for f in self._row.faults
            ):
                self._row.fault(
                    self._names.get(meaning, meaning),
                    None if found is None else str(found),
                    expected,
                )

    def _text(self, meaning: str) -> str:
        return (self._row.text(self._names[meaning]) or "") if meaning in self._names else ""

    def _word(self, meaning: str, otherwise: str | None) -> str:
        return self._text(meaning) or otherwise or ""

    def _number(self, meaning: str) -> Decimal | None:
        said = self._text(meaning)
        if not said:
            return None
        found = None if self._sign is None else amount_text(said, self._sign)
        if found is None:
            self._row.fault(self._names[meaning], said, "a number, with a clear decimal sign")
        return found

    def _day(self, meaning: str) -> date | None:
        said = self._text(meaning)
        for form in self._map.days if said else ():
            found = day_of_text(said, form)
            if found is not None:
                return found
        if said:
            self._row.fault(self._names[meaning], said, "a day such as 2026-11-30")
        return None

    def _due(self) -> str | None:
        found = self._day("due")
        return None if found is None else found.isoformat()

    def _period(self) -> tuple[int, int] | None:
        first = self._day("from") or self._day("day")
        last = self._day("to") or first
        if first is None or last is None:
            if not self._row.faults:
                self._row.fault(
                    self._names.get("from", "from"), None, "the days that the bill is for"
                )
            return None
        if self._map.to_included or last == first:
            last += timedelta(days=1)
        if last <= first:
            found = self._text("to") or last.isoformat()
            self._row.fault(self._names.get("to", "to"), found, f"a day after {first}")
            return None
        return day_start(first, self._defaults.zone), day_start(last, self._defaults.zone)
