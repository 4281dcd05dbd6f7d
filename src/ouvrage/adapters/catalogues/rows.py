"""One row of a catalogue, read field by field; what does not fit is told and never skipped in silence.

Decides how a number, a flag and a text may be written in any catalogue, and how a fault is told: file,
line, field, what was found and what was expected. What the fields mean is each form's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.numbers import decimal_text
from ouvrage.model.offers import MarketOffer

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{0,60})?|\.[0-9]{1,60}")
_SCALED = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})[eE]([+-]?[0-9]{1,2})")
_WRITTEN = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_TRUE = {"true", "yes", "1", "t", "y"}
_FALSE = {"false", "no", "0", "f", "n"}
_SHOWN = 60
NO_CURRENCY = "no currency, unit or tax is stated; taken as USD for an hour, tax unknown"
_LONGEST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that cannot be read. ``row``: it cost a row; otherwise the rest of the file."""

    file: str
    place: str
    field: str
    found: str
    expected: str

    @property
    def line(self) -> str:
        """``vms.csv:3   Price: found 'free', expected a number``."""
        return (
            f"{self.file}:{self.place}   {self.field}: found {self.found}, expected {self.expected}"
        )

    def as_json(self) -> dict[str, str]:
        """What ``--json`` prints of it."""
        return {
            "file": self.file,
            "line": self.place,
            "field": self.field,
            "found": self.found,
            "expected": self.expected,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What stands outside the rows: the catalogue's name, its file, who says so, the day it was read."""

    catalogue: str
    file: str
    read_on: str
    provider: str | None = None
    currency: str | None = None
    source: str | None = None


@dataclass(slots=True, kw_only=True)
class Parsed:
    """What a catalogue held. ``rows`` = rows that became offers + ``refused`` + ``merged``'s repeats.

    ``stated`` maps the key of an offer to seconds per unit, where a row states them.
    """

    form: str
    rows: int = 0
    refused: int = 0
    merged: int = 0
    offers: list[MarketOffer] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    stated: dict[str, str] = field(default_factory=dict)

    def note(self, words: str, count: int = 1) -> None:
        """Remember what was made of a row, and how often."""
        self.notes[words] = self.notes.get(words, 0) + count


class Row:
    """One row: its cells by name, and the faults found while reading them."""

    def __init__(self, cells: Mapping[str, Any], place: str, context: Context) -> None:
        self.cells = cells
        self.place = place
        self.context = context
        self.faults: list[Fault] = []

    def fault(self, name: str, found: object, expected: str) -> None:
        """Tell what does not fit."""
        words = "nothing" if found is None or found == "" else _shown(found)
        self.faults.append(
            Fault(
                file=self.context.file,
                place=self.place,
                field=name,
                found=words,
                expected=expected,
            )
        )

    def text(self, name: str, *, needed: bool = False) -> str | None:
        """A cell's text without blanks around it; None where it is empty."""
        value = self.cells.get(name)
        if type(value) is not str:  # nearly always it is, and asking that first is quick
            if isinstance(value, bool) or not isinstance(value, str | int | Decimal | None):
                self.fault(name, value, "a text")
                return None
            value = "" if value is None else str(value)
        text = printable(value)
        if len(text) > _LONGEST:
            self.fault(name, text, f"at most {_LONGEST} characters")
            return None
        if not text and needed:
            self.fault(name, None, "a text")
        return text or None

    def number(self, name: str, *, needed: bool = False, least: int = 0) -> Fraction | None:
        """A cell's number, exactly; None where it is empty."""
        value = self.cells.get(name)
        if value is None or value == "":
            if needed:
                self.fault(name, None, "a number")
            return None
        found = number_in(value)
        if found is None or (least and found < least):
            self.fault(name, value, f"a number of at least {least}" if least else "a number")
            return None
        return found

    def decimal(self, name: str, *, needed: bool = False) -> str | None:
        """A cell's number as plain decimal text, as it was written where it is plain already."""
        found = self.number(name, needed=needed)
        written = str(self.cells.get(name)).strip()
        if found is None or _WRITTEN.fullmatch(written):
            return None if found is None else written
        return decimal_text(found)

    def count(self, name: str) -> str | None:
        """A cell's number in its shortest form: 8, not 8.0."""
        found = self.number(name)
        return None if found is None else decimal_text(found)

    def mib(self, name: str, scale: int) -> int | None:
        """A cell's memory in MiB, ``scale`` MiB to its unit, rounded to the nearest."""
        found = self.number(name)
        return None if found is None else round(found * scale)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A cell's yes or no."""
        value = self.cells.get(name)
        if isinstance(value, bool):
            return value
        word = "" if value is None else str(value).strip().lower()
        if word in _TRUE | _FALSE:
            return word in _TRUE
        if word:
            self.fault(name, value, "true or false")
        return default

    @property
    def raw(self) -> str:
        """The row as it came, as JSON text."""
        return canonical(_plain(self.cells))


def number_in(value: object) -> Fraction | None:
    """The exact number that a cell holds, or None. Neither signs nor infinities are numbers here."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        return None
    if isinstance(value, int):
        return Fraction(value) if 0 <= value < 10**18 else None
    return _number_written(str(value).strip())


@lru_cache(maxsize=2**16)  # a catalogue repeats few numbers many times
def _number_written(text: str) -> Fraction | None:
    if _NUMBER.fullmatch(text):
        return Fraction(Decimal(text))
    scaled = _SCALED.fullmatch(text)
    if scaled and abs(int(scaled[2])) <= 30:
        return Fraction(Decimal(scaled[1])) * Fraction(10) ** int(scaled[2])
    return None


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def printable(text: str) -> str:
    """A text without the halves of characters that no store can hold."""
    if text.isascii() and "\0" not in text:
        return text.strip()
    return text.strip().encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def _plain(value: Any) -> Any:
    """A value that canonical JSON can hold: numbers as they were written."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return str(value)
    return value if value is None or isinstance(value, bool | int) else str(value)


IDENTITY = (
    *("catalogue", "name", "provider", "region", "gpu", "gpus", "gpu_memory_mib", "vcpus"),
    *("memory_mib", "disk_gb", "currency", "per", "split", "interruptible"),
)


def key_of(offer: MarketOffer) -> str:
    """What identifies an offer among readings of its catalogue."""
    return sha256_hex(canonical([getattr(offer, name) for name in IDENTITY]))[:16]
