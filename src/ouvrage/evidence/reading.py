"""A file of evidence, read into facts: all of it or, where a field is wrong, none.

Decides the form of such a file, which is also that of the examples in the package, and how a mistake
is told: where it stands, what was found and what was expected. A file can hold no measurement: what
was observed by others comes in as their report, without the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade, grade_of
from ouvrage.base.time import utc_us
from ouvrage.evidence.claims import asked, named, searched, stated
from ouvrage.evidence.observations import absent, observed, present, unanswered
from ouvrage.evidence.published import CLAIMS, claim_fact
from ouvrage.ledger.facts import Fact
from ouvrage.model.claims import Claim
from ouvrage.model.observations import (
    ABSENT,
    NO_ANSWER,
    OUTCOMES,
    PRESENT,
    Finding,
    Observation,
    Question,
    Search,
)

UNDATED = "undated"
PARTS = ("about", "published", "claims", "observations", "searches", "questions")


@dataclass(frozen=True, slots=True)
class _Row:
    """One object of the file, and where it stands in it."""

    file: str
    place: str
    value: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A text, or None where it is missing or null."""
        found = self.value.get(name)
        if found is not None and not isinstance(found, str):
            self.refuse(name, repr(found)[:60], "a text")
        return found

    def need(self, name: str) -> str:
        """A text that must be there."""
        found = self.text(name)
        if found is None or not found.strip():
            self.refuse(name, "nothing" if found is None else "an empty text", "a text")
        return found

    def names(self, name: str) -> tuple[str, ...]:
        """A list of texts, at least one."""
        found = self.value.get(name)
        if not isinstance(found, list) or not found or not all(isinstance(n, str) for n in found):
            self.refuse(name, repr(found)[:60], "a list of names")
        return tuple(found)

    def only(self, *allowed: str) -> None:
        """Refuse a field that nobody would read."""
        for name in self.value:
            if name not in allowed:
                self.refuse(name, "a field of this name", f"one of {', '.join(allowed)}")

    def refuse(self, name: str, found: str, expected: str) -> NoReturn:
        """Stop, saying where."""
        raise OuvrageError(
            "evidence/file",
            f"{self.file}: {self.place}.{name}: found {found}, expected {expected}",
            hint="mend the field and add the file again",
        )


def facts_in(document: Any, *, file: str, source: str) -> list[Fact]:
    """Every fact that a file of evidence states. Raises ``OuvrageError`` ``evidence/...``."""
    if not isinstance(document, dict):
        raise OuvrageError(
            "evidence/file",
            f"{file}: found a JSON {type(document).__name__}, expected an object",
            hint=f"it holds {', '.join(PARTS)}",
        )
    _Row(file, "the file", document).only(*PARTS)
    facts = _published(_Row(file, "the file", document))
    for part, build in (
        ("claims", _claim),
        ("observations", _observation),
        ("searches", _search),
        ("questions", _question),
    ):
        facts += [_placed(row, build, source) for row in _rows(document, part, file)]
    return facts


def _rows(document: Mapping[str, Any], part: str, file: str) -> list[_Row]:
    rows = document.get(part, [])
    if not isinstance(rows, list):
        _Row(file, "the file", document).refuse(part, type(rows).__name__, "a list")
    whole = _Row(file, "the file", document)
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            whole.refuse(f"{part}[{index}]", type(row).__name__, "an object")
    return [_Row(file, f"{part}[{index}]", row) for index, row in enumerate(rows)]


def _placed(row: _Row, build: Any, source: str) -> Fact:
    """A fact, or its refusal with the place in the file."""
    try:
        return build(row, source)
    except OuvrageError as error:
        if error.code == "evidence/file":
            raise
        raise OuvrageError(
            error.code, f"{row.file}: {row.place}: {error.message}", hint=error.hint
        ) from error


def _published(whole: _Row) -> list[Fact]:
    """The comparisons that come with this program, by name."""
    names = whole.value.get("published", [])
    known = f"a list of names, each one of {', '.join(CLAIMS)}"
    if not isinstance(names, list):
        whole.refuse("published", repr(names)[:60], known)
    for name in names:
        if not isinstance(name, str) or name not in CLAIMS:
            whole.refuse("published", repr(name)[:60], known)
    return [claim_fact(CLAIMS[name]) for name in names]


def _claim(row: _Row, source: str) -> Fact:
    row.only(
        *("name", "providers", "subject", "property", "statement", "value", "unit", "said_by"),
        *("interest", "stated_on", "read_on", "address", "not_shown", "grade"),
    )
    stated_on = row.need("stated_on")
    claim = Claim(
        name=row.text("name") or "",
        providers=row.names("providers"),
        subject=row.need("subject"),
        property=row.need("property"),
        statement=row.need("statement"),
        value=row.text("value"),
        unit=row.text("unit"),
        said_by=row.need("said_by"),
        interest=row.need("interest"),
        stated_on=None if stated_on == UNDATED else stated_on,
        read_on=row.need("read_on"),
        address=row.text("address"),
        not_shown=row.need("not_shown"),
        comparison=None,
    )
    return stated(named(claim), source=source, grade=_grade(row))


def _grade(row: _Row) -> Grade:
    text = row.text("grade") or "reported"
    try:
        return grade_of(text)
    except KeyError:
        row.refuse("grade", repr(text), "reported, listed or assumed")


def _observation(row: _Row, source: str) -> Fact:
    row.only(
        *("name", "providers", "subject", "place", "address", "made_by", "at", "status"),
        *("fault", "findings", "not_shown"),
    )
    try:
        at = utc_us(row.need("at"))
    except (ValueError, OverflowError):
        row.refuse("at", repr(row.value.get("at")), "a moment such as 2026-10-19T08:00:00Z")
    status = row.value.get("status")
    if status is not None and type(status) is not int:
        row.refuse("status", repr(status)[:60], "an HTTP status or null")
    observation = Observation(
        providers=row.names("providers"),
        subject=row.need("subject"),
        place=row.need("place"),
        address=row.need("address"),
        made_by=row.need("made_by"),
        asked_us=at,
        answered_us=None,
        page_us=None,
        status=status,
        fault=row.text("fault"),
        sha256=None,
        size_bytes=None,
        answer=None,
        findings=tuple(map(_finding, _rows(row.value, "findings", f"{row.file}: {row.place}"))),
        not_shown=row.need("not_shown"),
    )
    return observed(observation, source=source, id=row.need("name"), grade=Grade.REPORTED)


def _finding(row: _Row) -> Finding:
    row.only("property", "outcome", "value", "unit", "grade")
    name, outcome, grade = row.need("property"), row.need("outcome"), _grade(row)
    if outcome == NO_ANSWER:
        return unanswered(name, grade)
    if outcome == ABSENT:
        return absent(name, grade, row.text("unit"))
    if outcome == PRESENT:
        return present(name, row.need("value"), grade, row.text("unit"))
    row.refuse("outcome", repr(outcome), f"one of {', '.join(OUTCOMES)}")


def _search(row: _Row, source: str) -> Fact:
    row.only("providers", "words", "place", "searched_on")
    return searched(
        Search(
            providers=row.names("providers"),
            words=row.need("words"),
            place=row.need("place"),
            searched_on=row.need("searched_on"),
        ),
        source=source,
    )


def _question(row: _Row, source: str) -> Fact:
    row.only("providers", "question", "asked_on")
    return asked(
        Question(
            providers=row.names("providers"),
            question=row.need("question"),
            asked_on=row.need("asked_on"),
        ),
        source=source,
    )
