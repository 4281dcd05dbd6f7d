"""A fact: an immutable, dated statement with a source and a grade.

Decides what identifies a fact (source and id), what makes two facts the same (the hash of all they
state), and in which field two statements under one identity differ. It does not store anything.
The hash covers the content and not the moment of recording, so that the same statement sent again
is recognised whenever it comes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade

WORDS = {grade: grade.word for grade in Grade}
GRADES = {word: grade for grade, word in WORDS.items()}
CONTENT = ("kind", "version", "subject", "valid_from", "valid_to", "grade", "payload", "corrects")


# Most facts share their kind and subject with the one before.
_quoted = lru_cache(maxsize=1024)(canonical)


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
        end = "null" if self.valid_to is None else self.valid_to
        target = "null" if self.corrects is None else canonical(self.corrects)
        content = (
            f"[{_quoted(self.kind)},{self.version},{_quoted(self.subject)},{self.valid_from},"
            f'{end},"{WORDS[self.grade]}",{target},{self.payload}]'
        )
        object.__setattr__(self, "sha256", sha256_hex(content))

    @property
    def key(self) -> str:
        """``source/id``: what other facts call it by."""
        return f"{self.source}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A fact in the ledger: its place in it and the moment it was recorded (microseconds UTC).

    ``stored_sha256`` is the hash that the store holds beside the fact, for the law that compares
    the two; None for a record that never was in a store.
    """

    seq: int
    recorded_at: int
    fact: Fact
    stored_sha256: str | None = None


class Line(NamedTuple):
    """What a fact says, under its key, as a store reads very many: without its subject and its hash.

    ``grade`` is one of the words of ``GRADES``.
    """

    key: str
    kind: str
    version: int
    valid_from: int
    valid_to: int | None
    recorded_at: int
    grade: str
    payload: str
    corrects: str | None


def line_of(entry: Recorded) -> Line:
    """A record as a line."""
    fact = entry.fact
    return Line(
        fact.key, fact.kind, fact.version, fact.valid_from, fact.valid_to, entry.recorded_at,
        WORDS[fact.grade], fact.payload, fact.corrects,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A place in which two statements differ, and the canonical text of each there."""

    field: str
    stored: str
    offered: str


def first_difference(stored: Fact, offered: Fact) -> Difference | None:
    """The first place in which the content of two statements differs, or None.

    Inside a payload the place is named as a path: ``payload.price.amount``, ``payload.at_us[3]``.
    """
    for name in CONTENT:
        ours, theirs = getattr(stored, name), getattr(offered, name)
        if ours == theirs:
            continue
        if name == "payload":
            return _inside(name, json.loads(ours), json.loads(theirs))
        if name == "grade":
            ours, theirs = ours.word, theirs.word
        return Difference(field=name, stored=canonical(ours), offered=canonical(theirs))
    return None


def _inside(path: str, ours: object, theirs: object) -> Difference:
    while True:
        step = _step(ours, theirs)
        if step is None:
            return Difference(field=path, stored=canonical(ours), offered=canonical(theirs))
        part, ours, theirs = step
        path += part


def _step(ours: object, theirs: object) -> tuple[str, object, object] | None:
    """One step down towards the first difference; None where it cannot be narrowed further."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        name = next(name for name in sorted(ours) if not _same(ours[name], theirs[name]))
        return f".{name}", ours[name], theirs[name]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        index, (left, right) = next(pair for pair in pairs if not _same(*pair[1]))
        return f"[{index}]", left, right
    return None


def _same(ours: object, theirs: object) -> bool:
    """Whether two JSON values have one canonical text; ``True == 1`` in Python, not in JSON."""
    return canonical(ours) == canonical(theirs)
