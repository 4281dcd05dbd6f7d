"""The laws of the market: a reading belongs to the offers that it saw, a check of a host to its promises.

They make the price bands a second time from the offers, and the outcomes of a check from what it read.
They do not say whether a listed price is true, or a host a good one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.laws import Law
from ouvrage.model.hosts import HostChecked
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.host_checks import check_fault
from ouvrage.pricing.market.readings import bands_of, offer_id


def _readings_stand(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    offers: dict[tuple[str, str], MarketOffer] = {}
    for entry in records:
        value = read(entry.fact) if entry.fact.kind == MarketOffer.KIND else None
        if isinstance(value, MarketOffer):
            offers[entry.fact.source, entry.fact.id] = value
            if offer_id(value) != entry.fact.id:
                yield entry.fact.key, f"states what has the id {offer_id(value)}"
    for entry in records:
        value = read(entry.fact) if entry.fact.kind == MarketReading.KIND else None
        if isinstance(value, MarketReading):
            for found in _faults(value, entry.fact.source, offers):
                yield entry.fact.key, found


def _faults(
    reading: MarketReading, source: str, offers: dict[tuple[str, str], MarketOffer]
) -> Iterable[str]:
    missing = [each for each in reading.seen if (source, each) not in offers]
    if missing:
        yield f"saw {missing[0]}, which is not recorded ({len(missing)} such)"
        return
    if bands_of(offers[source, each] for each in reading.seen) != reading.bands:
        yield "its price bands are not those of the offers that it saw"


READINGS_STAND = Law(
    name="pricing/readings-stand",
    statement="a reading of a catalogue saw offers that are recorded, and its price bands are theirs",
    check=_readings_stand,
)


def _checks_stand(records: Sequence[Recorded]) -> Iterable[tuple[str, str]]:
    for entry in records:
        value = read(entry.fact) if entry.fact.kind == HostChecked.KIND else None
        if isinstance(value, HostChecked) and (fault := check_fault(value)):
            yield entry.fact.key, fault


HOST_CHECKS_STAND = Law(
    name="pricing/host-checks-stand",
    statement="a check of a host says of each promise what its readings say when held to it again",
    check=_checks_stand,
)
