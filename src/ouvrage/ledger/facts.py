"""A fact: an immutable, dated statement with a source and a grade.

Decides what identifies a fact (source and id), what makes two facts the same (the hash of all they
state), and in which field two statements under one identity differ. It does not store anything.
The hash covers the content and not the moment of recording, so that the same statement sent again
is recognised whenever it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade

CONTENT = ("kind", "version", "subject", "valid_from", "valid_to", "grade", "payload", "corrects")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement.

    ``valid_from`` and ``valid_to`` bound the half-open period, in microseconds UTC, for which it
    holds (``valid_to`` None: no end known; equal to ``valid_from``: a moment). ``payload`` is
    canonical JSON. ``corrects`` is the key of the fact that this one replaces.
    """

    source: str
    id: str
    kind: str
    version: int
    subject: str
    valid_from: int
    valid_to: int | None
    grade: Grade
    payload: str
    corrects: str | None = None
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        content = (
            f'[{canonical(self.kind)},{self.version},{canonical(self.subject)},{self.valid_from},'
            f'{canonical(self.valid_to)},"{self.grade.word}",{canonical(self.corrects)},{self.payload}]'
        )
        object.__setattr__(self, "sha256", sha256_hex(content))

    @property
    def key(self) -> str:
        """``source/id``: what other facts call it by."""
        return f"{self.source}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A fact in the ledger: its place in it and the moment it was recorded (microseconds UTC)."""

    seq: int
    recorded_at: int
    fact: Fact


def first_difference(stored: Fact, offered: Fact) -> str | None:
    """The first field of the content in which two statements differ, or None."""
    for name in CONTENT:
        if getattr(stored, name) != getattr(offered, name):
            return name
    return None
