"""What is on offer as known at a moment: the offers that the latest reading of each catalogue saw.

Decides which offers stand (an offer that the latest reading of its catalogue no longer holds does not),
how old a listing is, what one costs per hour, and how filters are written. Nothing is ranked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import PER_US
from ouvrage.base.time import HOUR
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.offers import MarketOffer, MarketReading
from ouvrage.pricing.market.gpus import MODELS, model_of

STALE_DAYS = 30


@dataclass(frozen=True, slots=True)
class Listed:
    """An offer, and the day on which it was last seen at its price."""

    offer: MarketOffer
    seen_on: str
    fact: str | None = None

    def age_days(self, today: str) -> int:
        """How old the listing is; never negative."""
        return max(0, (day_of(today) - day_of(self.seen_on)).days)


def day_of(text: str) -> date:
    """A day; the first of all where a text is none."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return date.min


def hourly(offer: MarketOffer) -> Fraction:
    """What the whole configuration costs for an hour, exactly, in the offer's currency."""
    amount = Fraction(offer.price) * Fraction(HOUR, PER_US[offer.per])
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


def current(
    readings: Iterable[MarketReading], offers: Mapping[str, tuple[MarketOffer, str]]
) -> list[Listed]:
    """What the given readings saw, each offer as last seen."""
    return [
        Listed(offer=offer, seen_on=offer.dated or reading.read_on, fact=fact)
        for reading in readings
        for offer, fact in (offers[each] for each in reading.seen if each in offers)
    ]


Test = Callable[[Listed], bool]
_TERM = re.compile(r"\s*(?P<name>[a-z_-]+)\s*(?P<sign><=|>=|=|<|>)\s*(?P<value>.+?)\s*")
NAMES = "gpu, memory, region, kind, provider, catalogue, interruptible, price, age, vcpus, ram, gpus, name"


def filtered(listed: Iterable[Listed], text: str, today: str) -> list[Listed]:
    """Those that pass ``gpu=RTX 3080,price<=0.5,kind=gpu-cloud``: every term must hold.

    What an offer does not state passes no term about it.
    """
    tests = [_test(term, today) for term in text.split(",") if term.strip()]
    return [each for each in listed if all(test(each) for test in tests)]


def _test(term: str, today: str) -> Test:
    match = _TERM.fullmatch(term)
    if not match:
        raise _unreadable(f"{term.strip()!r} is no filter")
    name, sign, value = match["name"], match["sign"], match["value"]
    if name in _WORDS:
        if sign != "=":
            raise _unreadable(f"{name} is a word: write {name}={value}")
        return _WORDS[name](value)
    if name not in _NUMBERS:
        raise _unreadable(f"{name!r} is nothing to filter by")
    return _number_test(name, sign, value, today)


def _unreadable(message: str) -> OuvrageError:
    return OuvrageError(
        "market/filter",
        message,
        hint=f"for example gpu=RTX 3080,price<=0.5,age<=30; by {NAMES}",
    )


def _number_test(name: str, sign: str, value: str, today: str) -> Test:
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", value):
        raise _unreadable(f"{name}{sign}{value}: not a number")
    bound, of = Fraction(value), _NUMBERS[name]
    # A bare number asks for at least so much of what one needs, and at most so much of what costs.
    meant = sign if sign != "=" else ("<=" if name in ("price", "age") else ">=")

    def test(each: Listed) -> bool:
        held = of(each, today)
        return held is not None and _holds(held, meant, bound)

    return test


def _holds(held: Fraction, sign: str, bound: Fraction) -> bool:
    return {"<=": held <= bound, ">=": held >= bound, "<": held < bound, ">": held > bound}[sign]


def _optional(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def gpu_memory_mib(offer: MarketOffer) -> int | None:
    """The memory of one GPU: as listed, else that of its model."""
    if offer.gpu_memory_mib is not None or offer.gpu is None:
        return offer.gpu_memory_mib
    model = MODELS.get(offer.gpu)
    return None if model is None else model.memory_gib * 1024


def _gib(mib: int | None) -> Fraction | None:
    return None if mib is None else Fraction(mib, 1024)


_NUMBERS: dict[str, Callable[[Listed, str], Fraction | None]] = {
    "memory": lambda each, _: _gib(gpu_memory_mib(each.offer)),
    "price": lambda each, _: hourly(each.offer),
    "age": lambda each, today: Fraction(each.age_days(today)),
    "vcpus": lambda each, _: _optional(each.offer.vcpus),
    "ram": lambda each, _: _gib(each.offer.memory_mib),
    "gpus": lambda each, _: Fraction(each.offer.gpus),
}


def _contains(of: Callable[[MarketOffer], str | None]) -> Callable[[str], Test]:
    return lambda value: lambda each: value.lower() in (of(each.offer) or "").lower()


def _gpu(value: str) -> Test:
    wanted = {model_of(value), model_of(value, 10**6)}
    return lambda each: each.offer.gpu in wanted or (each.offer.gpu or "").lower() == value.lower()


def _yes(value: str) -> Test:
    if value.lower() not in ("yes", "no", "true", "false"):
        raise _unreadable(f"interruptible={value}: yes or no")
    return lambda each: each.offer.interruptible == (value.lower() in ("yes", "true"))


_WORDS: dict[str, Callable[[str], Test]] = {
    "gpu": _gpu,
    "region": _contains(lambda offer: offer.region),
    "provider": _contains(lambda offer: offer.provider),
    "catalogue": _contains(lambda offer: offer.catalogue),
    "name": _contains(lambda offer: offer.name),
    "kind": _contains(lambda offer: offer.provider_kind),
    "interruptible": _yes,
}


def by_price(listed: Sequence[Listed]) -> list[Listed]:
    """The cheapest hour first, one currency after the other; names settle what prices do not."""
    return sorted(
        listed,
        key=lambda each: (
            each.offer.currency,
            hourly(each.offer),
            each.offer.name,
            each.offer.key,
        ),
    )
