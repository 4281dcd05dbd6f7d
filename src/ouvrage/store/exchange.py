"""Runs that travel: out of this store into a file, and from a file into this store.

The file's form is ``metering/exchange.py``; here it meets the store and the sealed samples. An
imported run keeps its source, ids and grades: where it was metered does not change by moving it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import KINDS, read
from ouvrage.metering import exchange
from ouvrage.metering.run_view import RUN_KINDS, statement_fault
from ouvrage.model.runs import RunSamples, RunStarted
from ouvrage.store.samples import seal
from ouvrage.store.store import Outcome, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run that was imported: what became of each of its facts, and whether samples came along."""

    run: str
    outcomes: tuple[Outcome, ...]
    samples: bool

    def count(self, result: str) -> int:
        """How many facts were ``accepted``, ``exists`` or ``conflict``."""
        return sum(outcome.result == result for outcome in self.outcomes)


def export_run(records: Sequence[Recorded], samples: bytes | None) -> bytes:
    """The file for the run that these records, all of one subject, are about."""
    subjects = {entry.fact.subject for entry in records}
    if len(subjects) != 1:
        raise OuvrageError("exchange/no-run", "an exported file holds exactly one run")
    return exchange.export_run(subjects.pop(), [entry.fact for entry in records], samples)


def import_run(data: bytes, store: Store, home: Path, *, now_us: int, own_source: str) -> Imported:
    """Record an exported run here. Importing it again changes nothing and says so."""
    exported = exchange.read_export(data)
    strangers = [fact.key for fact in exported.facts if fact.subject != exported.run]
    if strangers or not exported.facts:
        raise OuvrageError(
            "exchange/damaged",
            f"the file says it is run {exported.run} and holds facts about something else",
            where=tuple(strangers[:3]),
        )
    _check_run(exported)
    if exported.samples is not None:
        check_samples(exported.facts, exported.samples)
        seal(home, exported.run, exported.samples)
    outcomes = store.append(exported.facts, now_us=now_us, own_source=own_source)
    return Imported(
        run=exported.run, outcomes=tuple(outcomes), samples=exported.samples is not None
    )


def _check_run(exported: exchange.Exported) -> None:
    """Refuse what could never be reported: nothing that was recorded can be taken out again.

    What a newer version wrote is none of that; it is kept as it came.
    """
    found = None if any(fact.kind == RunStarted.KIND for fact in exported.facts) else "no start"
    for fact in exported.facts:
        if fact.kind in RUN_KINDS and (fact.kind, fact.version) in KINDS:
            found = found or statement_fault(read(fact), exported.run)
    if found:
        raise OuvrageError(
            "exchange/damaged",
            f"the file holds no run that can be reported: {found}",
            hint="export it again where it was metered",
        )


def check_samples(facts: Sequence[Fact], samples: bytes) -> None:
    """Refuse raw samples whose hash none of these facts states."""
    stated = {value.sha256 for value in map(read, facts) if isinstance(value, RunSamples)}
    if hashlib.sha256(samples).hexdigest() not in stated:
        raise OuvrageError(
            "exchange/damaged", "no fact in the file states the hash of the samples in it"
        )
