"""Usage: what happened to each resource, when, and the quantities that were read.

Decides what a row ``resource,event,at,quantity,unit`` may hold and refuses what it may not, with
file, line, field, what was found and what was expected. Whether a quantity is a level (held from then
on) or an amount (moved at that moment) is not decided here: the rule that prices it knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import utc_us
from ouvrage.pricing.rates.plan import LIFECYCLE
from ouvrage.pricing.rates.quantity import plain_number

COLUMNS = ("resource", "event", "at", "quantity", "unit")
_MOMENT = re.compile(
    r"(?P<start>[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<parts>[0-9]+))?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_WHEN = "a moment with its zone (RFC 3339), such as 2026-11-30T14:05:09Z"
_FIRST_YEAR, _LAST_YEAR = "1970", "9899"
"""Far from where calendars end: a zone or a month later must not lead out of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a usage file, read. ``quantity`` is None for an event and for a setting."""

    line: int
    resource: str
    event: str
    at: int
    quantity: Fraction | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """All rows of one resource in order of time; rows of one moment in order of the file."""

    name: str
    rows: tuple[Row, ...]

    @property
    def quantities(self) -> frozenset[str]:
        """The names of the quantities that were read."""
        return frozenset(row.event for row in self.rows if row.quantity is not None)

    def setting(self, name: str, at: int) -> str | None:
        """A setting as it was at a moment; before the first row that states it, as stated first."""
        stated = [row for row in self.rows if row.event == name and row.quantity is None]
        known = [row for row in stated if row.unit is not None]
        past = [row.unit for row in known if row.at <= at]
        return past[-1] if past else known[0].unit if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a usage file holds, and what was noticed while reading it."""

    file: str
    resources: tuple[Resource, ...]
    notes: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def rows(self) -> list[Row]:
        """Every row, resource by resource."""
        return [row for resource in self.resources for row in resource.rows]

    def where(self, row: Row) -> str:
        """The place of a row, for a refusal."""
        return place(self.file, row)


def place(file: str, row: Row) -> str:
    """``usage.csv:3   vm-1,active``."""
    return f"{file}:{row.line}   {row.resource},{row.event}"


@dataclass(slots=True)
class _Faults:
    file: str
    lines: list[str] = field(default_factory=list)

    def add(self, line: int, key: str, found: str, expected: str) -> None:
        self.lines.append(f"{self.file}:{line}   {key}: found {found[:120]}, expected {expected}")


def read_usage(file: str, head: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]) -> Usage:
    """The usage that the rows of a table state; every faulty row is named, and none is skipped."""
    _check_head(file, head)
    faults = _Faults(file)
    read: list[Row] = []
    for line, cells in rows:
        row = _row(line, cells, head, faults)
        if row is not None:
            read.append(row)
    if faults.lines:
        raise _refused(file, faults.lines)
    if not read:
        raise OuvrageError("usage/empty", f"{file} holds no usage", hint="add a row for each event")
    return _grouped(file, read)


def _refused(file: str, lines: list[str]) -> OuvrageError:
    shown = lines[:20]
    more = () if len(lines) == len(shown) else (f"and {len(lines) - len(shown)} more",)
    many = "a row" if len(lines) == 1 else f"{len(lines)} fields"
    return OuvrageError(
        "usage/row",
        f"{file} has {many} that cannot be read; nothing was rated",
        where=(*shown, *more),
        hint="events: " + ", ".join(LIFECYCLE) + "; quantities have a number and a unit",
    )


def _check_head(file: str, head: Sequence[str]) -> None:
    if sorted(head) != sorted(COLUMNS):
        raise OuvrageError(
            "usage/columns",
            f"{file} has the columns {', '.join(head) or 'none'}; expected {','.join(COLUMNS)}",
            where=(f"{file}:1   {','.join(head)}",),
            hint=f"the first line must be {','.join(COLUMNS)}",
        )


def _row(line: int, cells: Sequence[str], head: Sequence[str], faults: _Faults) -> Row | None:
    if len(cells) != len(head):
        faults.add(line, "row", f"{len(cells)} fields", f"{len(head)}: {','.join(head)}")
        return None
    cell = {name: text.strip() for name, text in zip(head, cells, strict=True)}
    before = len(faults.lines)
    if not cell["resource"]:
        faults.add(line, "resource", "nothing", "a name")
    _check_event(line, cell, faults)
    quantity = _quantity(line, cell, faults)
    at = _moment(line, cell["at"], faults)
    if len(faults.lines) > before or at is None:
        return None
    return Row(
        line=line,
        resource=cell["resource"],
        event=cell["event"],
        at=at,
        quantity=quantity,
        unit=cell["unit"] or None,
    )


def _check_event(line: int, cell: Mapping[str, str], faults: _Faults) -> None:
    event, told = cell["event"], cell["quantity"] or cell["unit"]
    if event in LIFECYCLE:
        if told:
            faults.add(line, "quantity and unit", repr(told), f"nothing beside the event {event}")
    elif not _NAME.fullmatch(event):
        faults.add(
            line, "event", repr(event) if event else "nothing", "an event or a quantity's name"
        )
    elif not told:
        faults.add(line, "event", repr(event), f"one of {', '.join(LIFECYCLE)}, or a quantity")


def _quantity(line: int, cell: Mapping[str, str], faults: _Faults) -> Fraction | None:
    text = cell["quantity"]
    if not text or cell["event"] in LIFECYCLE:
        return None
    try:
        value = plain_number(text)
    except ValueError:
        faults.add(line, "quantity", repr(text), "a decimal number such as 12.5")
        return None
    if value < 0:
        faults.add(line, "quantity", repr(text), "a number that is not negative")
    if not cell["unit"]:
        faults.add(line, "unit", "nothing", f"the unit of {cell['event']}, such as GB")
    return value


def _moment(line: int, text: str, faults: _Faults) -> int | None:
    found = moment_us(text)
    if found is None:
        faults.add(line, "at", repr(text) if text else "nothing", _WHEN)
    return found


def moment_us(text: str) -> int | None:
    """Microseconds of an RFC 3339 text with a zone; None for anything else, or for finer parts.

    Years lie between 1970 and 9899.
    """
    match = _MOMENT.fullmatch(text)
    if not match or not _FIRST_YEAR <= match["start"][:4] <= _LAST_YEAR:
        return None
    parts = (match["parts"] or "").ljust(6, "0")
    if parts[6:].strip("0"):
        return None
    zone = "+00:00" if match["zone"] in "Zz" else match["zone"]
    try:
        return utc_us(f"{match['start'].upper()}.{parts[:6]}{zone}")
    except (ValueError, OverflowError):
        return None


LAST_US = moment_us(f"{_LAST_YEAR}-12-31T23:59:59Z") or 0
"""The last moment that usage can reach."""


def _grouped(file: str, rows: list[Row]) -> Usage:
    seen: dict[tuple[object, ...], Row] = {}
    by_name: dict[str, list[Row]] = {}
    notes: list[str] = []
    for row in rows:
        key = (row.resource, row.event, row.at, row.quantity, row.unit)
        first = seen.setdefault(key, row)
        if first is not row and row.quantity is not None:
            raise OuvrageError(
                "usage/duplicate",
                f"{file} states the same quantity twice",
                where=(place(file, first), place(file, row)),
                hint="remove one of the rows, or add them up in one",
            )
        by_name.setdefault(row.resource, []).append(row)
    resources = [
        Resource(name=name, rows=_resumed(sorted(own, key=lambda row: row.at), notes))
        for name, own in by_name.items()
    ]
    return Usage(file=file, resources=tuple(resources), notes=tuple(notes))


def _resumed(rows: list[Row], notes: list[str]) -> tuple[Row, ...]:
    """A ``started`` that no ``active`` follows stands for it too: the file tells no more of it."""
    found: list[Row] = []
    for index, row in enumerate(rows):
        found.append(row)
        later = (rows[n].event for n in range(index + 1, len(rows)) if rows[n].event in LIFECYCLE)
        if row.event == "started" and next(later, None) != "active":
            stand_in = Row(line=row.line, resource=row.resource, event="active", at=row.at)
            found.append(stand_in)
            notes.append(
                f"line {row.line}: {row.resource} was started and no 'active' follows; taken as active"
            )
    return tuple(found)
