"""A statement from a file, a feed or an owner's word, before it is a fact.

Decides its id: its natural key (what it is about: this machine, this day, this component) and a hash of
all that it states, so that the same statement read again is the same fact. What becomes of another
statement under the same natural key is decided where statements are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.ledger.kinds import payload_of

HASHED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One statement: ``value`` (an instance of a kind) about ``subject`` for a half-open period.

    ``natural`` says what it is about, without what it says: ``vast/35798/20399/gpu``. ``payload`` is
    the canonical text of ``value`` where it was made already.
    """

    natural: str
    value: Any
    subject: str
    valid_from: int
    valid_to: int | None
    grade: Grade
    payload: str | None = None

    @property
    def text(self) -> str:
        """The canonical text of ``value``."""
        return payload_of(self.value) if self.payload is None else self.payload

    @property
    def id(self) -> str:
        """The natural key and a hash of all that is stated."""
        return self.id_of(self.text)

    def id_of(self, text: str) -> str:
        """``id`` where the text of the value is at hand."""
        said = canonical([self.valid_from, self.valid_to, self.grade.word])
        return f"{self.natural}/{sha256_hex(text + said)[:HASHED]}"
