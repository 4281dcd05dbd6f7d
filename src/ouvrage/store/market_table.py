"""The offers in force as a table: what the last reading of each catalogue saw, in lots.

Decides nothing that the facts do not say; like the table of runs (``store/projections.py``) it can be
dropped and made anew to the same bytes, and it is brought up to date when it is read, one catalogue at
a time. A quote over a hundred thousand offers reads this and not as many facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.shapes import shape_of
from ouvrage.ledger.view import in_force
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.listed import readings_of
from ouvrage.pricing.market.lots import OWN, SHARED, Entry, packed
from ouvrage.pricing.market.readings import CATALOGUE
from ouvrage.store.projections import Derived, up_to_date
from ouvrage.store.schema import facts, projection_market
from ouvrage.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketTable:
    """The lots of each catalogue as ``pricing.market.lots`` packs them, as of ``seq``."""

    seq: int
    catalogues: Mapping[str, str]


def current_market(store: Store) -> MarketTable:
    """The offers in force, up to date."""
    return up_to_date(store, _TABLE, anew=False)


def rebuild_market(store: Store) -> MarketTable:
    """Drop every row and make it anew from the facts."""
    return up_to_date(store, _TABLE, anew=True)


def market_of_records(records: Iterable[Recorded]) -> dict[str, str]:
    """The rows that follow from these records, the slow and plain way."""
    entries = list(records)
    subjects = sorted({e.fact.subject for e in entries if e.fact.kind == MarketReading.KIND})
    found: dict[str, str] = {}
    for subject in subjects:
        about = [entry for entry in entries if entry.fact.subject == subject]
        offers = [e for e in in_force(about) if e.fact.kind == MarketOffer.KIND]
        found.update(_rows(about, (_entry(each.fact.key, read(each.fact)) for each in offers)))
    return found


def _rows(
    records: Iterable[Recorded], offers: Iterable[tuple[str, Entry] | None]
) -> dict[str, str]:
    """The row of a catalogue, none where it was never read."""
    readings = readings_of(records)
    if not readings:
        return {}
    last, _ = readings[-1]
    by_id = dict(each for each in offers if each is not None)
    return {last.catalogue: packed((by_id[i] for i in last.seen if i in by_id), last.read_on)}


def _entry(fact: str, value: Any) -> tuple[str, Entry] | None:
    """An offer by the id of its fact; None where the fact cannot be read."""
    if not isinstance(value, MarketOffer):
        return None
    stated = {name: getattr(value, name) for name in (*SHARED, *OWN)}
    return fact.partition("/")[2], (fact, stated)


def _make(connection: Connection, store: Store, seq: int, subjects: Sequence[str] | None) -> None:
    """Make the rows of some catalogues anew, or of all of them."""
    if subjects is None:
        connection.execute(delete(projection_market))
        every = select(facts.c.subject).where(facts.c.kind == MarketReading.KIND).distinct()
        subjects = list(connection.execute(every).scalars())
    for subject in sorted(each for each in subjects if each.startswith(CATALOGUE)):
        name = subject.removeprefix(CATALOGUE)
        connection.execute(delete(projection_market).where(projection_market.c.catalogue == name))
        for catalogue, lots in _of_subject(connection, store, subject, seq).items():
            connection.execute(insert(projection_market).values(catalogue=catalogue, lots=lots))


def _of_subject(connection: Connection, store: Store, subject: str, seq: int) -> dict[str, str]:
    """The row of one catalogue, without making a fact of every offer where none was corrected."""
    about = (facts.c.subject == subject, facts.c.seq <= seq)
    corrected = select(func.count()).where(*about, facts.c.corrects.is_not(None))
    if connection.execute(corrected).scalar_one():
        return market_of_records(e for e in store.records(subject=subject) if e.seq <= seq)
    readings = store.records(subject=subject, kind=MarketReading.KIND)
    wanted = select(facts.c.source, facts.c.id, facts.c.payload).where(
        *about, facts.c.kind == MarketOffer.KIND, facts.c.version == MarketOffer.VERSION
    )
    # In the order in which ``in_force`` has them, so that the same one of two equal ids stands.
    wanted = wanted.order_by(facts.c.valid_from, facts.c.source)
    return _rows((e for e in readings if e.seq <= seq), _quick(connection.execute(wanted)))


def _quick(rows: Iterable[Any]) -> Iterator[tuple[str, Entry] | None]:
    """Offers as their payloads state them, where these have the form of one."""
    shape = shape_of(MarketOffer).fullmatch
    for source, id_, payload in rows:
        if shape(payload):
            yield id_, (f"{source}/{id_}", json.loads(payload))


def _held(connection: Connection, seq: int) -> MarketTable:
    rows = connection.execute(select(projection_market.c.catalogue, projection_market.c.lots))
    return MarketTable(seq=seq, catalogues=dict(sorted((name, lots) for name, lots in rows)))


_TABLE = Derived(name="market", about=facts.c.subject.like(f"{CATALOGUE}%"), read=_held, make=_make)
