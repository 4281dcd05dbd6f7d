"""Recording statements so that the same one again changes nothing and a new one corrects the old.

Decides the id of a fact that comes from a file, a feed or an owner's word: its natural key (what the
statement is about: this machine, this day, this component) and a hash of what it states. What states
nothing new *exists*; another statement under the same natural key replaces the one that holds. An old
file read again after a newer one changes nothing, because its ids are known already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.ledger.stated import HASHED, Stated
from ouvrage.ledger.view import in_force
from ouvrage.model.records import Withdrawal

__all__ = ["Booked", "Stated", "book"]


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
    """What this home has stated: every id, and by natural key the fact that holds."""

    ids: set[str] = field(default_factory=set)
    holds: dict[str, Fact] = field(default_factory=dict)


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
    corrected = 0
    for each in statements:
        before = known.holds.get(each.natural)
        fact = _fact(each, own, before, each.id)
        if (before is not None and _same(before, fact)) or (fact.id in known.ids and not typed):
            continue
        if fact.id in known.ids:
            told = canonical([each.id, before.key if before else "", len(known.ids)])
            fact = _fact(each, own, before, f"{each.natural}/{sha256_hex(told)[:HASHED]}")
        corrected += before is not None
        batch.append(fact)
        known.ids.add(fact.id)
        known.holds[each.natural] = fact
    ledger.store.append(batch, now_us=now_us(), own_source=own)
    return Booked(
        new=len(batch) - corrected, same=len(statements) - len(batch), corrected=corrected
    )


def _same(before: Fact, fact: Fact) -> bool:
    """Whether two facts state the same, whatever each of them corrects."""
    said = ("payload", "valid_from", "valid_to", "grade")
    return all(getattr(before, name) == getattr(fact, name) for name in said)


def _fact(each: Stated, source: str, before: Fact | None, id: str) -> Fact:
    return fact_of(
        each.value,
        source=source,
        id=id,
        subject=each.subject,
        valid_from=each.valid_from,
        valid_to=each.valid_to,
        grade=each.grade,
        corrects=None if before is None else before.key,
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
    return found


def _own(records: Sequence[Recorded], own: str) -> Iterable[Recorded]:
    return (entry for entry in records if entry.fact.source == own)
