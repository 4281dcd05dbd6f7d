"""A mapping: which column of somebody's CSV means what, in which unit, as data in TOML.

Decides the form of such a file and refuses what it does not know, naming the key. Ready ones ship with
the package; each says whether it was ever held against a real export (``seen``). What the meanings are
worth is decided by the readers of earnings, bank lines and bills.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from ouvrage.adapters.catalogues.rows import Row
from ouvrage.adapters.feeds.moments import day_of_text
from ouvrage.adapters.feeds.table import column, decimal_sign, rows_of, separator_of
from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import PER_US
from ouvrage.model.cash import COSTS
from ouvrage.model.earnings import COMPONENTS

SORTS = ("earnings", "bank", "bills")
SEEN = ("never", "documentation", "export")
MEANINGS: dict[str, tuple[str, ...]] = {
    "earnings": (
        *("day", "time", "from", "to", "machine", "amount", "price", "quantity", "from_block"),
        *("to_block", "currency", "component", "fee", "tenant", "document", "sold_hours", "sort"),
    ),
    "bank": (
        *("day", "amount", "debit", "credit", "currency", "account", "reference"),
        *("counterparty", "text"),
    ),
    "bills": (
        *("day", "from", "to", "number", "about", "sort", "what", "amount", "tax", "currency"),
        *("kwh", "due"),
    ),
}
_KEYS = {
    "": (
        "name",
        "sort",
        "channel",
        "seen",
        "source",
        "file",
        "columns",
        "values",
        "rows",
        "denominations",
    ),
    "file": ("separator", "encoding", "decimal", "skip", "zone", "days", "period", "to_included"),
    "values": ("currency", "component", "per", "fee", "fee_form", "net_of_fee", "cost"),
}
_HEAD_WITHIN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Denomination:
    """A unit in which a chain counts: ``decimals`` places below one ``currency``."""

    currency: str
    decimals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMap:
    """A mapping as read. ``columns`` holds for each meaning the names that a column may have.

    ``period`` is ``day`` or ``hour``: what a row with one moment is about. ``per`` is the unit of time of
    a price (``block`` where blocks are counted). ``rows`` maps a word in the column ``sort`` to what the
    row is: ``earning``, a kind of cost, or ``ignore``.
    """

    name: str
    sort: str
    channel: str | None
    seen: str
    source: str
    separator: str | None
    encoding: str | None
    decimal: str | None
    skip: int | None
    zone: str | None
    days: tuple[str, ...]
    period: str
    to_included: bool
    columns: Mapping[str, tuple[str, ...]]
    currency: str | None
    component: str
    per: str | None
    fee: str | None
    fee_form: str | None
    net_of_fee: bool
    cost: str
    rows: Mapping[str, str]
    denominations: Mapping[str, Denomination]


def shipped() -> list[str]:
    """The names of the mappings in the package."""
    place = resources.files("ouvrage") / "adapters" / "feeds" / "mappings"
    return sorted(
        each.name.removesuffix(".toml") for each in place.iterdir() if each.name.endswith(".toml")
    )


def shipped_text(name: str) -> str:
    """A shipped mapping as it stands in its file."""
    if name not in shipped():
        raise OuvrageError(
            "mapping/unknown",
            f"no mapping is called {name!r}",
            hint=f"there are: {', '.join(shipped())}",
        )
    place = resources.files("ouvrage") / "adapters" / "feeds" / "mappings" / f"{name}.toml"
    return place.read_text("utf-8")


def load_mapping(name: str, sort: str) -> TableMap:
    """The mapping of a name, or in a file of one's own; of the sort that is wanted."""
    file = f"{name}.toml" if name in shipped() else name
    text = shipped_text(name) if name in shipped() else read_text(Path(name), "mapping")
    found = mapping_in(file, text)
    if found.sort != sort:
        raise OuvrageError(
            "mapping/sort",
            f"{file} is a mapping of {found.sort}, not of {sort}",
            hint=f'sort = "{sort}"',
        )
    return found


def mapping_in(file: str, text: str) -> TableMap:
    """The mapping that a text holds. Raises ``OuvrageError`` ``mapping/…`` with the key."""
    value = load_toml(file, text, "mapping/toml")
    reader = _Reader(file)
    reader.known(value, "", _KEYS[""])
    sort = reader.one_of(value, "sort", SORTS)
    table, values = reader.table(value, "file"), reader.table(value, "values")
    reader.known(table, "file", _KEYS["file"])
    reader.known(values, "values", _KEYS["values"])
    columns = {
        meaning: tuple(names if isinstance(names, list) else [names])
        for meaning, names in reader.table(value, "columns").items()
    }
    reader.known(columns, "columns", MEANINGS[sort])
    reader.checked(values, table)
    return TableMap(
        name=str(value.get("name", file)),
        sort=sort,
        channel=value.get("channel"),
        seen=reader.one_of(value, "seen", SEEN),
        source=str(value.get("source", "")),
        separator=table.get("separator"),
        encoding=table.get("encoding"),
        decimal=table.get("decimal"),
        skip=table.get("skip"),
        zone=table.get("zone"),
        days=tuple(table.get("days", ("",))),
        period=table.get("period", "day"),
        to_included=table.get("to_included", True),
        columns=columns,
        currency=values.get("currency"),
        component=values.get("component", "gpu"),
        per=values.get("per"),
        fee=None if "fee" not in values else str(values["fee"]),
        fee_form=values.get("fee_form"),
        net_of_fee=values.get("net_of_fee", False),
        cost=values.get("cost", "other"),
        rows=reader.words(value),
        denominations=reader.denominations(value),
    )


class _Reader:
    """Reads the parts of a mapping and refuses what is none."""

    def __init__(self, file: str) -> None:
        self.file = file

    def refuse(self, key: str, found: object, expected: str) -> OuvrageError:
        """A refusal that names the key."""
        return OuvrageError(
            "mapping/value",
            f"{self.file}: {key} is {found!r}, expected {expected}",
            where=(f"{self.file}   {key}",),
            hint="ouvrage import mapping shows the ready ones; copy one and change it",
        )

    def known(self, value: Mapping[str, Any], key: str, names: Sequence[str]) -> None:
        """Refuse keys that mean nothing."""
        odd = sorted(set(value) - set(names))
        if odd:
            raise self.refuse(
                f"{key}.{odd[0]}" if key else odd[0], value[odd[0]], f"one of {', '.join(names)}"
            )

    def table(self, value: Mapping[str, Any], key: str) -> dict[str, Any]:
        """A table, empty where it is not there."""
        found = value.get(key, {})
        if not isinstance(found, dict):
            raise self.refuse(key, found, "a table")
        return found

    def one_of(self, value: Mapping[str, Any], key: str, names: Sequence[str]) -> str:
        """A word out of some."""
        found = value.get(key)
        if found not in names:
            raise self.refuse(key, found, f"one of {', '.join(names)}")
        return str(found)

    def checked(self, values: Mapping[str, Any], table: Mapping[str, Any]) -> None:
        """Refuse values that are no word of their key."""
        allowed: list[tuple[str, Any, Sequence[Any]]] = [
            ("values.component", values.get("component", "gpu"), COMPONENTS),
            ("values.per", values.get("per"), (None, "block", *PER_US)),
            ("values.fee_form", values.get("fee_form"), (None, "fraction", "percent", "amount")),
            ("values.cost", values.get("cost", "other"), COSTS),
            ("values.net_of_fee", values.get("net_of_fee", False), (True, False)),
            ("file.period", table.get("period", "day"), ("day", "hour")),
            ("file.decimal", table.get("decimal"), (None, ".", ",")),
            ("file.to_included", table.get("to_included", True), (True, False)),
        ]
        for key, found, words in allowed:
            if found not in words:
                raise self.refuse(
                    key, found, f"one of {', '.join(str(w) for w in words if w is not None)}"
                )
        separator, skip = table.get("separator"), table.get("skip", 0)
        if separator is not None and (not isinstance(separator, str) or len(separator) != 1):
            raise self.refuse("file.separator", separator, "one character")
        if not isinstance(skip, int) or not 0 <= skip <= 1000:
            raise self.refuse("file.skip", skip, "how many lines stand before the line of names")

    def words(self, value: Mapping[str, Any]) -> dict[str, str]:
        """By the word in a row's ``sort``: what the row is."""
        found: dict[str, str] = {}
        for what, words in self.table(value, "rows").items():
            if what not in ("earning", "ignore", *COSTS):
                raise self.refuse(f"rows.{what}", words, f"earning, ignore, {', '.join(COSTS)}")
            for word in words if isinstance(words, list) else [words]:
                found[str(word).lower()] = what
        return found

    def denominations(self, value: Mapping[str, Any]) -> dict[str, Denomination]:
        """The units in which a chain counts."""
        found: dict[str, Denomination] = {}
        for name, item in self.table(value, "denominations").items():
            if not isinstance(item, dict) or set(item) != {"currency", "decimals"}:
                raise self.refuse(f"denominations.{name}", item, "currency and decimals")
            decimals = item["decimals"]
            if not isinstance(decimals, int) or not 0 <= decimals <= 30:
                raise self.refuse(f"denominations.{name}.decimals", decimals, "0 to 30")
            found[name] = Denomination(currency=str(item["currency"]), decimals=decimals)
        return found


def mapped_rows(
    told: Told, text: str, mapping: TableMap, needed: Sequence[Sequence[str]]
) -> tuple[list[Row], dict[str, str]]:
    """The rows of a table and the column of each meaning that it has.

    ``needed`` lists what must be there, each as alternatives. Raises ``OuvrageError``
    ``mapping/columns``.
    """
    skip = _head_at(text, mapping) if mapping.skip is None else mapping.skip
    rows = rows_of(told, text, mapping.separator, skip)
    names = {
        meaning: found
        for meaning, wanted in mapping.columns.items()
        if (found := column(rows, wanted)) is not None
    }
    absent = [choice for choice in needed if not any(each in names for each in choice)]
    if rows and absent:
        raise OuvrageError(
            "mapping/columns",
            f"{told.file} has no column for {' or '.join(absent[0])} under the mapping {mapping.name}",
            where=(f"{told.file}:{skip + 1}   {', '.join(map(str, rows[0].cells))}"[:200],),
            hint=f"looked for {', '.join(mapping.columns.get(absent[0][0], ()))}; "
            f"copy the mapping and name yours: ouvrage import mapping {mapping.name}",
        )
    return rows, names


def with_days(
    mapping: TableMap, rows: Sequence[Row], names: Mapping[str, str], told: Told
) -> TableMap:
    """The mapping with the one form of days in which most rows of a file are written.

    ``11/07/2026`` could be a day of July or of November, so how such days were read is told.
    """
    texts = [
        text
        for meaning in ("day", "from", "to", "due")
        if meaning in names
        for row in rows
        if (text := str(row.cells.get(names[meaning]) or "").strip())
    ]
    if len(mapping.days) < 2 or not texts:
        return mapping
    form = max(mapping.days, key=lambda each: sum(bool(day_of_text(text, each)) for text in texts))
    if "/" in form:
        told.note(
            f"days such as {texts[0]} are read as {'day/month' if form[1] == 'd' else 'month/day'}"
        )
    return replace(mapping, days=(form,))


def _head_at(text: str, mapping: TableMap) -> int:
    """How many lines stand before the line of names: banks write a preamble."""
    wanted = {name.lower() for names in mapping.columns.values() for name in names}
    best, at = 0, 0
    for index, line in enumerate(text.splitlines()[:_HEAD_WITHIN]):
        cells = line.split(mapping.separator or separator_of(line))
        count = sum(cell.strip().strip('"').lower() in wanted for cell in cells)
        if count > best:
            best, at = count, index
    return at


def sign_of(
    rows: Sequence[Row], names: Mapping[str, str], mapping: TableMap, meanings: Sequence[str]
) -> str | None:
    """The decimal sign of a table: as the mapping says, else as its amounts show; None: unclear."""
    if mapping.decimal is not None:
        return mapping.decimal
    cells = [str(row.cells.get(names[m]) or "") for row in rows for m in meanings if m in names]
    return decimal_sign(cells)
