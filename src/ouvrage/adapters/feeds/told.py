"""What a file of a feed told: statements, and what could not be read, by line.

Decides how the parts of every feed's answer look: JSON documents of one or many, exact amounts, days.
A row that does not fit is a fault that costs that row; what the rows mean is each feed's own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from ouvrage.adapters.catalogues.rows import Context, Fault, Row, printable
from ouvrage.adapters.json_text import load_json
from ouvrage.base.names import LONGEST
from ouvrage.base.time import DAY
from ouvrage.ledger.stated import Stated

_PLAIN = re.compile(r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")
_NO_KEY = re.compile(r"[/\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_LARGEST = Decimal(10) ** 15
_EPOCH = date(1970, 1, 1)


@dataclass(slots=True, kw_only=True)
class Told:
    """``rows`` were read from ``file``; each either stands behind statements or is a fault.

    ``notes`` maps what was made of rows to how many it was made of.
    """

    form: str
    file: str
    rows: int = 0
    stated: list[Stated] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)

    def note(self, words: str, count: int = 1) -> None:
        """Remember what was made of a row, and how often."""
        self.notes[words] = self.notes.get(words, 0) + count

    def fault(self, place: str, name: str, found: object, expected: str) -> None:
        """Tell a row that could not be read."""
        row = Row({}, place, context_of(self.file))
        row.fault(name, found, expected)
        self.faults += row.faults

    def row(self, cells: Any, place: str) -> Row:
        """A row of this file, to be read field by field."""
        return Row(cells, place, context_of(self.file))


def context_of(file: str) -> Context:
    """Where a row stands, as faults name it."""
    return Context(catalogue="feed", file=file, read_on="")


_WHOLE = "give the whole answer as it was saved; one that was cut off is no JSON"


def documents(told: Told, text: str) -> list[tuple[str, Any]]:
    """The JSON documents in a text, each with its place: one, a list of them, or one a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.lstrip()[:1] == "{" for line in lines):
        return _by_line(told, text)
    value = load_json(told.file, text, "import/json", _WHOLE)
    if isinstance(value, list):
        return [(f"[{index}]", each) for index, each in enumerate(value)]
    return [("", value)]


def _by_line(told: Told, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append((str(number), json.loads(line, parse_float=Decimal)))
        except (ValueError, RecursionError) as error:
            told.rows += 1
            told.fault(str(number), "line", str(error), "a JSON object")
    return found


def amount_in(value: object) -> Decimal | None:
    """An exact amount as JSON or a plain text holds it, which may be negative; None for none."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    text = str(value).strip()
    if not _PLAIN.fullmatch(text):
        return None
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found) < _LARGEST else None


def key_part(text: str, most: int = 100) -> str:
    """A text from elsewhere as a part of a key: without what parts a key, and without what none can hold."""
    return _NO_KEY.sub("_", printable(text))[:most]


def name_part(text: str) -> str:
    """A text from elsewhere as a name of ours (``base/names``)."""
    return _NO_NAME.sub("_", text)[:LONGEST] or "_"


def day_text(day: int) -> str:
    """``2025-11-07`` of a number of days since 1970."""
    return (_EPOCH + timedelta(days=day)).isoformat()


def days_text(from_us: int, to_us: int) -> str:
    """``2025-11-01 to 2025-11-30``: the UTC days of a half-open period."""
    first, last = from_us // DAY, max(from_us, to_us - 1) // DAY
    return day_text(first) if first == last else f"{day_text(first)} to {day_text(last)}"
