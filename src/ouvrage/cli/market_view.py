"""The market as a verb sees it: the offers in force and their past, from an open ledger.

Decides what stands in for an empty market (the starter catalogue, named as such) and nothing about
prices themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ouvrage.adapters.clock import now_us
from ouvrage.base.time import utc_text
from ouvrage.ledger.kinds import read
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.gpus import model_of
from ouvrage.pricing.market.listed import Listed, offers_of, readings_of
from ouvrage.pricing.market.lots import Lot, unpacked
from ouvrage.pricing.market.readings import subject_of

if TYPE_CHECKING:  # a quote on a file of offers needs no store and does not load one
    from ouvrage.cli.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What stands now, in lots, and the names of the catalogues that were read."""

    today: str
    catalogues: tuple[str, ...]
    lots: tuple[Lot, ...]


def today_text() -> str:
    """The day it is, UTC."""
    return utc_text(now_us())[:10]


def market_of(ledger: Ledger) -> Market:
    """The market that a ledger holds."""
    from ouvrage.store.market_table import current_market

    table = current_market(ledger.store)
    return Market(
        today=today_text(),
        catalogues=tuple(table.catalogues),
        lots=tuple(lot for text in table.catalogues.values() for lot in unpacked(text)),
    )


def called(market: Market, text: str) -> list[Listed]:
    """The offers with this key, or else with this name."""
    return [lot.listed(row) for lot in market.lots for row in lot.rows_called(text)] or [
        each for lot in market.lots if lot.offer.name == text for each in lot.each()
    ]


def whole(ledger: Ledger, found: Iterable[Listed]) -> list[Listed]:
    """These offers with all that their facts state: source, notes, the row as it came."""
    listed = list(found)
    held = ledger.store.named(each.fact for each in listed if each.fact)
    stated = {key: read(entry.fact) for key, entry in held.items()}
    return [
        replace(each, offer=offer)
        if isinstance(offer := stated.get(each.fact or ""), MarketOffer)
        else each
        for each in listed
    ]


def history(ledger: Ledger, offer: MarketOffer) -> list[MarketOffer]:
    """Every price that an offer has had, in order of the day."""
    records = ledger.store.records(
        subject=subject_of(offer.catalogue), begins=f"offer/{offer.key}/"
    )
    found = [each for each, _ in offers_of(records).values()]
    return sorted(found, key=lambda offer: (offer.dated or offer.first_read, offer.price))


def readings(ledger: Ledger) -> list[MarketReading]:
    """Every reading of every catalogue, in order of the day."""
    return [r for r, _ in readings_of(ledger.store.records(kind=MarketReading.KIND))]


def last_two(
    ledger: Ledger, catalogue: str, known: Iterable[MarketReading]
) -> tuple[list[str], list[MarketOffer], list[MarketOffer]]:
    """The days of a catalogue's last two readings, and what each saw."""
    last = [reading for reading in known if reading.catalogue == catalogue][-2:]
    offers = offers_of(ledger.store.records(subject=subject_of(catalogue), kind=MarketOffer.KIND))
    seen = [[offers[e][0] for e in r.seen if e in offers] for r in last]
    days = [reading.read_on for reading in last]
    return days, (seen[0] if len(seen) == 2 else []), seen[-1]


def bands(
    known: Iterable[MarketReading], gpu: str | None, catalogue: str | None
) -> list[dict[str, Any]]:
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
        for reading in known
        for band in reading.bands
        if (wanted is None or band.gpu in wanted) and catalogue in (None, reading.catalogue)
    ]
    keys = ("gpu", "interruptible", "currency", "catalogue", "read_on")
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))
