"""What holds, as known at a moment: facts less those that were corrected or withdrawn.

The result does not depend on the order in which facts arrived. A correction takes the place of the
fact it names, also when it came first. Where several facts correct the same one, the greatest id
wins (ids are time-ordered at their source), then the greatest source.
"""

from __future__ import annotations

from collections.abc import Iterable

from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.model.records import Withdrawal


def as_known(recorded: Iterable[Recorded], as_of: int | None = None) -> list[Recorded]:
    """The records that were in the ledger at ``as_of`` (None: all of them)."""
    return [entry for entry in recorded if as_of is None or entry.recorded_at <= as_of]


def in_force(recorded: Iterable[Recorded]) -> list[Recorded]:
    """The records that nothing corrects or withdraws, in an order that arrival does not change.

    Sorted by subject, kind, start of validity, source and id.
    """
    entries = list(recorded)
    replaced = {entry.fact.corrects for entry in entries if entry.fact.corrects}
    winners = _winners(entries)
    kept = [
        entry
        for entry in entries
        if entry.fact.key not in replaced
        and (entry.fact.corrects is None or winners[entry.fact.corrects] == entry.fact.key)
        and entry.fact.kind != Withdrawal.KIND
    ]
    return sorted(kept, key=_place)


def _winners(entries: list[Recorded]) -> dict[str, str]:
    best: dict[str, Fact] = {}
    for entry in entries:
        fact = entry.fact
        if fact.corrects is None:
            continue
        held = best.get(fact.corrects)
        if held is None or (fact.id, fact.source) > (held.id, held.source):
            best[fact.corrects] = fact
    return {target: fact.key for target, fact in best.items()}


def _place(entry: Recorded) -> tuple[str, str, int, str, str]:
    fact = entry.fact
    return (fact.subject, fact.kind, fact.valid_from, fact.source, fact.id)
