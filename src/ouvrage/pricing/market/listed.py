"""What is on offer as known at a moment: the offers that the latest reading of each catalogue saw.

Decides which offers stand (an offer that the latest reading of its catalogue no longer holds does not),
how old a listing is, and what one costs per hour. Nothing is ranked here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from ouvrage.base.price import PER_US
from ouvrage.base.time import HOUR
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.gpus import MODELS

STALE_DAYS = 30


@dataclass(frozen=True, slots=True)
class Listed:
    """An offer, and the day on which it was last seen at its price."""

    offer: MarketOffer
    seen_on: str
    fact: str | None = None

    def age_days(self, today: str) -> int:
        """How old the listing is; never negative."""
        return age_days(self.seen_on, today)


def age_days(seen_on: str, today: str) -> int:
    """How many days lie between two days; never fewer than none."""
    return max(0, (day_of(today) - day_of(seen_on)).days)


def day_of(text: str) -> date:
    """A day; the first of all where a text is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min


def hourly(offer: MarketOffer) -> Fraction:
    """What the whole configuration costs for an hour, exactly, in the offer's currency."""
    amount = Fraction(Decimal(offer.price))
    if offer.per != "h":
        amount *= Fraction(HOUR, PER_US[offer.per])
    return amount * Fraction(offer.gpus) if offer.split == "gpu+host" else amount


def gpu_hourly(offer: MarketOffer) -> Fraction | None:
    """What one GPU-hour costs with its host; None where that is not for sale."""
    gpus = Fraction(offer.gpus)
    if not gpus or offer.split in ("gpu", "host"):
        return None
    return hourly(offer) / gpus


def readings_of(records: Iterable[Recorded]) -> list[tuple[MarketReading, Recorded]]:
    """The readings among records, in order of their day and then as they were recorded."""
    found = [
        (value, entry)
        for entry in in_force(e for e in records if e.fact.kind == MarketReading.KIND)
        if isinstance(value := read(entry.fact), MarketReading)
    ]
    return sorted(found, key=lambda pair: (pair[0].read_on, pair[1].seq))


def latest(readings: Iterable[tuple[MarketReading, Recorded]]) -> dict[str, MarketReading]:
    """The last reading of each catalogue."""
    return {reading.catalogue: reading for reading, _ in readings}


def offers_of(records: Iterable[Recorded]) -> dict[str, tuple[MarketOffer, str]]:
    """The offers among records by the id of their fact, each with the fact's key."""
    return {
        entry.fact.id: (value, entry.fact.key)
        for entry in in_force(e for e in records if e.fact.kind == MarketOffer.KIND)
        if isinstance(value := read(entry.fact), MarketOffer)
    }


def gpu_memory_mib(offer: MarketOffer) -> int | None:
    """The memory of one GPU: as listed, else that of its model."""
    if offer.gpu_memory_mib is not None or offer.gpu is None:
        return offer.gpu_memory_mib
    model = MODELS.get(offer.gpu)
    return None if model is None else model.memory_gib * 1024
