"""What holds, as known at a moment: facts less those that were corrected or withdrawn.

The result does not depend on the order in which facts arrived. A correction takes the place of the
fact it names, also when it came first. Where several facts correct the same one, the greatest id
wins (ids are time-ordered at their source), then the greatest source. Withdrawing a correction
gives its place back to what it had replaced, because it says that the correction should never have
been stated. Corrections that go in a circle replace each other and leave nothing; the ledger's laws
report them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ouvrage.ledger.facts import GRADES, Fact, Line, Recorded
from ouvrage.model.records import Withdrawal

Correctors = Mapping[str, Sequence[Recorded]]
"""By the key of the corrected fact: what corrects it, best first."""


def in_force(recorded: Iterable[Recorded]) -> list[Recorded]:
    """The records that nothing corrects or withdraws, in an order that arrival does not change.

    Sorted by subject, kind, start of validity, source and id.
    """
    entries = list(recorded)
    correctors = _correctors(entries)
    if correctors:
        entries = _outcomes(entries, correctors)
    kept = [entry for entry in entries if entry.fact.kind != Withdrawal.KIND]
    return sorted(kept, key=_place)


def lines_in_force(lines: Sequence[Line]) -> list[Line]:
    """``in_force`` for lines, in their own order: only those that a correction concerns are weighed."""
    targets = {line.corrects for line in lines if line.corrects is not None}
    if not targets:
        return [line for line in lines if line.kind != Withdrawal.KIND]
    concerned = [line for line in lines if line.corrects is not None or line.key in targets]
    standing = {entry.fact.key for entry in in_force(map(_record_of, concerned))}
    fallen = {line.key for line in concerned} - standing
    return [line for line in lines if line.kind != Withdrawal.KIND and line.key not in fallen]


def _record_of(line: Line) -> Recorded:
    """A line as the record that is weighed; what that does not look at is left blank."""
    source, _, id = line.key.partition("/")
    fact = Fact(
        source=source, id=id, kind=line.kind, version=line.version, subject="",
        valid_from=line.valid_from, valid_to=line.valid_to, grade=GRADES[line.grade],
        payload=line.payload, corrects=line.corrects,
    )  # fmt: skip
    return Recorded(seq=0, recorded_at=line.recorded_at, fact=fact)


def circular(recorded: Iterable[Recorded]) -> list[Recorded]:
    """The records that take part in, or are corrected from within, a circle of corrections."""
    entries = list(recorded)
    correctors = _correctors(entries)
    resolved = _resolve(entries, correctors)
    return [entry for entry in entries if entry.fact.key not in resolved]


def _correctors(entries: Iterable[Recorded]) -> Correctors:
    found: dict[str, list[Recorded]] = {}
    for entry in entries:
        if entry.fact.corrects is not None:
            found.setdefault(entry.fact.corrects, []).append(entry)
    for group in found.values():
        group.sort(key=lambda entry: (entry.fact.id, entry.fact.source), reverse=True)
    return found


def _outcomes(entries: Sequence[Recorded], correctors: Correctors) -> list[Recorded]:
    """What stands in the place of every fact that does not itself replace a known one."""
    keys = {entry.fact.key for entry in entries}
    resolved = _resolve(entries, correctors)
    roots = [entry for entry in entries if entry.fact.corrects not in keys]
    standing = [resolved.get(entry.fact.key) for entry in roots]
    return [entry for entry in standing if entry is not None]


def _resolve(entries: Iterable[Recorded], correctors: Correctors) -> dict[str, Recorded | None]:
    """By key: what stands in a fact's place, None where it was withdrawn.

    From the ends of the chains inwards, without recursion: a chain may be long. Facts in a circle
    are never reached.
    """
    waiting = {target: len(group) for target, group in correctors.items()}
    by_key = {entry.fact.key: entry for entry in entries}
    ready = [entry for entry in by_key.values() if entry.fact.key not in waiting]
    resolved: dict[str, Recorded | None] = {}
    while ready:
        entry = ready.pop()
        resolved[entry.fact.key] = _outcome(entry, correctors, resolved)
        target = entry.fact.corrects
        if target is not None:
            waiting[target] -= 1
            if not waiting[target] and target in by_key:
                ready.append(by_key[target])
    return resolved


def _outcome(
    entry: Recorded, correctors: Correctors, resolved: Mapping[str, Recorded | None]
) -> Recorded | None:
    for corrector in correctors.get(entry.fact.key, ()):
        replacement = resolved[corrector.fact.key]
        if replacement is None:
            continue
        return None if corrector.fact.kind == Withdrawal.KIND else replacement
    return entry


def _place(entry: Recorded) -> tuple[str, str, int, str, str]:
    fact = entry.fact
    return (fact.subject, fact.kind, fact.valid_from, fact.source, fact.id)
