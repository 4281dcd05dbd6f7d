"""A reading of a catalogue as facts: what is new in it, what was known, and how prices lay.

Decides what makes an offer the same one: all that it states but where and when it was read. So the
same catalogue read again adds nothing, and a changed price is a new fact beside the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from ouvrage.base.canonical import sha256_hex
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import utc_us
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of, payload_of, payloads_of
from ouvrage.model.offers import MarketOffer, MarketReading, PriceBand
from ouvrage.pricing.market.listed import gpu_hourly, hourly

_ASIDE = {"first_read": "", "source": "", "quirks": (), "raw": ""}
"""What an offer states of where and when it was read: no part of what it is."""
CATALOGUE = "market:"
"""What the subject of facts about a catalogue begins with."""
_LEVELS = {"p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one offer between two readings: ``new``, ``gone`` or ``changed``."""

    what: str
    offer: MarketOffer
    before: MarketOffer | None = None


def offer_id(offer: MarketOffer) -> str:
    """The id of an offer's fact: its key, and a hash of what it states."""
    return identified(offer)[0]


def identified(offer: MarketOffer) -> tuple[str, str]:
    """The id of an offer's fact, and its payload."""
    payload, stated = payloads_of(offer, _ASIDE)
    return f"offer/{offer.key}/{sha256_hex(stated)[:16]}", payload


def subject_of(catalogue: str) -> str:
    """The subject of all facts about a catalogue."""
    return f"{CATALOGUE}{catalogue}"


@lru_cache(maxsize=1024)
def midnight(day: str) -> int:
    """The first moment of a day, UTC."""
    return utc_us(f"{day}T00:00:00Z")


def offer_facts(
    offers: Mapping[str, MarketOffer],
    known: Collection[str],
    source: str,
    payloads: Mapping[str, str] = MappingProxyType({}),
) -> list[Fact]:
    """The facts of those offers, by id, that are not known yet; ``payloads`` as far as made already."""
    return [
        fact_of(
            offer,
            source=source,
            id=each,
            subject=subject_of(offer.catalogue),
            valid_from=midnight(offer.dated or offer.first_read),
            valid_to=None,
            grade=Grade.LISTED,
            payload=payloads.get(each),
        )
        for each, offer in offers.items()
        if each not in known
    ]


def reading_fact(reading: MarketReading, source: str) -> Fact:
    """The fact that a catalogue was read; read again, it is the same fact."""
    digest = sha256_hex(payload_of(reading))[:16]
    return fact_of(
        reading,
        source=source,
        id=f"reading/{reading.catalogue}/{reading.read_on}/{digest}",
        subject=subject_of(reading.catalogue),
        valid_from=midnight(reading.read_on),
        valid_to=None,
        grade=Grade.LISTED,
    )


def bands_of(offers: Iterable[MarketOffer]) -> tuple[PriceBand, ...]:
    """How the prices of a GPU-hour lay, by model, way of renting and currency."""
    groups: dict[tuple[str, bool, str], list[Fraction]] = {}
    for offer in offers:
        price = gpu_hourly(offer)
        if price is not None and offer.gpu is not None:
            key = (offer.gpu, offer.interruptible, offer.currency)
            groups.setdefault(key, []).append(price)
    return tuple(_band(*key, sorted(prices)) for key, prices in sorted(groups.items()))


def _band(gpu: str, interruptible: bool, currency: str, prices: Sequence[Fraction]) -> PriceBand:
    return PriceBand(
        gpu=gpu,
        interruptible=interruptible,
        currency=currency,
        offers=len(prices),
        **{name: decimal_text(percentile(prices, level)) for name, level in _LEVELS.items()},
    )


def percentile(ordered: Sequence[Fraction], level: int) -> Fraction:
    """The smallest of values in rising order at or below which ``level`` per cent of them lie."""
    rank = -(-len(ordered) * level // 100)
    return ordered[max(1, rank) - 1]


def changes(before: Iterable[MarketOffer], after: Iterable[MarketOffer]) -> list[Change]:
    """What a later reading of a catalogue says otherwise."""
    old = {offer.key: offer for offer in before}
    new = {offer.key: offer for offer in after}
    found = [Change(what="new", offer=new[key]) for key in new.keys() - old.keys()]
    found += [Change(what="gone", offer=old[key]) for key in old.keys() - new.keys()]
    found += [
        Change(what="changed", offer=new[key], before=old[key])
        for key in new.keys() & old.keys()
        if hourly(new[key]) != hourly(old[key])
    ]
    order = ("changed", "new", "gone")
    return sorted(found, key=lambda c: (order.index(c.what), c.offer.name, c.offer.key))
