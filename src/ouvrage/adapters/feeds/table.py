"""A CSV export as rows with names, whatever its separator, its encoding and its way to write numbers.

Decides how an amount with thousands and a decimal comma is read, and that nothing ambiguous is: where a
file does not say which sign is the decimal one, ``1.234`` could be either, so the caller must.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from ouvrage.adapters.catalogues.forms import csv_rows
from ouvrage.adapters.catalogues.rows import Row
from ouvrage.adapters.feeds.told import Told, amount_in, context_of
from ouvrage.base.errors import OuvrageError

_SPACES = re.compile(r"[\s'’]")
_GROUPED = {
    ",": re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?"),
    ".": re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"),
}
SEPARATORS = (";", "\t", ",", "|")


def decoded(data: bytes, encoding: str | None, file: str) -> str:
    """The text of a file: as named, else UTF-8, UTF-16 by its mark, or Windows' western letters."""
    tries = (encoding,) if encoding else ("utf-8-sig", "cp1252")
    if not encoding and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        tries = ("utf-16",)
    for name in tries:
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    raise OuvrageError(
        "import/encoding",
        f"{file} is no text in {' or '.join(str(each) for each in tries)}",
        hint='name its encoding in the mapping: encoding = "cp1252"',
    )


def separator_of(text: str) -> str:
    """The separator that stands most often in the first line that is not empty."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    return max(SEPARATORS, key=head.count)


def rows_of(told: Told, text: str, separator: str | None, skip: int = 0) -> list[Row]:
    """The rows below the line of names, ``skip`` lines into the file; faulty ones are told."""
    lines = text.splitlines(keepends=True)
    body = "".join(lines[skip:])
    context = context_of(told.file)
    before = len(told.faults)
    found = csv_rows(body, context, told.faults, separator or separator_of(body))
    told.rows += len(told.faults) - before
    rows = [Row(cells, str(int(place) + skip), context) for place, cells in found]
    told.rows += len(rows)
    return rows


def column(rows: Iterable[Row], names: Iterable[str]) -> str | None:
    """The first of some names that a row has, whatever its case."""
    for row in rows:
        have = {str(name).strip().lower(): str(name) for name in row.cells}
        return next((have[name.lower()] for name in names if name.lower() in have), None)
    return None


def amount_text(value: object, decimal: str) -> Decimal | None:
    """An amount as people write it: ``-1.234,56``, ``1'234.56``, ``(12.00)``, ``12,00-``, ``12.00 EUR``."""
    if not isinstance(value, str):
        return amount_in(value)
    text = _SPACES.sub("", value.replace("\u2212", "-"))
    text = re.sub(r"^(?:[A-Z]{3}|[$€£])|(?:[A-Z]{3}|[$€£])$", "", text)
    if text.startswith("(") and text.endswith(")"):
        text = f"-{text[1:-1]}"
    if text.endswith(("-", "+")):
        text = text[-1] + text[:-1]
    grouping = "." if decimal == "," else ","
    if grouping in text:
        if not _GROUPED[decimal].fullmatch(text):
            return None
        text = text.replace(grouping, "")
    return amount_in(text.replace(decimal, "."))


def decimal_sign(texts: Iterable[str]) -> str | None:
    """Which sign some amounts are written with: told by one that has both, or by its places; else None."""
    signs: set[str] = set()
    for text in texts:
        found = re.findall("[.,]", text)
        if len(set(found)) == 2:
            signs.add(found[-1])
        elif len(found) == 1 and not re.search(r"[.,][0-9]{3}\D*$", text):
            signs.add(found[0])
    return signs.pop() if len(signs) == 1 else ("." if not signs else None)
