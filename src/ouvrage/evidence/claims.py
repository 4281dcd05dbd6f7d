"""Claims as facts: what makes one complete, how it is dated, and how each version is read.

Decides the form alone; whether a claim is true is for its reader, who is told who said it, what
they gain by it and what it does not show. A claim is dated by its statement, or where that is
undated by the day it was read, because nothing earlier is known of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.time import utc_us
from ouvrage.evidence.figures import Sheet, known
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of, payload_of, read
from ouvrage.model.claims import INTERESTS, Claim, ClaimedComparison, ComparisonClaim
from ouvrage.model.observations import Question, Search

CLAIMED = (Grade.REPORTED, Grade.LISTED, Grade.ASSUMED, Grade.SIMULATED)
"""What a claim can be worth: never a measurement of ours, never the provider's own meter."""
_INTEREST_WORDS = {
    "vendor": "the vendor itself",
    "partner": "a partner of the provider",
    "independent": "independent of the provider",
    "ourselves": "ourselves",
}
_ID = re.compile("[0-9a-f]{32}")
_CODE = 6
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_NOT_IN_KEY = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A claim as it stands in the ledger."""

    claim: Claim
    grade: Grade
    recorded: Recorded


def interest_words(interest: str) -> str:
    """An interest as a sentence says it; a word of an older program as it stands."""
    return _INTEREST_WORDS.get(interest, interest)


def provider_key(name: str) -> str:
    """What two spellings of a provider's name share: ``Genesis Cloud`` and ``genesis-cloud``."""
    return _NOT_IN_KEY.sub("", name).casefold()


def claim_key(claim: Claim, source: str) -> str:
    """The key of the fact that states a claim."""
    return f"{source}/{_id_of(claim)}"


def _id_of(claim: Claim) -> str:
    return f"claim/{claim.name}"


def name_of(fact: Fact) -> str:
    """How a person calls a fact of evidence: the name it was given, or a short code."""
    name = fact.id.partition("/")[2] or fact.id
    return code_of(name, _CODE) if _ID.fullmatch(name) else name


def short_name(value: Any) -> str:
    """A name made from all that is stated, so that the same statement has the same one."""
    return sha256_hex(payload_of(value))[:8]


def named(claim: Claim) -> Claim:
    """The claim under a name of its own, where it was given none."""
    return claim if claim.name else replace(claim, name=short_name(claim))


def stated(claim: Claim, *, source: str, grade: Grade, corrects: str | None = None) -> Fact:
    """The fact that somebody claims this. Raises ``OuvrageError`` ``evidence/...``."""
    fault = claim_fault(claim, grade)
    if fault is not None:
        raise OuvrageError("evidence/incomplete", fault[0], hint=fault[1])
    return fact_of(
        claim,
        source=source,
        id=_id_of(claim),
        subject=claim.name,
        valid_from=day_us(claim.stated_on or claim.read_on),
        valid_to=None,
        grade=grade,
        corrects=corrects,
    )


def searched(search: Search, *, source: str) -> Fact:
    """The fact that a search found nothing: reported, since nobody can repeat it as it was."""
    _need({"what was searched for": search.words, "where": search.place}, search.providers)
    return _of_a_day(search, "search", search.searched_on, source, Grade.REPORTED)


def asked(question: Question, *, source: str) -> Fact:
    """The fact that something about a provider is not known."""
    _need({"the question": question.question}, question.providers)
    return _of_a_day(question, "question", question.asked_on, source, Grade.REPORTED)


def _of_a_day(value: Any, word: str, day: str, source: str, grade: Grade) -> Fact:
    if _day_fault(day):
        raise OuvrageError("evidence/date", f"{day!r} is no date", hint="write it as 2026-11-30")
    name = short_name(value)
    return fact_of(
        value,
        source=source,
        id=f"{word}/{name}",
        subject=name,
        valid_from=day_us(day),
        valid_to=None,
        grade=grade,
    )


def _need(texts: dict[str, str], providers: tuple[str, ...]) -> None:
    missing = [name for name, text in texts.items() if not text.strip()]
    if not any(provider_key(name) for name in providers):
        missing.append("the provider it is about")
    if missing:
        raise OuvrageError(
            "evidence/incomplete",
            f"it does not say {' and '.join(missing)}",
            hint="ouvrage evidence add --help lists what each kind of evidence states",
        )


def claim_fault(claim: Claim, grade: Grade) -> tuple[str, str] | None:
    """What is missing or wrong in a claim, with what to do about it; None where it is whole."""
    if grade not in CLAIMED:
        words = ", ".join(grade.word for grade in CLAIMED)
        return f"a claim is never {grade.word}", f"it can be {words}"
    for name in ("subject", "property", "statement", "said_by", "not_shown"):
        if not getattr(claim, name).strip():
            told = name.replace("_", " ")
            return f"the claim does not say its {told}", f"give --{told.replace(' ', '-')}"
    if not _NAME.fullmatch(claim.name):
        return f"{claim.name!r} is no name", "letters, digits, dots and dashes, 60 at most"
    if not any(provider_key(name) for name in claim.providers):
        return "the claim belongs to no provider", "give --provider"
    if claim.interest not in INTERESTS:
        return f"{claim.interest!r} is no interest", f"it is one of {', '.join(INTERESTS)}"
    return _dates_fault(claim) or _value_fault(claim)


def _dates_fault(claim: Claim) -> tuple[str, str] | None:
    hint = "write dates as 2026-11-30, or `undated` for a statement without one"
    for day in (claim.stated_on, claim.read_on):
        if day is not None and _day_fault(day):
            return f"{day!r} is no date", hint
    if claim.stated_on is not None and claim.stated_on > claim.read_on:
        return f"read on {claim.read_on}, before it was stated on {claim.stated_on}", hint
    return None


def _value_fault(claim: Claim) -> tuple[str, str] | None:
    if claim.unit is None:
        return None
    if claim.value is None:
        return "a unit without a value", "give --value, or leave --unit out"
    if number_of(claim.value) is None:
        return f"{claim.value!r} {claim.unit} is no number", "leave --unit out for words"
    return None


def number_of(text: str) -> Decimal | None:
    """The number that a value's text is, or None."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) < 40 else None


def _day_fault(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return True
    return not _DAY.fullmatch(text)


def day_us(day: str) -> int:
    """The first instant of a day, UTC."""
    return utc_us(f"{day}T00:00:00Z")


def claims_in(records: Iterable[Recorded]) -> list[Entry]:
    """Every claim that some records state, of whatever version, as the newest states it."""
    found: list[Entry] = []
    for entry in records:
        value = read(entry.fact) if entry.fact.kind == Claim.KIND else None
        if isinstance(value, ComparisonClaim):
            value = _upgraded(value)
        if isinstance(value, Claim):
            found.append(Entry(claim=value, grade=entry.fact.grade, recorded=entry))
    return found


def _upgraded(old: ComparisonClaim) -> Claim:
    """Version 1 as version 2 states it; whose dossier it belongs in, version 1 did not say."""
    return Claim(
        name=old.name,
        providers=(),
        subject=old.name,
        property="trial of configurations",
        statement=old.statement,
        value=None,
        unit=None,
        said_by=old.said_by,
        interest=old.interest,
        stated_on=old.stated_on,
        read_on=old.read_on,
        address=None,
        not_shown=old.not_shown,
        comparison=ClaimedComparison(
            work=old.work, unit=old.unit, currency=old.currency, offers=old.offers
        ),
    )


def value_sheet(entry: Entry, as_of: int) -> Sheet:
    """The value that a claim states, as a figure; it keeps the claim's grade."""
    claim = entry.claim
    method = f"as stated by {claim.said_by}: {claim.statement}"
    facts = (entry.recorded.fact.key,)
    figures = {}
    if claim.value is not None:
        number = number_of(claim.value) if claim.unit is not None else None
        figures["value"] = known(
            "value",
            claim.value if number is None else Fraction(number),
            claim.unit or "1",
            entry.grade,
            method,
            facts=facts,
        )
    return Sheet(object=claim.name, as_of=as_of, figures=figures)
