"""A record as one line of text, for files that leave a store: backups and exported runs.

The payload travels as the text it was recorded as, so that a hash made from it holds anywhere. Kinds
and versions that the reader does not know pass through unharmed.
"""

from __future__ import annotations

import json
from typing import Any

from ouvrage.base.canonical import canonical
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import WORDS, Fact, Recorded

_GRADES: dict[str, Grade] = {word: grade for grade, word in WORDS.items()}
_FIELDS = {
    "source": str,
    "id": str,
    "kind": str,
    "version": int,
    "subject": str,
    "valid_from": int,
    "valid_to": (int, type(None)),
    "grade": str,
    "payload": str,
    "corrects": (str, type(None)),
    "sha256": str,
}


def fact_line(fact: Fact, sha256: str | None = None, **more: int) -> str:
    """One line, without its end, that holds a fact, its hash and the numbers in ``more``."""
    value = {name: getattr(fact, name) for name in _FIELDS}
    value["grade"] = WORDS[fact.grade]
    value["sha256"] = sha256 or fact.sha256
    return canonical({**value, **more})


def record_line(entry: Recorded) -> str:
    """One line that holds a record, with its place and moment of recording."""
    return fact_line(entry.fact, entry.stored_sha256, seq=entry.seq, recorded_at=entry.recorded_at)


def read_fact_line(line: str | bytes) -> tuple[Fact, str]:
    """The fact and the hash on a line; ``ValueError`` where the line is not such a line."""
    return _fact(_object(line, ()))


def read_record_line(line: str | bytes) -> Recorded:
    """The record on a line; ``ValueError`` where the line is not such a line."""
    value = _object(line, ("seq", "recorded_at"))
    seq, recorded_at = value.pop("seq"), value.pop("recorded_at")
    if type(seq) is not int or type(recorded_at) is not int:
        raise ValueError("seq and recorded_at are whole numbers")
    fact, sha256 = _fact(value)
    return Recorded(seq=seq, recorded_at=recorded_at, fact=fact, stored_sha256=sha256)


def _object(line: str | bytes, more: tuple[str, ...]) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict) or value.keys() != {*_FIELDS, *more}:
        raise ValueError("not the fields of a fact")
    return value


def _fact(value: dict[str, Any]) -> tuple[Fact, str]:
    for name, kind in _FIELDS.items():
        if not isinstance(value[name], kind) or isinstance(value[name], bool):
            raise ValueError(f"{name} is {value[name]!r}")
    sha256, word = value.pop("sha256"), value.pop("grade")
    if word not in _GRADES:
        raise ValueError(f"the grade {word!r} is not known here")
    return Fact(grade=_GRADES[word], **value), sha256
