"""A fact as a row of the table, and back.

Rows go in as plain tuples through one prepared text, because nearly all that is written is facts and
a statement built for each would cost more than the database takes. The hash a row holds is kept
beside the one computed anew when it is read, for the law that compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, insert

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import GRADES, WORDS, Fact, Line, Recorded
from ouvrage.store.schema import facts

_TEXTS: dict[str, str] = {}

Values = tuple[Any, ...]


def row_of(fact: Fact, seq: int, recorded_at: int, stored_sha256: str | None = None) -> Values:
    """The row of a fact, in the order of the table's columns."""
    return (
        seq,
        fact.source,
        fact.id,
        fact.kind,
        fact.version,
        fact.subject,
        fact.valid_from,
        fact.valid_to,
        recorded_at,
        WORDS[fact.grade],
        fact.payload,
        stored_sha256 or fact.sha256,
        fact.corrects,
    )


def insert_rows(connection: Connection, rows: Sequence[Values]) -> None:
    """Insert rows of ``facts``, all at once."""
    dialect = connection.dialect
    text = _TEXTS.get(dialect.name)
    if text is None:
        text = _TEXTS[dialect.name] = str(insert(facts).compile(dialect=dialect))
    connection.exec_driver_sql(text, list(rows))


def recorded_of(row: Row[Any]) -> Recorded:
    """The record that a whole row of ``facts`` holds."""
    (seq, source, id, kind, version, subject, start, end, at, word, payload, sha256, corrects) = (
        tuple(row)
    )
    grade = _grade(word, f"at seq {seq}")
    fact = Fact(
        source=source,
        id=id,
        kind=kind,
        version=version,
        subject=subject,
        valid_from=start,
        valid_to=end,
        grade=grade,
        payload=payload,
        corrects=corrects,
    )
    return Recorded(seq=seq, recorded_at=at, fact=fact, stored_sha256=sha256)


LINE = (
    facts.c.source + "/" + facts.c.id,
    *(facts.c[name] for name in Line._fields if name != "key"),
)
"""The columns of which a line is made."""


def lines_of(rows: Iterable[Sequence[Any]]) -> list[Line]:
    """The lines that rows of the columns of ``LINE`` hold."""
    found = list(map(Line._make, rows))
    for word in {line.grade for line in found} - GRADES.keys():
        _grade(word, next(line.key for line in found if line.grade == word))
    return found


def _grade(word: str, which: str) -> Grade:
    try:
        return GRADES[word]
    except KeyError as error:
        raise OuvrageError(
            "store/unreadable-fact",
            f"the fact {which} has the grade {word!r}, which this version does not know",
            hint="it was written by a newer version, or changed by hand",
            exit_code=1,
        ) from error
