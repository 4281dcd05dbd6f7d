"""A dossier: what is known of a provider, by whom it is said, and what none of it shows.

Decides which evidence belongs in it (what names the provider, and what was observed of a subject
that such evidence names), its order, what contradicts what, and what is old. It weighs nothing: two
values that cannot both hold are both shown, and no claim is dropped for another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from ouvrage.base.grades import Grade, grade_of
from ouvrage.base.time import DAY, utc_text
from ouvrage.evidence.claims import (
    Entry,
    claims_in,
    day_us,
    interest_words,
    name_of,
    number_of,
    provider_key,
)
from ouvrage.evidence.limits import limits_of
from ouvrage.evidence.observations import OUR_OWN, Seen, observations_in
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.claims import Claim
from ouvrage.model.observations import ABSENT, NO_ANSWER, PRESENT, Finding, Question, Search

STALE_AFTER_US = 180 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One statement in a dossier: a claim, or one finding of an observation.

    ``at_us`` is the moment it speaks of and ``dated`` False where only the day it was read is known;
    ``outcome`` is one of the three of an observation, and ``present`` for a claim; ``why`` says what
    went wrong where there was no answer at all. ``grade`` is what
    the statement is worth; ``asked`` the grade of our having asked, None for a claim.
    """

    key: str
    name: str
    at_us: int
    dated: bool
    to_the_minute: bool
    subject: str
    property: str
    outcome: str
    value: str | None
    unit: str | None
    words: str
    details: tuple[str, ...]
    who: str
    interest: str
    grade: Grade
    asked: Grade | None
    why: str | None
    status: int | None
    sha256: str | None
    address: str | None
    read_on: str | None
    not_shown: str


def when_of(item: Item) -> str:
    """The day of an item, with the minute where it is known to the minute."""
    text = utc_text(item.at_us)
    return f"{text[:10]} {text[11:16]}" if item.to_the_minute else text[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two statements about one property of one subject that cannot both hold at one time."""

    first: Item
    second: Item

    @property
    def same_day(self) -> bool:
        """Whether both speak of one day, so that no change between them can explain it."""
        return when_of(self.first)[:10] == when_of(self.second)[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A question that nobody has answered, and since when it stands."""

    name: str
    question: str
    asked_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """Everything about one provider, as known at ``as_of``, in order of date."""

    provider: str
    as_of: int
    stale_after_us: int
    items: tuple[Item, ...]
    contradictions: tuple[Contradiction, ...]
    questions: tuple[Open, ...]
    searches: tuple[Search, ...]
    limits: tuple[str, ...]

    @property
    def stale(self) -> tuple[Item, ...]:
        """What speaks of a moment further back than ``stale_after_us``."""
        return tuple(i for i in self.items if self.as_of - i.at_us > self.stale_after_us)

    def of(self, outcome: str) -> tuple[Item, ...]:
        """The items of one outcome."""
        return tuple(item for item in self.items if item.outcome == outcome)


def providers_in(records: Iterable[Recorded]) -> dict[str, str]:
    """Every provider that some evidence names: its key, and its name as first written."""
    found: dict[str, str] = {}
    for entry in sorted(in_force(records), key=lambda entry: entry.seq):
        value = read(entry.fact) if entry.fact.kind.startswith("evidence.") else None
        for name in getattr(value, "providers", ()):
            found.setdefault(provider_key(name), name)
    return found


def open_questions(provider: str, records: Iterable[Recorded]) -> tuple[Open, ...]:
    """What is not known of a provider: the warnings that belong beside its offers.

    ``records`` are those of open questions with every withdrawal, as known at one moment.
    """
    found = [
        Open(name=entry.fact.subject, question=value.question, asked_on=value.asked_on)
        for entry in in_force(records)
        if entry.fact.kind == Question.KIND
        for value in [read(entry.fact)]
        if isinstance(value, Question) and _names(value.providers, provider)
    ]
    return tuple(sorted(found, key=lambda each: (each.asked_on, each.question)))


def dossier(
    provider: str, records: Sequence[Recorded], as_of: int, stale_after_us: int = STALE_AFTER_US
) -> Dossier:
    """What some records say of a provider, as known at a moment."""
    standing = in_force(records)
    items = sorted(_items(provider, standing), key=_order)
    searches = _searches(provider, standing)
    return Dossier(
        provider=providers_in(records).get(provider_key(provider), provider),
        as_of=as_of,
        stale_after_us=stale_after_us,
        items=tuple(items),
        contradictions=contradictions(items),
        questions=open_questions(provider, records),
        searches=searches,
        limits=limits_of(
            sorted({item.property for item in items}),
            unanswered=any(item.outcome == NO_ANSWER for item in items),
            searches=bool(searches),
        ),
    )


def _names(providers: Iterable[str], provider: str) -> bool:
    return provider_key(provider) in {provider_key(name) for name in providers}


def _order(item: Item) -> tuple[int, str, str, str]:
    return (item.at_us, item.subject, item.key, item.property)


def _items(provider: str, standing: Sequence[Recorded]) -> list[Item]:
    claims = [e for e in claims_in(standing) if _names(e.claim.providers, provider)]
    seen = observations_in(standing)
    named = [s for s in seen if _names(s.observation.providers, provider)]
    subjects = {provider_key(e.claim.subject) for e in claims}
    subjects |= {provider_key(s.observation.subject) for s in named}
    about = [s for s in seen if provider_key(s.observation.subject) in subjects]
    found = [_claimed(entry) for entry in claims]
    for each in about:
        found += [_found(each, finding) for finding in each.observation.findings]
    return found


def _claimed(entry: Entry) -> Item:
    claim = entry.claim
    return Item(
        key=entry.recorded.fact.key,
        name=claim.name,
        at_us=day_us(claim.stated_on or claim.read_on),
        dated=claim.stated_on is not None,
        to_the_minute=False,
        subject=claim.subject,
        property=claim.property,
        outcome=PRESENT,
        value=claim.value,
        unit=claim.unit,
        words=claim.statement,
        details=tuple(_compared(claim)),
        who=claim.said_by,
        interest=interest_words(claim.interest),
        grade=entry.grade,
        asked=None,
        why=None,
        status=None,
        sha256=None,
        address=claim.address,
        read_on=claim.read_on,
        not_shown=claim.not_shown,
    )


def _compared(claim: Claim) -> Iterator[str]:
    """The configurations of a published comparison, as stated."""
    stated = claim.comparison
    if stated is None:
        return
    yield f"{stated.work}; the figures and what follows from them: ouvrage explain {claim.name}"
    for offer in stated.offers:
        price = f"{offer.price_per_hour} {stated.currency}/h"
        cost = f"{offer.cost_per_unit} {stated.currency} per {stated.unit}"
        yield f"{offer.name}: {price}, {cost}"


def _found(seen: Seen, finding: Finding) -> Item:
    asked = seen.observation
    return Item(
        key=seen.recorded.fact.key,
        name=name_of(seen.recorded.fact),
        at_us=asked.page_us if asked.page_us is not None else asked.asked_us,
        dated=True,
        to_the_minute=True,
        subject=asked.subject,
        property=finding.property,
        outcome=finding.outcome,
        value=finding.value,
        unit=finding.unit,
        words=_said(finding),
        details=(),
        who=asked.place,
        interest=f"asked by {'us' if asked.made_by == OUR_OWN else asked.made_by}",
        grade=grade_of(finding.grade),
        asked=seen.grade,
        why=asked.fault,
        status=asked.status,
        sha256=asked.sha256,
        address=asked.address,
        read_on=utc_text(asked.asked_us)[:10],
        not_shown=asked.not_shown,
    )


def _said(finding: Finding) -> str:
    if finding.outcome != PRESENT:
        return f"{finding.property}: {finding.outcome}"
    unit = f" {finding.unit}" if finding.unit else ""
    return f"{finding.property}: {finding.value}{unit}"


def _searches(provider: str, standing: Sequence[Recorded]) -> tuple[Search, ...]:
    values = [read(entry.fact) for entry in standing if entry.fact.kind == Search.KIND]
    found = [v for v in values if isinstance(v, Search) and _names(v.providers, provider)]
    return tuple(sorted(found, key=lambda each: (each.searched_on, each.place, each.words)))


def contradictions(items: Sequence[Item]) -> tuple[Contradiction, ...]:
    """Every two statements about the same property of the same subject with incompatible values.

    A statement without a value, and one that got no answer, contradicts nothing. Of those who say
    the same thing again and again the latest saying stands for all.
    """
    latest: dict[tuple[str, str], dict[object, Item]] = defaultdict(dict)
    for item in items:
        if item.outcome == ABSENT or (item.outcome == PRESENT and item.value is not None):
            about = (provider_key(item.subject), item.property.casefold())
            latest[about][_normal(item), item.unit, item.who] = item
    return tuple(
        Contradiction(first=first, second=second)
        for _, group in sorted(latest.items())
        for first, second in combinations(group.values(), 2)
        if not compatible(first, second)
    )


def compatible(first: Item, second: Item) -> bool:
    """Whether two values can both hold; values in different units are not compared."""
    ours, theirs = _normal(first), _normal(second)
    if None in (ours, theirs):
        return ours == theirs
    return (first.unit or "") != (second.unit or "") or ours == theirs


def _normal(item: Item) -> object:
    """A value without what is only its spelling; None for one that is not there: absent, zero, no."""
    text = " ".join((item.value or "").casefold().split())
    number = number_of(text)
    if item.outcome == ABSENT or not text or number == 0 or text in ("no", "none"):
        return None
    if number is not None:
        return number
    return frozenset(part.strip() for part in text.split(", ")) if ", " in text else text
