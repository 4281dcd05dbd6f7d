"""Facts made up for tests."""

from __future__ import annotations

from typing import Any

from ouvrage.base.canonical import canonical
from ouvrage.base.grades import Grade
from ouvrage.ledger.facts import Fact, Recorded

SOURCE = "a" * 32
OTHER = "b" * 32


def fact(id: str = "x", *, body: Any = None, **fields: Any) -> Fact:
    """A fact of a kind that nobody knows; ``body`` is its payload as a JSON value."""
    stated: dict[str, Any] = {
        "source": SOURCE,
        "id": id,
        "kind": "test.thing",
        "version": 1,
        "subject": "thing",
        "valid_from": 10,
        "valid_to": 20,
        "grade": Grade.MEASURED,
        "payload": canonical({} if body is None else body),
    }
    return Fact(**{**stated, **fields})


def withdrawal(id: str, of: str, **fields: Any) -> Fact:
    return fact(id, kind="ledger.withdrawal", body={"why": "wrong"}, corrects=of, **fields)


def recorded(*facts: Fact) -> list[Recorded]:
    """Facts as a ledger would hold them, one batch each."""
    return [Recorded(seq=n, recorded_at=n * 10, fact=each) for n, each in enumerate(facts, 1)]
