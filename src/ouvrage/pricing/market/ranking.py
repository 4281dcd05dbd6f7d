"""Quotes in order of what a finished unit likely costs, those that cannot do the work apart.

Decides who is excluded and why, the order, what would have to be true for the second to win, and which
part of a difference comes from finishing faster and which from wasting fewer paid hours. Amounts in
different currencies are compared by a dated rate or not at all.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from ouvrage.model.offers import ExchangeRate, MarketOffer
from ouvrage.pricing.market.billing import Billing
from ouvrage.pricing.market.listed import Listed, gpu_memory_mib
from ouvrage.pricing.market.lots import Lot
from ouvrage.pricing.market.profile import Needs, Profile, Timing
from ouvrage.pricing.market.quote import Beside, Quote, beside_of, estimate, likely_case, quoted
from ouvrage.pricing.market.scaling import Carried, carried

TOP = 20


@dataclass(frozen=True, slots=True)
class Excluded:
    """A lot of offers that cannot do the work: ``why`` in one word, ``reason`` in a sentence."""

    lot: Lot
    why: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """A quote, and its cost per unit in the currency of the ranking.

    ``by_hour`` is its place by the price of an hour; equal prices share a place.
    """

    listed: Listed
    quote: Quote
    cost: Fraction
    hour: Fraction
    by_hour: int = 0


@dataclass(frozen=True, slots=True)
class Effects:
    """Why one costs another share of what another costs: factors whose product is the whole.

    ``price`` of an hour, ``time`` of a unit, ``waste`` of paid hours in which nothing was finished,
    ``beside`` what is paid besides the machine's time.
    """

    price: Fraction
    time: Fraction
    waste: Fraction
    beside: Fraction

    @property
    def whole(self) -> Fraction:
        """All of them together."""
        return self.price * self.time * self.waste * self.beside


@dataclass(frozen=True, slots=True)
class WouldWin:
    """What would have to be true for the second to win, each by itself; None: nothing of the kind.

    ``hour`` is the price at which it would, ``unit_s`` the time of a unit, ``first_s`` the time that
    the first would have to need. Increments are left aside.
    """

    hour: Fraction | None
    unit_s: Fraction | None
    first_s: Fraction | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best ``top``, all of them counted, the cheapest hour among them, and the excluded.

    ``questions`` are what is recorded as not known of a provider, by its name.
    """

    profile: Profile
    currency: str
    ranked: tuple[Ranked, ...]
    able: int
    cheapest_hour: Ranked | None
    excluded: tuple[Excluded, ...]
    rates: tuple[ExchangeRate, ...] = ()
    notes: tuple[str, ...] = field(default=())
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Able = tuple[Lot, Carried]
Entry = tuple[Fraction, str, str, int, int]
"""What a place in the order is given by: cost, name, key; and which row of which lot it is."""
Billings = Callable[[MarketOffer], Billing]
Screen = Callable[["Ranker", Sequence[tuple[Listed, Carried]], int], list[int]]
"""Narrows offers down to those among which the cheapest are (``planning.offer_screen``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """What a ranking needs besides the offers. ``stated`` are times that offers' rows give, by key."""

    profile: Profile
    currency: str
    billing: Billings
    rates: Mapping[str, ExchangeRate]
    stated: Mapping[str, Timing] = field(default_factory=dict)
    screen: Screen | None = None
    _beside: dict[int, tuple[Billing, Beside]] = field(default_factory=dict, compare=False)

    def beside(self, billing: Billing) -> Beside:
        """What is paid besides, for one way of billing; kept with it, so that its id stays its own."""
        found = self._beside.get(id(billing))
        if found is None:
            found = self._beside[id(billing)] = (billing, beside_of(self.profile, billing))
        return found[1]

    def rate(self, currency: str) -> Fraction | None:
        """What one of a currency is worth in that of the ranking; None where no rate says."""
        if currency == self.currency:
            return Fraction(1)
        found = self.rates.get(currency)
        return None if found is None else worth(found, currency)

    def rank(self, lots: Iterable[Lot], top: int = TOP) -> Ranking:
        """The offers, the cheapest finished unit first."""
        able: list[Able] = []
        excluded: list[Excluded] = []
        memo: dict[tuple[object, ...], Carried | None] = {}
        for lot in lots:
            refused, time = self._admitted(lot, memo)
            if refused is not None:
                excluded.append(refused)
            elif time is not None:
                able.append((lot, time))
        able, late = self._in_time(able)
        places = _Hours((lot.scale * (self.rate(lot.offer.currency) or 0), lot) for lot, _ in able)
        ranked = [self._ranked(each, places) for each in self._best(able, top)]
        first = min((self._by_hour(lot) for lot, _ in able), default=None, key=lambda key: key[:3])
        return Ranking(
            profile=self.profile,
            currency=self.currency,
            ranked=tuple(ranked),
            able=sum(len(lot) for lot, _ in able),
            cheapest_hour=None if first is None else self._ranked(first[-1], places),
            excluded=tuple(excluded + late),
            rates=tuple(self.rates.values()),
        )

    def _by_hour(self, lot: Lot) -> tuple[Fraction, str, str, Listed]:
        """What orders the cheapest of a lot among others by its hour."""
        offer = lot.offer
        return lot.hour(0) * (self.rate(offer.currency) or 0), offer.name, offer.key, lot.first

    def _admitted(
        self, lot: Lot, memo: dict[tuple[object, ...], Carried | None]
    ) -> tuple[Excluded | None, Carried | None]:
        offer = lot.offer
        unfit = unable(self.profile, offer)
        if unfit is not None:
            return Excluded(lot, *unfit), None
        if self.rate(offer.currency) is None:
            reason = f"priced in {offer.currency}, and no dated rate to {self.currency} is recorded"
            return Excluded(lot, "currency", reason), None
        stated = self.stated.get(offer.key)
        named = stated or self.profile.on.name or any(t.on.name for t in self.profile.others)
        shape = (offer.gpu, offer.gpus, offer.vcpus, offer.memory_mib, offer.interconnect_gb_s)
        key = (*shape, offer.key if named else None)
        if key not in memo:
            memo[key] = carried(self.profile, offer, stated)
        time = memo[key]
        if time is None:
            words = f"no relative speed is known of {offer.gpu or 'a machine without a GPU'}"
            return Excluded(lot, "unknown GPU", words), None
        return None, time

    def _in_time(self, able: list[Able]) -> tuple[list[Able], list[Excluded]]:
        """Those whose likely end lies within the deadline, and the others."""
        deadline = self.profile.deadline_s
        if deadline is None:
            return able, []
        kept: list[Able] = []
        late: list[Excluded] = []
        for lot, time in able:
            finish = likely_case(self.profile, lot.offer, self.billing(lot.offer), time).finish_s
            if finish > deadline:
                words = f"finished after {_hours(finish)} h, wanted within {_hours(deadline)} h"
                late.append(Excluded(lot, "deadline", words))
            else:
                kept.append((lot, time))
        return kept, late

    def _best(self, able: Sequence[Able], top: int) -> list[Listed]:
        """The cheapest in order, exactly, among the lots that a screen lets through.

        A lot is gone through from its cheapest hour on: within it no dearer hour is a cheaper quote.
        """
        firsts = [(lot.first, time) for lot, time in able]
        among = range(len(able)) if self.screen is None else self.screen(self, firsts, top)
        waiting = [self._entry(able, index, 0) for index in among]
        heapq.heapify(waiting)
        found: list[Entry] = []
        while waiting and (len(found) < top or waiting[0][0] == found[-1][0]):
            entry = heapq.heappop(waiting)
            found.append(entry)
            index, row = entry[3], entry[4] + 1
            if row < len(able[index][0]):
                heapq.heappush(waiting, self._entry(able, index, row))
        return [able[entry[3]][0].listed(entry[4]) for entry in sorted(found)[:top]]

    def _entry(self, able: Sequence[Able], index: int, row: int) -> Entry:
        lot, time = able[index]
        each = lot.listed(row)
        return self.cost(each, time), each.offer.name, each.offer.key, index, row

    def cost(self, each: Listed, time: Carried) -> Fraction:
        """What a unit likely costs, exactly, in the currency of the ranking."""
        offer = each.offer
        billing = self.billing(offer)
        cost = estimate(self.profile, offer, billing, time, self.beside(billing))
        return cost if offer.currency == self.currency else cost * (self.rate(offer.currency) or 0)

    def _quote(self, each: Listed) -> Quote | None:
        offer = each.offer
        return quoted(self.profile, offer, self.billing(offer), self.stated.get(offer.key))

    def _ranked(self, each: Listed, places: _Hours) -> Ranked:
        quote = self._quote(each)
        assert quote is not None, "an offer was admitted without a time"
        rate = self.rate(each.offer.currency) or Fraction(0)
        hour = quote.hour * rate
        return Ranked(each, quote, quote.per_unit.likely * rate, hour, places.of(hour))


class _Hours:
    """At which place an hour's price stands among all those of some lots."""

    def __init__(self, lots: Iterable[tuple[Fraction, Lot]]) -> None:
        self._prices: dict[Fraction, list[Decimal]] = {}
        for scale, lot in lots:
            self._prices.setdefault(scale, []).extend(map(Decimal, lot.prices))
        for prices in self._prices.values():
            prices.sort()

    def of(self, hour: Fraction) -> int:
        """One more than there are cheaper ones."""
        return 1 + sum(
            bisect_left(prices, hour / scale, key=Fraction)
            for scale, prices in self._prices.items()
            if scale
        )


def worth(rate: ExchangeRate, currency: str) -> Fraction:
    """What one of a currency is worth by a rate, in the other currency of the rate."""
    return Fraction(rate.rate) if rate.base == currency else 1 / Fraction(rate.rate)


def _hours(seconds: Fraction) -> str:
    return f"{float(seconds) / 3600:.1f}"


def unable(profile: Profile, offer: MarketOffer) -> tuple[str, str] | None:
    """Why an offer cannot do the work, or None. A need that nobody stated excludes nobody."""
    if offer.split in ("gpu", "host"):
        return "price", f"the price is the {offer.split}'s alone; it is no whole machine"
    if not Decimal(offer.price):
        return "price", "a price of 0 is no price"
    if offer.interruptible and profile.interruptible is not True:
        said = (
            "says that it may not be"
            if profile.interruptible is False
            else "does not say it may be"
        )
        return "interruptible", f"interruptible, and the work's profile {said} interrupted"
    return _too_small(profile, offer)


_ONLY_A_GPU = Needs(gpu=True)


def _too_small(profile: Profile, offer: MarketOffer) -> tuple[str, str] | None:
    needs = profile.needs
    if needs.gpu and not Decimal(offer.gpus):
        return "GPU", "it has no GPU"
    if needs == _ONLY_A_GPU or needs == Needs():
        return None
    held: tuple[tuple[str, Fraction | None, Fraction | None, str], ...] = (
        ("memory", needs.gpu_memory_mib, _fraction(gpu_memory_mib(offer)), "MiB of GPU memory"),
        ("memory", needs.memory_mib, _fraction(offer.memory_mib), "MiB of RAM"),
        ("vCPU", needs.vcpus, _number(offer.vcpus), "vCPUs"),
        ("disk", needs.disk_gb, _number(offer.disk_gb), "GB of disk"),
    )
    for why, wanted, there, words in held:
        if wanted is None or (there is None and words != "MiB of GPU memory"):
            continue
        if there is None:
            return "unknown GPU", "the memory of its GPU is not stated"
        if there < wanted:
            return why, f"{_whole(there)} {words}, {_whole(wanted)} needed"
    return None


def _fraction(value: int | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def _number(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _whole(value: Fraction) -> str:
    return f"{float(value):g}"


def effects(first: Ranked, second: Ranked) -> Effects | None:
    """Why the first costs what share of what the second does; None where nothing is paid."""
    one, other = first.quote, second.quote
    if not (other.likely.unit_s and second.hour and other.compute and second.cost and one.compute):
        return None
    price = first.hour / second.hour
    time = one.likely.unit_s / other.likely.unit_s
    waste = other.likely.busy / one.likely.busy
    whole = first.cost / second.cost
    return Effects(price, time, waste, whole / (price * time * waste))


def would_win(first: Ranked, second: Ranked) -> WouldWin:
    """What would have to be true for the second to win, increments left aside."""
    a, b = first.quote, second.quote
    scale = second.hour / b.hour if b.hour else Fraction(0)
    beside = second.cost - b.compute * scale / b.units
    share = _share(first.cost - beside, second.cost - beside)
    behind = first.cost - a.compute * (first.hour / a.hour if a.hour else 0) / a.units
    slower = _share(second.cost - behind, first.cost - behind)
    return WouldWin(
        None if share is None else b.hour * share,
        None if share is None else b.likely.unit_s * share,
        None if slower is None else a.likely.unit_s * slower,
    )


def _share(wanted: Fraction, have: Fraction) -> Fraction | None:
    return wanted / have if have > 0 and wanted > 0 else None


def frontier(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Those that no other beats in both cost and time, the fastest first."""
    best: list[Ranked] = []
    for each in sorted(ranked, key=lambda r: (r.quote.finish_s.likely, r.cost)):
        if not best or each.cost < best[-1].cost:
            best.append(each)
    return best
