"""Offers in lots: those that are alike in everything but their price, their region, their day and their key.

Decides which offers are one lot, and so what needs to be judged only once: whether an offer can do the
work, how long it takes and how it is billed are the same for a whole lot, and within one the cheaper
hour is never the dearer quote. A catalogue of a hundred thousand rows has a few thousand lots.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from typing import Any

from ouvrage.base.canonical import canonical
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.listed import Listed, hourly

SHARED = (
    *("catalogue", "name", "provider", "provider_kind", "gpu", "gpus", "gpu_memory_mib"),
    *("vcpus", "memory_mib", "disk_gb", "currency", "per", "split", "interruptible", "tax"),
    *("plan", "storage_gb_month", "egress_gb", "ingress_gb", "mtbf_h", "interconnect_gb_s"),
    *("counterparty", "terms", "bundled"),
)
"""What the offers of a lot have in common."""
OWN = ("key", "price", "region", "dated")
"""What each of them has for itself."""
_ELSEWHERE: dict[str, Any] = {"source": "", "first_read": "", "quirks": (), "raw": "null"}
"""What only the fact of an offer holds; ``Lot.listed`` leaves it out where it has no whole offers."""
_shared = attrgetter(*SHARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """Alike offers by column, the cheapest first, equal prices by key.

    ``facts`` are the keys of their facts, ending in ``offer/KEY/HASH``; ``dated`` the days that rows
    gave, and ``seen_on`` the day of the reading. ``whole`` holds the offers themselves where they were
    read just now; they then stand in place of the columns.
    """

    first: Listed
    prices: tuple[str, ...]
    regions: tuple[str | None, ...] = ()
    dated: tuple[str | None, ...] = ()
    facts: tuple[str, ...] = ()
    seen_on: str = ""
    whole: tuple[Listed, ...] = ()

    @property
    def offer(self) -> MarketOffer:
        """The cheapest of them; all they have in common is the others' too."""
        return self.first.offer

    def __len__(self) -> int:
        return len(self.prices)

    @property
    def scale(self) -> Fraction:
        """By what a price is multiplied to be that of an hour."""
        return hourly(replace(self.offer, price="1"))

    def hour(self, row: int) -> Fraction:
        """What an hour of one of them costs, in their currency."""
        return Fraction(self.prices[row]) * self.scale

    def region(self, row: int) -> str | None:
        """Where one of them is."""
        return self.whole[row].offer.region if self.whole else self.regions[row]

    def day(self, row: int) -> str:
        """The day on which one of them was last seen at its price."""
        if self.whole:
            return self.whole[row].seen_on
        return (self.dated[row] if self.dated else None) or self.seen_on

    def listed(self, row: int) -> Listed:
        """One of them, without what only its fact holds."""
        if self.whole:
            return self.whole[row]
        if not row:
            return self.first
        return _listed(self.offer, self, row)

    def each(self) -> Iterator[Listed]:
        """All of them."""
        return map(self.listed, range(len(self)))

    def rows_called(self, key: str) -> list[int]:
        """Those with this key."""
        if self.whole:
            return [row for row, each in enumerate(self.whole) if each.offer.key == key]
        inside = f"/{key}/"
        return [
            row for row, fact in enumerate(self.facts) if inside in fact and key_in(fact) == key
        ]

    def only(self, rows: Sequence[int]) -> Lot | None:
        """The lot of some of its rows, None where they are none."""
        if len(rows) == len(self) or not rows:
            return self if rows else None
        return Lot(
            first=self.listed(rows[0]),
            prices=tuple(self.prices[row] for row in rows),
            regions=tuple(self.regions[row] for row in rows) if self.regions else (),
            dated=tuple(self.dated[row] for row in rows) if self.dated else (),
            facts=tuple(self.facts[row] for row in rows) if self.facts else (),
            seen_on=self.seen_on,
            whole=tuple(self.whole[row] for row in rows) if self.whole else (),
        )

    def stating(self, **fields: str | None) -> Lot:
        """The same lot, where all state something more."""
        changed = [replace(each, offer=replace(each.offer, **fields)) for each in self.whole]
        offer = replace(self.offer, **fields)
        return replace(self, first=replace(self.first, offer=offer), whole=tuple(changed))


def _listed(offer: MarketOffer, lot: Lot, row: int) -> Listed:
    fact = lot.facts[row]
    stated = replace(
        offer,
        key=key_in(fact),
        price=lot.prices[row],
        region=lot.regions[row],
        dated=lot.dated[row] if lot.dated else None,
    )
    return Listed(stated, lot.day(row), fact)


def key_in(fact: str) -> str:
    """The offer's key in the key of its fact."""
    return fact.rsplit("/", 2)[-2]


def lots_of(listed: Iterable[Listed], apart: Mapping[str, object] | None = None) -> list[Lot]:
    """Offers that were just read, in lots. ``apart``: what else must be alike, by an offer's key."""
    groups: dict[tuple[object, ...], list[Listed]] = {}
    for each in listed:
        offer = each.offer
        free = not Decimal(offer.price)  # no price, and so not alike to those that have one
        key = (*_shared(offer), free, apart.get(offer.key) if apart else None)
        groups.setdefault(key, []).append(each)
    return [_whole(group) for group in groups.values()]


def _whole(group: list[Listed]) -> Lot:
    group.sort(key=lambda each: (Decimal(each.offer.price), each.offer.key))
    prices = tuple(each.offer.price for each in group)
    return Lot(first=group[0], prices=prices, whole=tuple(group))


Entry = tuple[str, Mapping[str, Any]]
"""The key of an offer's fact, and what the offer states, by the names of ``MarketOffer``."""


def packed(entries: Iterable[Entry], seen_on: str) -> str:
    """The offers that one reading saw, in lots, as one canonical text that does not depend on order."""
    groups: dict[str, list[tuple[Decimal, str, str, str | None, str | None, str]]] = {}
    heads: dict[tuple[object, ...], str] = {}
    for fact, stated in entries:
        values = tuple(_hashable(stated[name]) for name in SHARED)
        price = Decimal(stated["price"])
        known = (*values, not price)
        head = heads.get(known)
        if head is None:
            head = heads[known] = canonical([*values, not price])
        row = (price, stated["key"], stated["price"], stated["region"], stated["dated"], fact)
        groups.setdefault(head, []).append(row)
    lots = [f"[{head},{canonical(_columns(groups[head]))}]" for head in sorted(groups)]
    return f'{{"lots":[{",".join(lots)}],"seen_on":{canonical(seen_on)}}}'


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _columns(rows: list[tuple[Decimal, str, str, str | None, str | None, str]]) -> list[Any]:
    rows.sort(key=lambda row: (row[0], row[1], row[5]))
    _, _, prices, regions, dated, facts = zip(*rows, strict=True)
    return [prices, regions, dated if any(dated) else [], facts]


def unpacked(text: str) -> list[Lot]:
    """The lots that ``packed`` wrote."""
    value = json.loads(text)
    return [_lot(head, columns, value["seen_on"]) for head, columns in value["lots"]]


def _lot(head: list[Any], columns: list[list[Any]], seen_on: str) -> Lot:
    prices, regions, dated, facts = map(tuple, columns)
    stated = dict(zip(SHARED, head[:-1], strict=True))
    offer = MarketOffer(
        **{**stated, "bundled": tuple(stated["bundled"])},
        **_ELSEWHERE,
        key=key_in(facts[0]),
        price=prices[0],
        region=regions[0],
        dated=dated[0] if dated else None,
    )
    first = Listed(offer, (dated[0] if dated else None) or seen_on, facts[0])
    return Lot(
        first=first, prices=prices, regions=regions, dated=dated, facts=facts, seen_on=seen_on
    )


def by_price(lots: Sequence[Lot], top: int) -> list[Listed]:
    """The cheapest hours first, one currency after the other; names settle what prices do not."""

    def entry(index: int, row: int) -> tuple[str, Fraction, str, str, int, int]:
        lot = lots[index]
        offer = lot.listed(row).offer
        return offer.currency, lot.hour(row), offer.name, offer.key, index, row

    waiting = [entry(index, 0) for index in range(len(lots))]
    heapq.heapify(waiting)
    found: list[Listed] = []
    while waiting and len(found) < top:
        *_, index, row = heapq.heappop(waiting)
        found.append(lots[index].listed(row))
        if row + 1 < len(lots[index]):
            heapq.heappush(waiting, entry(index, row + 1))
    return found


def cheapest_hours(lots: Sequence[Lot]) -> list[MarketOffer]:
    """The cheapest hour of each currency, by its code."""
    codes = sorted({lot.offer.currency for lot in lots})
    return [
        by_price([lot for lot in lots if lot.offer.currency == code], 1)[0].offer for code in codes
    ]
