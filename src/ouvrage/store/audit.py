"""Checking every law of every layer over everything recorded.

Decides which laws there are (each layer's ``LAWS``, and those of the store itself: its head, its
projections, the sealed samples, the database file) and what is reported without being a breach:
facts of kinds that this version does not know, samples that are not here. It mends nothing.
"""

from __future__ import annotations

import hashlib
import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import KINDS, read
from ouvrage.ledger.laws import Breach, Law
from ouvrage.model.closings import BooksClosed
from ouvrage.model.runs import RunSamples
from ouvrage.store.closed_months import closed_sha256
from ouvrage.store.market_table import current_market, market_of_records
from ouvrage.store.platform.dues_rebuild import dues_law
from ouvrage.store.platform.rebuild import tenancy_law
from ouvrage.store.platform.rebuild_work import work_law
from ouvrage.store.platform.received import received_law
from ouvrage.store.projections import current_runs, rows_of
from ouvrage.store.samples import path_of, read_sealed
from ouvrage.store.store import Head, Store
from ouvrage.store.telemetry_files import telemetry_law

LAYERS = (
    "ouvrage.ledger.law_book",
    "ouvrage.metering.laws",
    "ouvrage.pricing.laws",
    "ouvrage.placement.laws",
    "ouvrage.health.laws",
    "ouvrage.books.laws",
    "ouvrage.books.dues.laws",
    "ouvrage.books.fleet.laws",
    "ouvrage.evidence.laws",
)

Found = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One law, how many records it was shown, and what it found broken."""

    law: Law
    records: int
    breaches: tuple[Breach, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was checked. ``unread`` counts kept facts of unknown kinds by (kind, version);
    ``missing`` names runs whose sealed samples are not in this home."""

    facts: int
    checked: tuple[Checked, ...]
    unread: dict[tuple[str, int], int]
    missing: tuple[str, ...]

    @property
    def first(self) -> Breach | None:
        """The first thing found broken, None where every law holds."""
        return next((breach for each in self.checked for breach in each.breaches), None)


def _checked(law: Law, records: Sequence[Recorded]) -> Checked:
    return Checked(law=law, records=len(records), breaches=tuple(law.breaches(records)))


def layer_laws() -> list[Law]:
    """The laws that the layers export, lowest layer first."""
    return [law for name in LAYERS for law in importlib.import_module(name).LAWS]


def audit(store: Store, home: Path) -> Audit:
    """Run every law over the facts and tables that are in the store now; a platform may go on meanwhile."""
    with store.as_it_is():
        head = store.head()
        records = store.records()
        laws = [*_database_laws(store, head), *layer_laws(), *_derived_laws(store, home)]
        checked = [_checked(law, records) for law in laws]
    checked.append(_checked(_projection_law(store), records))
    kinds = Counter((entry.fact.kind, entry.fact.version) for entry in records)
    return Audit(
        facts=len(records),
        checked=tuple(checked),
        unread={kind: count for kind, count in sorted(kinds.items()) if kind not in KINDS},
        missing=tuple(run for run, _ in _samples(records) if not path_of(home, run).exists()),
    )


def _database_laws(store: Store, head: Head) -> list[Law]:
    def intact(_: Sequence[Recorded]) -> Found:
        yield from ((store.name, found) for found in store.damage())

    def reaches(records: Sequence[Recorded]) -> Found:
        last = records[-1] if records else None
        if head.seq != (last.seq if last else 0):
            yield "head", f"says {head.seq}, the last fact is {last.seq if last else 'missing'}"
        elif last and head.recorded_at < last.recorded_at:
            yield "head", f"closed at {head.recorded_at}, before the last fact"

    return [
        Law(name="store/intact", statement="the database finds itself undamaged", check=intact),
        Law(name="store/head", statement="the head of the ledger is its last fact", check=reaches),
    ]


def _projection_law(store: Store) -> Law:
    """What this one reads is brought up to date by whoever reads it, up to a place that it names."""

    def projected(records: Sequence[Recorded]) -> Found:
        held = current_runs(store)
        known = [entry for entry in store.records() if entry.seq <= held.seq]
        made = {row.run: row for row in rows_of(known)}
        kept = {row.run: row for row in held.rows}
        for run in sorted(made.keys() | kept.keys()):
            if made.get(run) != kept.get(run):
                yield f"run {run}", "the row kept is not the row that the facts give"
        market = current_market(store)
        offers = market_of_records(e for e in store.records() if e.seq <= market.seq)
        for name in sorted(offers.keys() | market.catalogues.keys()):
            if offers.get(name) != market.catalogues.get(name):
                yield f"catalogue {name}", "the lots kept are not those that the facts give"

    return Law(
        name="store/projection",
        statement="derived tables are what the facts give, byte for byte",
        check=projected,
    )


def _derived_laws(store: Store, home: Path) -> list[Law]:
    def sealed(records: Sequence[Recorded]) -> Found:
        for run, sha256 in _samples(records):
            try:
                data = read_sealed(home, run)
            except OuvrageError as error:
                yield f"run {run}", error.message
                continue
            if data is not None and hashlib.sha256(data).hexdigest() != sha256:
                yield f"run {run}", f"{path_of(home, run)} is not what was sealed"

    return [
        Law(
            name="store/samples",
            statement="sealed samples that are here have the hash that their fact states",
            check=sealed,
        ),
        _closed_law(home),
        tenancy_law(store),
        dues_law(store),
        work_law(store),
        received_law(store),
        telemetry_law(store, home),
    ]


def _closed_law(home: Path) -> Law:
    def closed(records: Sequence[Recorded]) -> Found:
        for entry in records:
            seal = read(entry.fact) if entry.fact.kind == BooksClosed.KIND else None
            if isinstance(seal, BooksClosed):
                held = closed_sha256(home, seal.file)
                if held is not None and held != seal.file_sha256:
                    yield f"{seal.site} {seal.period}", f"{seal.file} is not what was sealed"

    return Law(
        name="store/closed",
        statement="files of closed months that are here have the hash that their fact states",
        check=closed,
    )


def _samples(records: Sequence[Recorded]) -> list[tuple[str, str]]:
    stated = [read(entry.fact) for entry in records if entry.fact.kind == RunSamples.KIND]
    return [(value.run, value.sha256) for value in stated if isinstance(value, RunSamples)]
