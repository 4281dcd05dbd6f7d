"""Recording statements so that the same one again changes nothing and a new one corrects the old.

Decides the id of a fact that comes from a file, a feed or an owner's word: its natural key (what the
statement is about: this machine, this day, this component) and a hash of what it states. What states
nothing new *exists*; another statement under the same natural key replaces the one that holds. Where it
is about another subject (a machine was mapped to the wrong node) it cannot correct that one: the old
statements are withdrawn and it stands anew. An old file read again after a newer one changes nothing,
because its ids are known already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.books.known import DAILY, MOST_DEVICES
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.ledger.stated import HASHED, Stated
from ouvrage.ledger.view import in_force
from ouvrage.model.records import Withdrawal
from ouvrage.model.sites import DevicePlaced

__all__ = ["Booked", "Stated", "book", "withdrawal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """How many statements were new, were there already, or replaced what was stated before."""

    new: int = 0
    same: int = 0
    corrected: int = 0

    @property
    def words(self) -> str:
        """``12 new, 3 corrected, 40 there already``."""
        parts = ((self.new, "new"), (self.corrected, "corrected"), (self.same, "there already"))
        return ", ".join(f"{count} {word}" for count, word in parts if count) or "nothing"


@dataclass(slots=True)
class _Book:
    """What this home has stated: every id, those ``gone`` because they were withdrawn, and by natural
    key the fact that holds and all that were not withdrawn.
    """

    ids: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    holds: dict[str, Fact] = field(default_factory=dict)
    stated: dict[str, list[Fact]] = field(default_factory=dict)


def book(ledger: Ledger, facts: Iterable[Stated], *, typed: bool = False) -> Booked:
    """Record statements, all or none; each is new, there already, or a correction.

    ``typed``: a person states it now, so that it holds also where it was stated once and has been
    replaced or withdrawn since. A file's statement would then be an old file read again.
    """
    statements = list(facts)
    if not statements:
        return Booked()
    own = source_id(ledger.home)
    known = _known(ledger, {each.value.KIND for each in statements}, own)
    batch: list[Fact] = []
    stated, corrected, now = 0, 0, now_us()
    for each in statements:
        before, text = known.holds.get(each.natural), each.text
        stated_id = each.id_of(text)
        fact = _fact(each, own, before, stated_id, text)
        old_news = fact.id in known.ids and fact.id not in known.gone and not typed
        if (before is not None and _same(before, fact)) or old_news:
            continue
        if fact.id in known.ids:
            told = canonical([stated_id, before.key if before else "", len(known.ids)])
            fact = _fact(each, own, before, f"{each.natural}/{sha256_hex(told)[:HASHED]}", text)
        stated += 1
        corrected += before is not None
        if before is not None and before.subject != fact.subject:
            why = f"stated about {before.subject}, and now about {fact.subject}"
            taken_back = known.stated.pop(each.natural)
            batch += [withdrawal(why, old, own, now) for old in taken_back]
            known.gone.update(old.id for old in taken_back)
            fact = replace(fact, corrects=None)
        batch.append(fact)
        known.ids.add(fact.id)
        known.holds[each.natural] = fact
        known.stated.setdefault(each.natural, []).append(fact)
    ledger.store.append(batch, now_us=now, own_source=own)
    _renew(ledger, batch)
    return Booked(new=stated - corrected, same=len(statements) - stated, corrected=corrected)


def _renew(ledger: Ledger, batch: Iterable[Fact]) -> None:
    """Make the months anew that a large owner's new daily facts are about: whoever asks need not wait."""
    spans = [
        (f.valid_from, f.valid_to) for f in batch if f.kind in DAILY and f.valid_to is not None
    ]
    if spans and len(ledger.store.lines((DevicePlaced.KIND,))) > MOST_DEVICES:
        from ouvrage.cli.books_kept import keep_touched  # which asks as the verbs of the books do

        keep_touched(ledger, spans)


def withdrawal(why: str, fact: Fact, source: str, now: int) -> Fact:
    """What takes one statement back; what that one had replaced must be taken back too."""
    return fact_of(
        Withdrawal(why=why),
        source=source,
        id=f"own/withdrawn/{new_id()}",
        subject=fact.subject,
        valid_from=now,
        valid_to=None,
        grade=Grade.REPORTED,
        corrects=fact.key,
    )


def _same(before: Fact, fact: Fact) -> bool:
    """Whether two facts state the same, whatever each of them corrects."""
    said = ("payload", "valid_from", "valid_to", "grade")
    return all(getattr(before, name) == getattr(fact, name) for name in said)


def _fact(each: Stated, source: str, before: Fact | None, id: str, text: str) -> Fact:
    return fact_of(
        each.value,
        source=source,
        id=id,
        subject=each.subject,
        valid_from=each.valid_from,
        valid_to=each.valid_to,
        grade=each.grade,
        corrects=None if before is None else before.key,
        payload=text,
    )


def _known(ledger: Ledger, kinds: Iterable[str], own: str) -> _Book:
    records: list[Recorded] = [
        entry
        for kind in sorted({*kinds, Withdrawal.KIND})
        for entry in ledger.store.records(kind=kind)
    ]
    found = _Book(ids={entry.fact.id for entry in records if entry.fact.source == own})
    for entry in _own(in_force(records), own):
        found.holds[entry.fact.id.rpartition("/")[0]] = entry.fact
    gone = {entry.fact.corrects for entry in records if entry.fact.kind == Withdrawal.KIND}
    for entry in _own(records, own):
        if entry.fact.key in gone:
            found.gone.add(entry.fact.id)
        elif entry.fact.kind != Withdrawal.KIND:
            found.stated.setdefault(entry.fact.id.rpartition("/")[0], []).append(entry.fact)
    return found


def _own(records: Sequence[Recorded], own: str) -> Iterable[Recorded]:
    return (entry for entry in records if entry.fact.source == own)
