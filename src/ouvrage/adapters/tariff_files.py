"""A supplier's tariff from a file: our own TOML form, or the JSON of the OpenEI rate database.

Decides what each form's fields mean and refuses what this program cannot price exactly, by field. In the
database's form a price is ``rate + adj`` of the period that two schedules (weekdays and weekends, a row a
month, a number an hour) name; its dates are whole days, the last one included. A tariff of either form
must name exactly one price for every hour of a year.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ouvrage.adapters.json_text import load_json
from ouvrage.adapters.toml_text import load_toml
from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import check_name
from ouvrage.base.numbers import decimal_text
from ouvrage.books.period import day_of, day_start, zone_of
from ouvrage.books.tariffs import DAYS, MONTHS, faults_in
from ouvrage.model.tariffs import Tariff, TariffBand, TariffTier

_NUMBER = re.compile(r"[+-]?[0-9]{1,12}(?:\.[0-9]{1,20})?")
_KEYS = {
    "name", "currency", "zone", "from", "to", "standing_per_day", "standing_per_month",
    "demand_per_kw_month", "tax_included", "band", "tier",
}  # fmt: skip
_BAND_KEYS = {"name", "months", "weekdays", "hours", "per_kwh", "export_per_kwh"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the site gives where a file does not say: ``site``, ``currency``, ``zone``, a ``name``.

    ``since_us`` is from when on it holds where no day is named.
    """

    site: str
    currency: str
    zone: str
    name: str | None
    since_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffRead:
    """A tariff and its half-open period (``to_us`` None: without end)."""

    tariff: Tariff
    from_us: int
    to_us: int | None


def read_tariff(file: str, text: str, asked: Asked) -> TariffRead:
    """The tariff in a file. Raises ``OuvrageError`` ``tariff/...`` with the file and the field."""
    if text.lstrip()[:1] in ("{", "["):
        found = _rate_database(file, load_json(file, text, "tariff/json"), asked)
    else:
        found = _own_form(file, load_toml(file, text, "tariff/toml"), asked)
    _complete(file, found.tariff)
    return found


def _complete(file: str, tariff: Tariff) -> None:
    check_name("tariff", tariff.name, "--name night-and-day")
    zone_of(tariff.zone)
    holes, twice = faults_in(tariff.bands)
    if holes:
        raise OuvrageError(
            "tariff/hole", f"{file}: {tariff.name} states no price for {len(holes)} stretches",
            where=tuple(f"no price: {each}" for each in holes),
            hint="every hour of a year has a price: add a band for these hours",
        )  # fmt: skip
    if twice:
        raise OuvrageError(
            "tariff/overlap", f"{file}: {tariff.name} states two prices for the same hours",
            where=tuple(f"two prices: {each}" for each in twice),
            hint="name each hour in one band",
        )  # fmt: skip


def _refused(file: str, field: str, found: object, expected: str) -> OuvrageError:
    return OuvrageError(
        "tariff/field", f"{file}: {field} is {found!r}, expected {expected}",
        where=(f"{file}   {field}",), hint="ouvrage own tariff --help shows the form",
    )  # fmt: skip


def _decimal(file: str, field: str, value: object) -> str:
    """Plain decimal text of a number or a text that is one."""
    text = str(value).strip()
    if isinstance(value, bool | float) or not isinstance(value, int | str | Decimal):
        raise _refused(file, field, value, "an amount")
    if isinstance(value, Decimal) and value.is_finite():
        return decimal_text(value)
    if not _NUMBER.fullmatch(text):
        raise _refused(file, field, value, "an amount such as 0.1812")
    return decimal_text(Fraction(text))


def _maybe(file: str, field: str, value: object) -> str | None:
    return None if value is None else _decimal(file, field, value)


def _own_form(file: str, found: Mapping[str, Any], asked: Asked) -> TariffRead:
    unknown = sorted(set(found) - _KEYS)
    if unknown:
        raise _refused(file, unknown[0], found[unknown[0]], f"one of {', '.join(sorted(_KEYS))}")
    bands, tiers = found.get("band"), found.get("tier", [])
    if not isinstance(bands, list) or not bands:
        raise _refused(file, "band", bands, "one table [[band]] or more, each with per_kwh")
    zone = str(found.get("zone", asked.zone))
    zone_of(zone)
    name = asked.name or found.get("name")
    tax = found.get("tax_included", True)
    if not isinstance(name, str) or not isinstance(tax, bool):
        field = "tax_included" if isinstance(name, str) else "name"
        raise _refused(file, field, found.get(field), "a name, and true or false")
    tariff = Tariff(
        name=name,
        site=asked.site,
        currency=_currency(file, found.get("currency", asked.currency), asked),
        zone=zone,
        bands=tuple(_band(file, index, band) for index, band in enumerate(bands, 1)),
        tiers=_tiers(file, tiers),
        standing_per_day=_maybe(file, "standing_per_day", found.get("standing_per_day")),
        standing_per_month=_maybe(file, "standing_per_month", found.get("standing_per_month")),
        demand_per_kw_month=_maybe(file, "demand_per_kw_month", found.get("demand_per_kw_month")),
        tax_included=tax,
    )
    from_us = _day(file, "from", found.get("from"), zone)
    to_us = _day(file, "to", found.get("to"), zone)
    return _dated(file, tariff, asked.since_us if from_us is None else from_us, to_us)


def _dated(file: str, tariff: Tariff, from_us: int, to_us: int | None) -> TariffRead:
    if to_us is not None and to_us <= from_us:
        raise _refused(file, "to", "not after from", "the first day on which it does not hold")
    return TariffRead(tariff=tariff, from_us=from_us, to_us=to_us)


def _currency(file: str, value: object, asked: Asked) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Z]{3}", value):
        raise _refused(file, "currency", value, f"a code such as {asked.currency}")
    return value


def _day(file: str, field: str, value: object, zone: str) -> int | None:
    if value is None:
        return None
    try:
        found = value if isinstance(value, date) else date.fromisoformat(str(value))
    except ValueError as error:
        raise _refused(file, field, value, "a day such as 2026-01-01") from error
    return day_start(date(found.year, found.month, found.day), zone)


def _band(file: str, index: int, band: object) -> TariffBand:
    where = f"band {index}"
    if not isinstance(band, dict) or set(band) - _BAND_KEYS:
        raise _refused(file, where, band, f"fields {', '.join(sorted(_BAND_KEYS))}")
    name = band.get("name", f"band-{index}")
    if not isinstance(name, str):
        raise _refused(file, f"{where} name", name, "a name in quotes")
    if "per_kwh" not in band:
        raise _refused(file, f"{where} per_kwh", None, "the price of a kilowatt-hour")
    return TariffBand(
        name=name,
        months=_span(file, f"{where} months", band.get("months", "1-12"), MONTHS, 1),
        weekdays=_span(file, f"{where} weekdays", band.get("weekdays", "mon-sun"), DAYS, 0),
        hours=_hours(file, f"{where} hours", band.get("hours", "0-24")),
        per_kwh=_decimal(file, f"{where} per_kwh", band["per_kwh"]),
        export_per_kwh=_maybe(file, f"{where} export_per_kwh", band.get("export_per_kwh")),
    )


def _span(
    file: str, field: str, value: object, names: Sequence[str], first: int
) -> tuple[int, ...]:
    """``mon-fri``, ``sat, sun``, ``nov-mar`` or ``1-3``: numbers from ``first``, both ends included."""
    size = len(names)
    found: set[int] = set()
    for part in _parts(value):
        begins, dash, ends = part.partition("-")
        low = _index(begins, names, first)
        high = _index(ends, names, first) if dash else low
        if low is None or high is None:
            raise _refused(
                file, field, value, f"such as {names[0][:3].lower()}-{names[4][:3].lower()}"
            )
        found |= {(low + step) % size for step in range((high - low) % size + 1)}
    return tuple(sorted(each + first for each in found))


def _parts(value: object) -> list[str]:
    given = value if isinstance(value, list) else str(value).split(",")
    return [str(each).strip().lower() for each in given]


def _index(text: str, names: Sequence[str], first: int) -> int | None:
    text = text.strip()
    if text.isdigit() and first <= int(text) < first + len(names):
        return int(text) - first
    fits = [i for i, name in enumerate(names) if len(text) > 2 and name.lower().startswith(text)]
    return fits[0] if len(fits) == 1 else None


def _hours(file: str, field: str, value: object) -> tuple[int, ...]:
    """``22-6`` is from ten in the evening to six in the morning, the end not included."""
    found: set[int] = set()
    for part in _parts(value):
        match = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", part)
        low, high = (int(match[1]), int(match[2] or int(match[1]) + 1)) if match else (-1, -1)
        if not 0 <= low <= 23 or not 0 <= high <= 24 or low == high:
            raise _refused(file, field, value, "hours such as 22-6, the end not included")
        found |= {(low + step) % 24 for step in range((high - low) % 24 or 24)}
    return tuple(sorted(found))


def _tiers(file: str, tiers: object) -> tuple[TariffTier, ...]:
    if not isinstance(tiers, list):
        raise _refused(file, "tier", tiers, "tables [[tier]]")
    found: list[TariffTier] = []
    for index, tier in enumerate(tiers, 1):
        if not isinstance(tier, dict) or set(tier) - {"up_to_kwh", "add_per_kwh"}:
            raise _refused(file, f"tier {index}", tier, "up_to_kwh and add_per_kwh")
        found.append(
            TariffTier(
                up_to_kwh=_maybe(file, f"tier {index} up_to_kwh", tier.get("up_to_kwh")),
                add_per_kwh=_decimal(file, f"tier {index} add_per_kwh", tier.get("add_per_kwh")),
            )
        )
    _in_order(file, found)
    return tuple(found)


def _in_order(file: str, tiers: Sequence[TariffTier]) -> None:
    """Each tier ends after the one before, and only the last one has no end."""
    before = Fraction(0)
    for index, tier in enumerate(tiers, 1):
        last = index == len(tiers)
        if (tier.up_to_kwh is None) != last:
            expected = (
                "left out: what is above the others" if last else "the kWh up to which it goes"
            )
            raise _refused(file, f"tier {index} up_to_kwh", tier.up_to_kwh, expected)
        if tier.up_to_kwh is not None:
            if Fraction(tier.up_to_kwh) <= before:
                raise _refused(
                    file, f"tier {index} up_to_kwh", tier.up_to_kwh, f"more than {before}"
                )
            before = Fraction(tier.up_to_kwh)


# The JSON of the OpenEI rate database (fields named as in its interface, version 7 and earlier).

_UNPRICED = (
    "demandratestructure",
    "coincidentratestructure",
    "reactivepowercharge",
    "fueladjustmentsmonthly",
)


def _rate_database(file: str, value: Any, asked: Asked) -> TariffRead:
    items = value.get("items") if isinstance(value, dict) and "items" in value else value
    item = items[0] if isinstance(items, list) and len(items) == 1 else items
    if not isinstance(item, dict) or "energyratestructure" not in item:
        count = len(items) if isinstance(items, list) else "none"
        raise _refused(file, "items", count, "one tariff with an energyratestructure")
    for field in _UNPRICED:
        if item.get(field):
            raise _refused(file, field, "there", "none: this part of a tariff is not priced here")
    periods, tiers = _periods(file, item["energyratestructure"])
    months = (
        ("energyweekdayschedule", (0, 1, 2, 3, 4)),
        ("energyweekendschedule", (5, 6)),
    )
    bands: list[TariffBand] = []
    for field, weekdays in months:
        bands += _scheduled(file, field, item.get(field), weekdays, periods)
    tariff = Tariff(
        name=asked.name or _name_of(item),
        site=asked.site,
        currency=asked.currency,
        zone=asked.zone,
        bands=tuple(bands),
        tiers=tiers,
        standing_per_day=_fixed(file, item, "day"),
        standing_per_month=_fixed(file, item, "month"),
        demand_per_kw_month=_demand(file, item),
        tax_included=False,
    )
    from_us, to_us = _dates(file, item, asked.zone)
    return _dated(file, tariff, asked.since_us if from_us is None else from_us, to_us)


def _name_of(item: Mapping[str, Any]) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", "-", str(item.get("name") or item.get("label") or "tariff"))
    return words.strip("-").lower()[:60].rstrip("-") or "tariff"


def _periods(file: str, structure: object) -> tuple[list[str], tuple[TariffTier, ...]]:
    """The price of each period's first tier, and what the further tiers add, the same in all periods."""
    if not isinstance(structure, list) or not structure:
        raise _refused(file, "energyratestructure", structure, "a list of periods")
    prices: list[str] = []
    added: list[tuple[TariffTier, ...]] = []
    for index, rows in enumerate(structure):
        where = f"energyratestructure[{index}]"
        if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            raise _refused(file, where, rows, "a list of tiers with a rate")
        whole = [_price(file, f"{where}[{n}]", row) for n, row in enumerate(rows)]
        prices.append(decimal_text(whole[0]))
        tiers = [
            TariffTier(
                up_to_kwh=_maybe(file, f"{where}[{n}] max", row.get("max")),
                add_per_kwh=decimal_text(price - whole[0]),
            )
            for n, (row, price) in enumerate(zip(rows, whole, strict=True))
        ]
        _in_order(file, tiers)
        added.append(tuple(tiers) if len(tiers) > 1 else ())
    if len(set(added)) > 1:
        raise _refused(
            file, "energyratestructure", "tiers that differ by period",
            "tiers that add the same in every period; others are not priced here",
        )  # fmt: skip
    return prices, added[0]


def _price(file: str, where: str, row: Mapping[str, Any]) -> Fraction:
    unit = str(row.get("unit") or "kWh")
    if unit.lower() != "kwh":
        raise _refused(file, f"{where} unit", unit, "kWh")
    rate, adj = (_decimal(file, f"{where} {name}", row.get(name) or 0) for name in ("rate", "adj"))
    return Fraction(rate) + Fraction(adj)


def _scheduled(
    file: str, field: str, schedule: object, weekdays: tuple[int, ...], prices: Sequence[str]
) -> list[TariffBand]:
    """Bands of one of the two schedules: a row a month, the number of a period an hour."""
    if not isinstance(schedule, list):
        raise _refused(file, field, schedule, "12 rows of 24 numbers")
    hours: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for month, row in enumerate(schedule[:12], 1):
        claimed: dict[int, list[int]] = {}
        for hour, period in enumerate(row[:24] if isinstance(row, list) else ()):
            if not isinstance(period, int) or not 0 <= period < len(prices):
                raise _refused(file, f"{field}[{month - 1}][{hour}]", period, "a period's number")
            claimed.setdefault(period, []).append(hour)
        for period, found in claimed.items():
            hours.setdefault((period, tuple(found)), []).append(month)
    return [
        TariffBand(
            name=f"period-{period}",
            months=tuple(months),
            weekdays=weekdays,
            hours=found,
            per_kwh=prices[period],
            export_per_kwh=None,
        )
        for (period, found), months in hours.items()
    ]


def _fixed(file: str, item: Mapping[str, Any], per: str) -> str | None:
    amount = item.get("fixedchargefirstmeter")
    if not amount:
        return None
    units = str(item.get("fixedchargeunits") or "$/month")
    if units not in ("$/month", "$/day"):
        raise _refused(file, "fixedchargeunits", units, "$/month or $/day")
    return _decimal(file, "fixedchargefirstmeter", amount) if units == f"$/{per}" else None


def _demand(file: str, item: Mapping[str, Any]) -> str | None:
    structure = item.get("flatdemandstructure")
    if not structure:
        return None
    rates = {
        _decimal(file, "flatdemandstructure rate", (tier.get("rate") or 0))
        for tiers in structure
        for tier in tiers
    }
    if len(rates) > 1:
        raise _refused(file, "flatdemandstructure", sorted(rates), "one rate all the year round")
    return rates.pop()


def _dates(file: str, item: Mapping[str, Any], zone: str) -> tuple[int | None, int | None]:
    """The days that two moments lie in; the second is the last day on which it holds."""
    found: list[int | None] = []
    for field, later in (("startdate", 0), ("enddate", 1)):
        value = item.get(field)
        if value is None:
            found.append(None)
            continue
        if not isinstance(value, int):
            raise _refused(file, field, value, "seconds since 1970")
        moment = datetime.fromtimestamp(value, timezone.utc)
        day = day_of(int(moment.timestamp()) * 1_000_000, zone) + timedelta(days=later)
        found.append(day_start(day, zone))
    return found[0], found[1]
