"""What we asked and what came back, what we searched for in vain, and what nobody knows yet.

An observation keeps the answer itself, so that anybody can read it again. That nothing answered and
that the answer was *no* are different outcomes and are never mixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

PRESENT, ABSENT, NO_ANSWER = OUTCOMES = ("present", "absent", "no answer")
"""Found, looked for and not there, and not known: a refusal, a fault, a field that is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an answer says of one property of what was asked about.

    ``outcome`` is ``present``, ``absent`` or ``no answer``; only a present one has a ``value``.
    ``grade`` is what the answerer's word is worth: ``reported`` or ``listed``.
    """

    property: str
    outcome: str
    value: str | None
    unit: str | None
    grade: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A question put to an outside record, and what came back.

    ``place`` is who was asked, ``status`` the HTTP status (null where there was none), ``fault``
    what went wrong, in words. ``sha256`` and ``size_bytes`` are those of the raw answer; ``answer``
    is that answer, compressed with zlib and in base 64, null where it was not kept, in which case
    the observation is at best ``reported``. ``made_by`` says who asked. ``page_us`` is the moment for
    which the answer says it holds, where it says so.
    """

    KIND: ClassVar[str] = "evidence.observation"
    VERSION: ClassVar[int] = 1

    providers: tuple[str, ...]
    subject: str
    place: str
    address: str
    made_by: str
    asked_us: int
    answered_us: int | None
    page_us: int | None
    status: int | None
    fault: str | None
    sha256: str | None
    size_bytes: int | None
    answer: str | None
    findings: tuple[Finding, ...]
    not_shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search that found nothing, with its place and date. It proves nothing."""

    KIND: ClassVar[str] = "evidence.search"
    VERSION: ClassVar[int] = 1

    providers: tuple[str, ...]
    words: str
    place: str
    searched_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something about a provider that is not known, open until it is withdrawn.

    Quotes on the provider's offers show it as a warning.
    """

    KIND: ClassVar[str] = "evidence.question"
    VERSION: ClassVar[int] = 1

    providers: tuple[str, ...]
    question: str
    asked_on: str
