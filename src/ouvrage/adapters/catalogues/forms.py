"""Which form a catalogue has, and its rows brought to offers, each under a key of its own.

Decides by what stands in a file, not by its name; the name only tells TOML and JSON from CSV. A form
that is not known is refused whole; a row that cannot be read costs that row and is told.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from ouvrage.adapters.catalogues import gpuhunt, own, skypilot, vast
from ouvrage.adapters.catalogues.rows import Context, Fault, Parsed, Row, key_of
from ouvrage.adapters.json_text import load_json
from ouvrage.adapters.toml_text import load_toml
from ouvrage.base.errors import OuvrageError

Rows = Iterable[tuple[str, Mapping[str, Any]]]
FORMS: dict[str, Callable[[Iterable[Row], Context], Parsed]] = {
    "skypilot": skypilot.offers,
    "gpuhunt": gpuhunt.offers,
    "vast": vast.offers,
    "own": own.offers,
}
_LISTS = ("offers", "offer", "instances", "results", "data")
REPEATED = "repeats another row and was merged with it"


def read_catalogue(
    text: str, context: Context, form: str | None = None, *, form_in_name: bool = False
) -> Parsed:
    """The offers in a catalogue's text, the rows that could not be read, and what was made of it.

    ``form_in_name`` puts the form before the catalogue's name, once it is known.
    """
    faults: list[Fault] = []
    rows = list(_rows(text, context, faults))
    if faults and not rows:
        raise OuvrageError(
            "market/form",
            f"no row of {context.file} could be read",
            where=tuple(fault.line for fault in faults[:5]),
            hint="the first line of a CSV names its columns; close every quote",
        )
    named = form or _form_of(rows, context)
    if named not in FORMS:
        raise OuvrageError(
            "market/form", f"there is no form called {named!r}", hint=f"forms: {', '.join(FORMS)}"
        )
    parsed = FORMS[named]([Row(cells, place, context) for place, cells in rows], context)
    parsed.faults += faults
    parsed.refused += len(faults)
    parsed.rows += len(faults)
    name = f"{parsed.form}/{context.catalogue}" if form_in_name else context.catalogue
    return _keyed(parsed, name)


def _rows(text: str, context: Context, faults: list[Fault]) -> Rows:
    name = context.file.lower()
    if name.endswith(".toml"):
        return _listed(load_toml(context.file, text, "market/toml"), context, faults)
    if name.endswith(".json") or text.lstrip()[:1] in ("{", "["):
        return _listed(load_json(context.file, text, "market/json"), context, faults)
    return csv_rows(text, context, faults)


def _listed(value: Any, context: Context, faults: list[Fault]) -> Rows:
    name, items = _list_in(value, context.file)
    found: list[tuple[str, Mapping[str, Any]]] = []
    for index, item in enumerate(items):
        place = f"{name}[{index}]"
        if isinstance(item, dict):
            found.append((place, item))
        else:
            told = Row({}, place, context)
            told.fault("row", item, "an object with named fields")
            faults += told.faults
    return found


def _list_in(value: Any, file: str) -> tuple[str, list[Any]]:
    if isinstance(value, list):
        return "", value
    if isinstance(value, dict):
        for name in _LISTS:
            if isinstance(value.get(name), list):
                return name, value[name]
    raise OuvrageError(
        "market/form",
        f"{file} holds no list of offers",
        where=(file,),
        hint="in TOML write [[offer]] before each, in JSON a list under 'offers'",
    )


def csv_rows(text: str, context: Context, faults: list[Fault], delimiter: str = ",") -> Rows:
    """The rows of a CSV text by the names in its first line; rows of another length are faults."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    found: list[tuple[str, Mapping[str, Any]]] = []
    head: list[str] | None = None
    try:
        for cells in reader:
            if head is None:
                head = [cell.strip() for cell in cells]
            elif cells:
                _csv_row(head, cells, str(reader.line_num), context, found, faults)
    except csv.Error as error:
        broken = Row({}, str(reader.line_num), context)
        broken.fault("rest of the file", str(error), "CSV; what follows could not be read")
        faults += broken.faults
    return found


def _csv_row(
    head: list[str],
    cells: list[str],
    place: str,
    context: Context,
    found: list[tuple[str, Mapping[str, Any]]],
    faults: list[Fault],
) -> None:
    if len(cells) != len(head):
        told = Row({}, place, context)
        told.fault("row", f"{len(cells)} cells", f"{len(head)}: {','.join(head)}"[:200])
        faults += told.faults
        return
    found.append((place, dict(zip(head, cells, strict=True))))


def _form_of(rows: list[tuple[str, Mapping[str, Any]]], context: Context) -> str:
    names = {str(name) for _, cells in rows[:50] for name in cells}
    if {"InstanceType", "AcceleratorName"} <= names:
        return "skypilot"
    if "instance_name" in names and "gpu_count" in names:
        return "gpuhunt"
    if "dph_total" in names or {"machine_id", "gpu_name"} <= names:
        return "vast"
    if names & own.PRICES:
        return "own"
    raise OuvrageError(
        "market/form",
        f"{context.file} is in no form of catalogue that is known here",
        where=(
            f"{context.file}:1   {', '.join(sorted(names)) or 'no row under a line of names'}"[
                :200
            ],
        ),
        hint="SkyPilot or gpuhunt CSV, Vast.ai offers JSON, or your own with at least name and price",
    )


def _keyed(parsed: Parsed, catalogue: str) -> Parsed:
    """Every offer under its own key: the same offer at another price in one file gets a number.

    ``catalogue`` is the name that the offers end up with; keys are made of the one they have so far.
    """
    seen: dict[str, dict[tuple[object, ...], MarketKey]] = {}
    kept = []
    stated: dict[str, str] = {}
    for index, offer in enumerate(parsed.offers):
        plain = key_of(offer)
        same = seen.setdefault(plain, {})
        content = _content(offer)
        if content in same:
            parsed.merged += 1
            parsed.note(REPEATED)
            continue
        key = plain if not same else f"{plain}-{len(same) + 1}"
        same[content] = key
        kept.append(replace(offer, key=key, catalogue=catalogue))
        if str(index) in parsed.stated:
            stated[key] = parsed.stated[str(index)]
    parsed.offers, parsed.stated = kept, stated
    return parsed


MarketKey = str
_CONTENT = (
    *("price", "provider_kind", "tax", "plan", "storage_gb_month", "egress_gb", "ingress_gb"),
    *("mtbf_h", "interconnect_gb_s", "counterparty", "terms", "bundled", "dated"),
)
_content = attrgetter(*_CONTENT)


def iterate(parsed: Parsed) -> Iterator[str]:
    """The notes of a reading, with how many rows each is about."""
    for words, count in parsed.notes.items():
        yield words if count == 1 else f"{words} ({count} rows)"
