"""Filters of offers as people write them: ``gpu=RTX 3080,price<=0.5,kind=gpu-cloud``.

Decides what can be asked of an offer, and in which direction a bare number is meant. What an offer does
not state passes no term about it. A term about what a lot has in common is asked once for all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.gpus import model_of
from ouvrage.pricing.market.listed import age_days, gpu_memory_mib
from ouvrage.pricing.market.lots import Lot

OfLot = Callable[[MarketOffer], bool]
OfRow = Callable[[Lot], Callable[[int], bool]]
"""For a lot, whether one of its rows passes."""
_TERM = re.compile(r"\s*(?P<name>[a-z_-]+)\s*(?P<sign><=|>=|=|<|>)\s*(?P<value>.+?)\s*")
NAMES = "gpu, memory, region, kind, provider, catalogue, interruptible, price, age, vcpus, ram, gpus, name"


def filtered(lots: Iterable[Lot], text: str, today: str) -> list[Lot]:
    """What passes every term of a filter, in lots."""
    shared: list[OfLot] = []
    each: list[OfRow] = []
    for term in text.split(","):
        if term.strip():
            _take(term, today, shared, each)
    kept = [lot for lot in lots if all(test(lot.offer) for test in shared)]
    if not each:
        return kept
    return [some for lot in kept if (some := _passing(lot, each)) is not None]


def _passing(lot: Lot, each: list[OfRow]) -> Lot | None:
    tests = [test(lot) for test in each]
    return lot.only([row for row in range(len(lot)) if all(test(row) for test in tests)])


def _take(term: str, today: str, shared: list[OfLot], each: list[OfRow]) -> None:
    match = _TERM.fullmatch(term)
    if not match:
        raise _unreadable(f"{term.strip()!r} is no filter")
    name, sign, value = match["name"], match["sign"], match["value"]
    if name == "region" or name in _WORDS:
        if sign != "=":
            raise _unreadable(f"{name} is a word: write {name}={value}")
        if name == "region":
            each.append(_region(value))
        else:
            shared.append(_WORDS[name](value))
        return
    holds = _bound(name, sign, value)
    if name == "price":
        each.append(lambda lot: _price(lot, holds))
    elif name == "age":
        each.append(lambda lot: lambda row: holds(Fraction(age_days(lot.day(row), today))))
    else:
        of = _NUMBERS[name]
        shared.append(lambda offer: (held := of(offer)) is not None and holds(held))


def _price(lot: Lot, holds: Callable[[Fraction], bool]) -> Callable[[int], bool]:
    scale = lot.scale
    return lambda row: holds(Fraction(lot.prices[row]) * scale)


def _region(value: str) -> OfRow:
    wanted = value.lower()
    return lambda lot: lambda row: wanted in (lot.region(row) or "").lower()


def _bound(name: str, sign: str, value: str) -> Callable[[Fraction], bool]:
    if name not in ("price", "age") and name not in _NUMBERS:
        raise _unreadable(f"{name!r} is nothing to filter by")
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", value):
        raise _unreadable(f"{name}{sign}{value}: not a number")
    bound = Fraction(value)
    # A bare number asks for at least so much of what one needs, and at most so much of what costs.
    meant = sign if sign != "=" else ("<=" if name in ("price", "age") else ">=")
    return lambda held: _holds(held, meant, bound)


def _unreadable(message: str) -> OuvrageError:
    return OuvrageError(
        "market/filter",
        message,
        hint=f"for example gpu=RTX 3080,price<=0.5,age<=30; by {NAMES}",
    )


def _holds(held: Fraction, sign: str, bound: Fraction) -> bool:
    return {"<=": held <= bound, ">=": held >= bound, "<": held < bound, ">": held > bound}[sign]


def _optional(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _gib(mib: int | None) -> Fraction | None:
    return None if mib is None else Fraction(mib, 1024)


_NUMBERS: dict[str, Callable[[MarketOffer], Fraction | None]] = {
    "memory": lambda offer: _gib(gpu_memory_mib(offer)),
    "vcpus": lambda offer: _optional(offer.vcpus),
    "ram": lambda offer: _gib(offer.memory_mib),
    "gpus": lambda offer: Fraction(offer.gpus),
}


def _contains(of: Callable[[MarketOffer], str]) -> Callable[[str], OfLot]:
    return lambda value: lambda offer: value.lower() in of(offer).lower()


def _gpu(value: str) -> OfLot:
    wanted = {model_of(value), model_of(value, 10**6)}
    return lambda offer: offer.gpu in wanted or (offer.gpu or "").lower() == value.lower()


def _yes(value: str) -> OfLot:
    if value.lower() not in ("yes", "no", "true", "false"):
        raise _unreadable(f"interruptible={value}: yes or no")
    return lambda offer: offer.interruptible == (value.lower() in ("yes", "true"))


_WORDS: dict[str, Callable[[str], OfLot]] = {
    "gpu": _gpu,
    "provider": _contains(lambda offer: offer.provider),
    "catalogue": _contains(lambda offer: offer.catalogue),
    "name": _contains(lambda offer: offer.name),
    "kind": _contains(lambda offer: offer.provider_kind),
    "interruptible": _yes,
}
