"""A fact as a row of the table, and back. The hash a row holds is kept beside the one recomputed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import WORDS, Fact, Recorded

_GRADES = {word: grade for grade, word in WORDS.items()}


def row_of(
    fact: Fact, seq: int, recorded_at: int, stored_sha256: str | None = None
) -> dict[str, Any]:
    """The row of a fact, for an insert."""
    return {
        "seq": seq,
        "source": fact.source,
        "id": fact.id,
        "kind": fact.kind,
        "version": fact.version,
        "subject": fact.subject,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "recorded_at": recorded_at,
        "grade": WORDS[fact.grade],
        "payload": fact.payload,
        "sha256": stored_sha256 or fact.sha256,
        "corrects": fact.corrects,
    }


def recorded_of(row: Row[Any]) -> Recorded:
    """The record that a whole row of ``facts`` holds."""
    (seq, source, id, kind, version, subject, start, end, at, word, payload, sha256, corrects) = row
    grade = _grade(word, seq)
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


def _grade(word: str, seq: int) -> Grade:
    try:
        return _GRADES[word]
    except KeyError as error:
        raise OuvrageError(
            "store/unreadable-fact",
            f"the fact at seq {seq} has the grade {word!r}, which this version does not know",
            hint="it was written by a newer version, or changed by hand",
            exit_code=1,
        ) from error
