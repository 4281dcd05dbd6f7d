"""The laws of the ledger itself: whatever the facts say, this must hold over all of them.

They judge form, identity, order and correction. What facts mean is judged by the laws of the layers
above. A correction that names a fact not (yet) here breaks nothing: facts may come in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ouvrage.ledger.admission import name_fault, number_fault, payload_fault
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import circular
from ouvrage.model.records import Conflict, Withdrawal

Found = Iterator[tuple[str, str]]


def where_of(entry: Recorded) -> str:
    """How a breach names a record."""
    return f"seq {entry.seq}, {entry.fact.kind} {entry.fact.key}"


def _gapless(records: Sequence[Recorded]) -> Found:
    for expected, entry in enumerate(records, 1):
        if entry.seq != expected:
            yield where_of(entry), f"expected seq {expected}"
            return  # every later one would be off by the same


def _recorded_in_order(records: Sequence[Recorded]) -> Found:
    latest = 0
    for entry in records:
        if entry.recorded_at < latest:
            yield where_of(entry), f"recorded at {entry.recorded_at}, after a fact at {latest}"
        latest = max(latest, entry.recorded_at)


def _hashes(records: Sequence[Recorded]) -> Found:
    for entry in records:
        if entry.stored_sha256 not in (None, entry.fact.sha256):
            yield where_of(entry), f"hash {entry.stored_sha256} kept, {entry.fact.sha256} computed"


def _identities(records: Sequence[Recorded]) -> Found:
    seen: dict[str, int] = {}
    for entry in records:
        first = seen.setdefault(entry.fact.key, entry.seq)
        if first != entry.seq:
            yield where_of(entry), f"the same source and id as seq {first}"


def _each(fault: Callable[[Fact], str | None]) -> Callable[[Sequence[Recorded]], Found]:
    def check(records: Sequence[Recorded]) -> Found:
        for entry in records:
            found = fault(entry.fact)
            if found is not None:
                yield where_of(entry), found

    return check


def _corrections(records: Sequence[Recorded]) -> Found:
    by_key = {entry.fact.key: entry.fact for entry in records}
    for entry in records:
        fact = entry.fact
        if fact.kind == Withdrawal.KIND and fact.corrects is None:
            yield where_of(entry), "a withdrawal that does not say of what"
        target = by_key.get(fact.corrects) if fact.corrects else None
        if target is not None:
            yield from ((where_of(entry), found) for found in _misfit(fact, target))


def _misfit(fact: Fact, target: Fact) -> Iterator[str]:
    if fact.kind not in (target.kind, Withdrawal.KIND):
        yield f"corrects {target.key}, a {target.kind}"
    if fact.subject != target.subject:
        yield f"is about {fact.subject}, corrects {target.key} about {target.subject}"


def _circles(records: Sequence[Recorded]) -> Found:
    for entry in circular(records):
        yield where_of(entry), f"corrects {entry.fact.corrects}, and so in the end itself"


def _conflicts(records: Sequence[Recorded]) -> Found:
    hashes = {entry.fact.key: entry.fact.sha256 for entry in records}
    for entry in records:
        stated = read(entry.fact)
        if not isinstance(stated, Conflict):
            continue
        if stated.stored_sha256 == stated.offered_sha256:
            yield where_of(entry), f"{stated.key} is said to conflict with itself"
        if hashes.get(stated.key, stated.stored_sha256) != stated.stored_sha256:
            yield where_of(entry), f"{stated.key} is not what it was when the conflict was met"


LAWS: tuple[Law, ...] = (
    Law(
        name="ledger/gapless",
        statement="facts are numbered from 1 without a gap",
        check=_gapless,
    ),
    Law(
        name="ledger/recorded-in-order",
        statement="the moment of recording never goes back",
        check=_recorded_in_order,
    ),
    Law(
        name="ledger/hash",
        statement="every fact still has the hash under which it was recorded",
        check=_hashes,
    ),
    Law(
        name="ledger/identity",
        statement="a source and id identify one fact",
        check=_identities,
    ),
    Law(
        name="ledger/names",
        statement="source, id, kind and subject are names that any store can hold",
        check=_each(name_fault),
    ),
    Law(
        name="ledger/period",
        statement="periods are half-open whole microseconds and end no earlier than they begin",
        check=_each(number_fault),
    ),
    Law(
        name="ledger/payload",
        statement="payloads are canonical JSON, and kinds known here can read theirs",
        check=_each(payload_fault),
    ),
    Law(
        name="ledger/correction",
        statement="a correction is of the same kind and about the same subject as what it corrects",
        check=_corrections,
    ),
    Law(
        name="ledger/circle",
        statement="no fact corrects itself, directly or through others",
        check=_circles,
    ),
    Law(
        name="ledger/conflict",
        statement="what a refused statement conflicted with still stands as it was",
        check=_conflicts,
    ),
)
