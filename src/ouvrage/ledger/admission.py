"""What a fact must look like before a ledger takes it, since nothing taken can be taken back.

Decides on form alone: names that every database can hold and index, whole numbers that fit in
64 bits, a period that does not end before it begins, a payload in canonical form that a kind known
here can read. It does not ask whether the statement is true or fits the others; the laws do that,
because a correction may come before what it corrects.
"""

from __future__ import annotations

import json
import re

from ouvrage.base.canonical import canonical
from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import KINDS, Unread, read_value
from ouvrage.ledger.shapes import shape_of

SOURCE_BYTES = 200
NAME_BYTES = 1000
_LARGEST = 2**63 - 1
_SOURCE = re.compile(r"[^\x00-\x1f\x7f/]+")
_NAME = re.compile(r"[^\x00-\x1f\x7f]+")
# One match for the names of nearly every fact; those that do not match are judged one by one.
_USUAL = re.compile(
    rf"[ -.0-~]{{1,{SOURCE_BYTES}}}\n[ -~]{{1,{NAME_BYTES}}}\n[ -~]{{1,{NAME_BYTES}}}\n[ -~]{{1,{NAME_BYTES}}}"
)


def admit(fact: Fact) -> None:
    """Raise ``OuvrageError`` ``fact/...`` where a fact cannot be taken into a ledger."""
    found = name_fault(fact) or number_fault(fact) or payload_fault(fact)
    if found is not None:
        raise OuvrageError(
            "fact/malformed",
            f"a fact cannot be recorded: {found}",
            where=(f"{fact.source!r}/{fact.id!r} {fact.kind!r}",),
            hint="mend the fact at its source and send it again",
        )


def name_fault(fact: Fact) -> str | None:
    """What is wrong with a fact's names, or None."""
    names = f"{fact.source}\n{fact.id}\n{fact.kind}\n{fact.subject}"
    if fact.corrects is None and _USUAL.fullmatch(names):
        return None
    if not _fits(_SOURCE, fact.source, SOURCE_BYTES):
        return f"source is not a name of 1 to {SOURCE_BYTES} bytes without '/'"
    for field, text in (("id", fact.id), ("kind", fact.kind), ("subject", fact.subject)):
        if not _fits(_NAME, text, NAME_BYTES):
            return f"{field} is not a name of 1 to {NAME_BYTES} bytes without control characters"
    if fact.corrects is not None and not _names_a_fact(fact.corrects):
        return "corrects is not the key of a fact, source/id"
    return None


def number_fault(fact: Fact) -> str | None:
    """What is wrong with a fact's version and period, or None."""
    for field, value in (("version", fact.version), ("valid_from", fact.valid_from)):
        if type(value) is not int or abs(value) > _LARGEST:
            return f"{field} is not a whole number of 64 bits"
    if not 1 <= fact.version < 2**31:
        return "version does not count from 1"
    if fact.valid_to is None:
        return None
    if type(fact.valid_to) is not int or fact.valid_to > _LARGEST:
        return "valid_to is not a whole number of 64 bits"
    if fact.valid_to < fact.valid_from:
        return f"its period ends at {fact.valid_to}, before it begins at {fact.valid_from}"
    return None


def payload_fault(fact: Fact) -> str | None:
    """What is wrong with a fact's payload, or None.

    A kind or version not known here is taken as it is, as long as it is canonical JSON.
    """
    kind = KINDS.get((fact.kind, fact.version))
    if kind is not None and shape_of(kind).fullmatch(fact.payload):
        return None
    try:
        value = json.loads(fact.payload)
        if canonical(value) != fact.payload:
            return "its payload is not canonical JSON"
        fact.payload.encode()
    except (ValueError, RecursionError) as error:
        return f"its payload is not JSON that every store can hold: {error}"
    if kind is None:
        return None
    found = read_value(fact, value)
    return found.reason if isinstance(found, Unread) else None


def _fits(shape: re.Pattern[str], text: object, limit: int) -> bool:
    if not isinstance(text, str) or not shape.fullmatch(text):
        return False
    if text.isascii():
        return len(text) <= limit
    return len(text.encode("utf-8", "surrogatepass")) <= limit and _encodes(text)


def _encodes(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _names_a_fact(key: object) -> bool:
    if not isinstance(key, str):
        return False
    source, _, name = key.partition("/")
    return _fits(_SOURCE, source, SOURCE_BYTES) and _fits(_NAME, name, NAME_BYTES)
