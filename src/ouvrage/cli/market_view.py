"""The market as a verb sees it: readings, offers in force, and the past, from an open ledger.

Decides what stands in for an empty market (the starter catalogue, named as such) and nothing about
prices themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ouvrage.adapters.catalogues.files import load_catalogue
from ouvrage.adapters.clock import now_us
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.gpus import model_of
from ouvrage.pricing.market.listed import Listed, current, latest, offers_of, readings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """``readings`` in order of their day; ``listed`` is what stands now."""

    today: str
    readings: tuple[MarketReading, ...]
    offers: dict[str, tuple[MarketOffer, str]] = field(default_factory=dict)
    listed: tuple[Listed, ...] = ()

    @property
    def catalogues(self) -> list[str]:
        """The names of the catalogues that were read."""
        return sorted({reading.catalogue for reading in self.readings})

    def history(self, key: str) -> list[MarketOffer]:
        """Every price that an offer has had, in order of the day."""
        found = [offer for offer, _ in self.offers.values() if offer.key == key]
        return sorted(found, key=lambda offer: (offer.dated or offer.first_read, offer.price))

    def last_two(self, catalogue: str) -> tuple[list[str], list[MarketOffer], list[MarketOffer]]:
        """The days of a catalogue's last two readings, and what each saw."""
        last = [reading for reading in self.readings if reading.catalogue == catalogue][-2:]
        seen = [[self.offers[e][0] for e in r.seen if e in self.offers] for r in last]
        days = [reading.read_on for reading in last]
        return days, (seen[0] if len(seen) == 2 else []), seen[-1]

    def bands(self, gpu: str | None, catalogue: str | None) -> list[dict[str, Any]]:
        """The price bands of every reading, by GPU and then by day."""
        wanted = None if gpu is None else {gpu, model_of(gpu), model_of(gpu, 10**6)}
        rows = [
            {
                "gpu": band.gpu,
                "interruptible": band.interruptible,
                "currency": band.currency,
                "catalogue": reading.catalogue,
                "read_on": reading.read_on,
                "offers": band.offers,
                **{name: getattr(band, name) for name in ("p10", "p25", "p50", "p75", "p90")},
            }
            for reading in self.readings
            for band in reading.bands
            if (wanted is None or band.gpu in wanted) and catalogue in (None, reading.catalogue)
        ]
        keys = ("gpu", "interruptible", "currency", "catalogue", "read_on")
        return sorted(rows, key=lambda row: tuple(row[key] for key in keys))


def market_of(ledger: Ledger) -> Market:
    """The market that a ledger holds."""
    read = readings_of(ledger.store.records(kind=MarketReading.KIND))
    offers = offers_of(ledger.store.records(kind=MarketOffer.KIND)) if read else {}
    return Market(
        today=utc_text(now_us())[:10],
        readings=tuple(reading for reading, _ in read),
        offers=offers,
        listed=tuple(current(latest(read).values(), offers)),
    )


def starter() -> list[Listed]:
    """The package's own offers, each seen on the day that its row gives."""
    parsed, _, _ = load_catalogue("starter", read_on="2026-11-30")
    return [Listed(offer=offer, seen_on=offer.dated or offer.first_read) for offer in parsed.offers]
