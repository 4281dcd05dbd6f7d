"""Quotes in order of what a finished unit likely costs, those that cannot do the work apart.

Decides who is excluded and why, the order, what would have to be true for the second to win, and which
part of a difference comes from finishing faster and which from wasting fewer paid hours. Amounts in
different currencies are compared by a dated rate or not at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from ouvrage.model.offers import ExchangeRate, MarketOffer
from ouvrage.pricing.market.billing import Billing
from ouvrage.pricing.market.listed import Listed, gpu_memory_mib, hourly
from ouvrage.pricing.market.profile import Needs, Profile, Timing
from ouvrage.pricing.market.quote import Beside, Quote, beside_of, estimate, likely_case, quoted
from ouvrage.pricing.market.scaling import Carried, carried

TOP = 20


@dataclass(frozen=True, slots=True)
class Excluded:
    """An offer that cannot do the work: ``why`` in one word, ``reason`` in a sentence."""

    listed: Listed
    why: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """A quote, its place, and its cost per unit in the currency of the ranking."""

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

    def rank(self, listed: Iterable[Listed], top: int = TOP) -> Ranking:
        """The offers, the cheapest finished unit first."""
        able: list[tuple[Listed, Carried]] = []
        excluded: list[Excluded] = []
        memo: dict[tuple[object, ...], Carried | None] = {}
        for each in listed:
            refused, time = self._admitted(each, memo)
            if refused is not None:
                excluded.append(refused)
            elif time is not None:
                able.append((each, time))
        able, late = self._in_time(able)
        best = self._best(able, top)
        hours = self._by_hour([each.offer for each, _ in able])
        places = {index: place for place, index in enumerate(hours, 1)}
        ranked = [self._ranked(able[i][0], places[i]) for i in best]
        cheapest = self._ranked(able[hours[0]][0], 1) if hours else None
        return Ranking(
            profile=self.profile,
            currency=self.currency,
            ranked=tuple(ranked),
            able=len(able),
            cheapest_hour=cheapest,
            excluded=tuple(excluded + late),
            rates=tuple(self.rates.values()),
        )

    def _by_hour(self, offers: Sequence[MarketOffer]) -> list[int]:
        """The offers' indices, the cheapest hour first."""
        every = range(len(offers))
        if all((o.per, o.split, o.currency) == ("h", "node", self.currency) for o in offers):
            prices = [Decimal(offer.price) for offer in offers]  # as exact, and compared faster
            return sorted(every, key=prices.__getitem__)
        hours = [hourly(offer) * (self.rate(offer.currency) or 0) for offer in offers]
        return sorted(every, key=hours.__getitem__)

    def _admitted(
        self, each: Listed, memo: dict[tuple[object, ...], Carried | None]
    ) -> tuple[Excluded | None, Carried | None]:
        offer = each.offer
        unfit = unable(self.profile, offer)
        if unfit is not None:
            return Excluded(each, *unfit), None
        if self.rate(offer.currency) is None:
            reason = f"priced in {offer.currency}, and no dated rate to {self.currency} is recorded"
            return Excluded(each, "currency", reason), None
        stated = self.stated.get(offer.key)
        named = stated or self.profile.on.name or any(t.on.name for t in self.profile.others)
        shape = (offer.gpu, offer.gpus, offer.vcpus, offer.memory_mib, offer.interconnect_gb_s)
        key = (*shape, offer.key if named else None)
        if key not in memo:
            memo[key] = carried(self.profile, offer, stated)
        time = memo[key]
        if time is None:
            words = f"no relative speed is known of {offer.gpu or 'a machine without a GPU'}"
            return Excluded(each, "unknown GPU", words), None
        return None, time

    def _in_time(
        self, able: list[tuple[Listed, Carried]]
    ) -> tuple[list[tuple[Listed, Carried]], list[Excluded]]:
        """Those whose likely end lies within the deadline, and the others."""
        deadline = self.profile.deadline_s
        if deadline is None:
            return able, []
        kept: list[tuple[Listed, Carried]] = []
        late: list[Excluded] = []
        for each, time in able:
            offer = each.offer
            finish = likely_case(self.profile, offer, self.billing(offer), time).finish_s
            if finish > deadline:
                words = f"finished after {_hours(finish)} h, wanted within {_hours(deadline)} h"
                late.append(Excluded(each, "deadline", words))
            else:
                kept.append((each, time))
        return kept, late

    def _best(self, able: Sequence[tuple[Listed, Carried]], top: int) -> list[int]:
        """The indices of the cheapest, in order; exact among those that a screen lets through."""
        among = range(len(able)) if self.screen is None else self.screen(self, able, top)
        costs = [
            (self.cost(*able[i]), able[i][0].offer.name, able[i][0].offer.key, i) for i in among
        ]
        return [entry[-1] for entry in heapq.nsmallest(top, costs)]

    def cost(self, each: Listed, time: Carried) -> Fraction:
        """What a unit likely costs, exactly, in the currency of the ranking."""
        offer = each.offer
        billing = self.billing(offer)
        cost = estimate(self.profile, offer, billing, time, self.beside(billing))
        return cost if offer.currency == self.currency else cost * (self.rate(offer.currency) or 0)

    def _quote(self, each: Listed) -> Quote | None:
        offer = each.offer
        return quoted(self.profile, offer, self.billing(offer), self.stated.get(offer.key))

    def _ranked(self, each: Listed, by_hour: int) -> Ranked:
        quote = self._quote(each)
        assert quote is not None, "an offer was admitted without a time"
        rate = self.rate(each.offer.currency) or Fraction(0)
        return Ranked(each, quote, quote.per_unit.likely * rate, quote.hour * rate, by_hour)


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
