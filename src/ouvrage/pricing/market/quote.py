"""The whole quote of one offer for one piece of work: every line with its rule, quantity and grade.

Decides which lines a quote has and how each amount is made, for a low, a likely and a high. A line
whose price or quantity nobody states has no amount: it is listed as unknown and counts in no total.
Exact fractions throughout, in the offer's own currency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.billing import INTERNET, Billing
from ouvrage.pricing.market.listed import hourly
from ouvrage.pricing.market.profile import Profile, Timing
from ouvrage.pricing.market.scaling import Carried, Span, carried

H = 3600
DEFAULT_MTBF_H = Span(Fraction(6), Fraction(24), Fraction(0))
"""Mean hours between interruptions where nobody states them: 6 at worst, 24 likely, none at best."""
PULL_GB_S = Span(Fraction(1, 2), Fraction(1, 10), Fraction(1, 50))
"""At which rate an image arrives where nobody says: an assumption."""
RESTART_S = Fraction(120)


@dataclass(frozen=True, slots=True)
class Paid:
    """Seconds and amounts of one of the three cases. An amount of None is not known."""

    unit_s: Fraction
    work_s: Fraction
    startup_s: Fraction
    pull_s: Fraction
    lost_s: Fraction
    metered_s: Fraction
    billed_s: Fraction
    finish_s: Fraction
    amounts: dict[str, Fraction | None]

    @property
    def total(self) -> Fraction:
        """What is known of the whole."""
        return sum((each for each in self.amounts.values() if each is not None), Fraction(0))

    @property
    def busy(self) -> Fraction:
        """The share of paid time in which finished units were made."""
        return self.work_s / self.billed_s if self.billed_s else Fraction(1)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a quote. ``amount`` None: it is not known, and ``because`` says why."""

    name: str
    rule: str
    quantity: Fraction | None
    unit: str
    amount: Span | None
    grade: Grade
    because: str

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        return {
            "line": self.name,
            "rule": self.rule,
            "quantity": None if self.quantity is None else decimal_text(self.quantity),
            "unit": self.unit,
            "amount": None if self.amount is None else span_json(self.amount),
            "grade": self.grade.word,
            "because": self.because,
        }


def span_json(span: Span) -> dict[str, str]:
    """A range as decimal texts."""
    return {
        "low": decimal_text(span.low),
        "likely": decimal_text(span.likely),
        "high": decimal_text(span.high),
    }


@dataclass(frozen=True, slots=True)
class Quote:
    """An offer quoted: three cases, the time behind them, and what its lines say."""

    offer: MarketOffer
    profile: Profile
    billing: Billing
    carried: Carried
    low: Paid
    likely: Paid
    high: Paid
    hour: Fraction

    @property
    def units(self) -> Fraction:
        """How many units are finished for it; one where the marginal unit is asked for."""
        return Fraction(1) if self.profile.units is None else self.profile.units

    @property
    def total(self) -> Span:
        """What all units cost."""
        return Span(self.low.total, self.likely.total, self.high.total)

    @property
    def per_unit(self) -> Span:
        """What one finished unit costs."""
        total, n = self.total, self.units
        return Span(total.low / n, total.likely / n, total.high / n)

    @property
    def finish_s(self) -> Span:
        """How long all units take."""
        return Span(self.low.finish_s, self.likely.finish_s, self.high.finish_s)

    @property
    def compute(self) -> Fraction:
        """The likely amount for the machine's time."""
        return sum((self.likely.amounts[name] or Fraction(0) for name in COMPUTE), Fraction(0))

    @property
    def not_counted(self) -> tuple[str, ...]:
        """Names of the lines whose price or rate nobody states, and which no total holds."""
        return tuple(name for name, amount in self.likely.amounts.items() if amount is None)

    @property
    def grade(self) -> Grade:
        """The weakest grade among the lines that have an amount."""
        return weakest(line.grade for line in lines_of(self) if line.amount is not None)


COMPUTE = ("work", "start-up", "image", "interruptions", "increments")


@dataclass(frozen=True, slots=True)
class Beside:
    """What is paid besides the machine's time under one way of billing: once, and for each hour."""

    once: Fraction
    per_h: Fraction
    tax: Fraction


def beside_of(profile: Profile, billing: Billing) -> Beside:
    """The same for all offers that bill alike, so that a ranking asks for it once."""
    taxed = tax_rate(profile, billing, "likely") or Fraction(0)
    if profile.units is None:
        return Beside(Fraction(0), Fraction(0), taxed)
    moves = profile.moves
    into = billing.into.cost(moves.dataset_gb) if moves.dataset_gb is not None else None
    out = (
        billing.out_to(moves.egress_to).cost(moves.results_gb, moves.out_before_gb)
        if moves.results_gb is not None
        else None
    )
    kept = (kept_gb(profile) or 0) * (billing.storage_gb_h or 0)
    address = moves.public_ips * (billing.ip_h or 0)
    zero = Fraction(0)
    return Beside((into or zero) + (out or zero), kept + address + zero, taxed)


def estimate(
    profile: Profile, offer: MarketOffer, billing: Billing, time: Carried, beside: Beside
) -> Fraction:
    """The likely cost of a unit without its lines: the same number that the quote ends with."""
    units = profile.units
    work = time.seconds.likely * (1 if units is None else units)
    pull = _pull_s(profile, "likely") if units is not None else 0
    arriving = 0 if billing.healthy else pull
    metered = work + _lost_s(profile, offer, work, "likely") + arriving
    paid = metered
    if units is not None:
        metered += profile.startup_s
        paid = billing.billed_s(metered, later=True)
        reserved = profile.moves.reserved_h
        paid = paid if reserved is None else max(paid, reserved * H)
    total = (paid * hourly(offer) + (metered + pull - arriving) * beside.per_h) / H + beside.once
    return total * (1 + beside.tax) / (units or 1) if beside.tax else total / (units or 1)


def likely_case(profile: Profile, offer: MarketOffer, billing: Billing, time: Carried) -> Paid:
    """The likely one of the three cases."""
    return _paid(profile, offer, billing, time.seconds.likely, "likely")


def quoted(
    profile: Profile, offer: MarketOffer, billing: Billing, stated: Timing | None = None
) -> Quote | None:
    """The whole quote; None where the work's time on this offer cannot be told."""
    time = carried(profile, offer, stated)
    if time is None:
        return None
    low, likely, high = (
        _paid(profile, offer, billing, getattr(time.seconds, name), name)
        for name in ("low", "likely", "high")
    )
    return Quote(offer, profile, billing, time, low, likely, high, hourly(offer))


def _paid(
    profile: Profile, offer: MarketOffer, billing: Billing, unit_s: Fraction, case: str
) -> Paid:
    units = profile.units
    work = unit_s * (1 if units is None else units)
    once = units is not None
    startup = profile.startup_s if once else Fraction(0)
    pull = _pull_s(profile, case) if once else Fraction(0)
    lost = _lost_s(profile, offer, work, case)
    arriving = Fraction(0) if billing.healthy else pull
    metered = work + startup + lost + arriving
    billed = metered
    if once:
        billed = _billed_s(billing, metered, case)
    finish = metered + (pull - arriving)
    hour = hourly(offer)
    amounts: dict[str, Fraction | None] = {
        "work": work * hour / H,
        "start-up": startup * hour / H,
        "image": arriving * hour / H,
        "interruptions": lost * hour / H,
        "increments": (billed - metered) * hour / H,
        **_beside(profile, billing, finish, billed, hour),
    }
    rate = tax_rate(profile, billing, case)
    known = sum((each for each in amounts.values() if each is not None), Fraction(0))
    amounts["tax"] = None if rate is None else known * rate
    return Paid(unit_s, work, startup, pull, lost, metered, billed, finish, amounts)


def _billed_s(billing: Billing, metered: Fraction, case: str) -> Fraction:
    if case == "low":
        return billing.at_least_s(metered)
    return billing.at_most_s(metered) if case == "high" else billing.billed_s(metered, later=True)


def _pull_s(profile: Profile, case: str) -> Fraction:
    image = profile.moves.image_gb
    return Fraction(0) if image is None else image / getattr(PULL_GB_S, case)


def _lost_s(profile: Profile, offer: MarketOffer, work: Fraction, case: str) -> Fraction:
    """Seconds expected to be worked twice or waited: work / MTBF × (half an interval + restart)."""
    mtbf = mtbf_h(profile, offer, case)
    if mtbf is None:
        return Fraction(0)
    every = profile.moves.checkpoint_every_s
    half = (work if every is None else min(every, work)) / 2
    restart = RESTART_S if profile.restart_s is None else profile.restart_s
    return work / (mtbf * H) * (half + restart)


def mtbf_h(profile: Profile, offer: MarketOffer, case: str = "likely") -> Fraction | None:
    """Mean hours between interruptions: the offer's, the profile's, or an assumption; None: none."""
    if offer.mtbf_h is not None and Fraction(offer.mtbf_h):
        return Fraction(offer.mtbf_h)
    if not offer.interruptible:
        return None
    if profile.mtbf_h:
        return profile.mtbf_h
    assumed = {"low": None, "likely": DEFAULT_MTBF_H.likely, "high": DEFAULT_MTBF_H.low}
    return assumed[case]


def _beside(
    profile: Profile, billing: Billing, finish: Fraction, billed: Fraction, hour: Fraction
) -> dict[str, Fraction | None]:
    """What is paid besides the machine's time."""
    if profile.units is None:
        return {}
    moves = profile.moves
    kept = kept_gb(profile)
    found: dict[str, Fraction | None] = {}
    if kept is not None:
        rate = billing.storage_gb_h
        found["storage"] = None if rate is None else kept * rate * finish / H
    if moves.dataset_gb is not None:
        found["data in"] = billing.into.cost(moves.dataset_gb)
    if moves.results_gb is not None:
        out = billing.out_to(moves.egress_to)
        found["results out"] = out.cost(moves.results_gb, moves.out_before_gb)
    if moves.public_ips:
        rate = billing.ip_h
        found["public IP"] = None if rate is None else moves.public_ips * rate * finish / H
    if moves.reserved_h is not None:
        found["reservation unused"] = max(Fraction(0), moves.reserved_h * H - billed) * hour / H
    return found


def kept_gb(profile: Profile) -> Fraction | None:
    """GB that are stored while the work goes on; None where nobody says."""
    moves = profile.moves
    stated = [each for each in (moves.checkpoint_gb, moves.volume_gb) if each is not None]
    return sum(stated, Fraction(0)) if stated else None


def tax_rate(profile: Profile, billing: Billing, case: str) -> Fraction | None:
    """The rate of tax on top of the price; None where none is known.

    Where nobody says whether the price holds the tax, the buyer's rate comes on top of it but in the
    low case.
    """
    status = billing.tax.status
    if status in ("included", "none"):
        return Fraction(0)
    rate = billing.tax.rate if profile.tax is None else profile.tax
    if rate is None or status == "excluded":
        return rate
    return Fraction(0) if case == "low" else rate


Words = Callable[[Quote], tuple[str, Fraction | None, str, Grade, str]]


def lines_of(quote: Quote) -> list[Line]:
    """Every line of a quote, those without an amount included."""
    found = []
    for name in quote.likely.amounts:
        rule, quantity, unit, grade, because = _WORDS[name](quote)
        spans = [case.amounts[name] for case in (quote.low, quote.likely, quote.high)]
        low, likely, high = spans
        amount = None
        if low is not None and likely is not None and high is not None:
            amount = Span(low, likely, high)
        if amount == Span(*[Fraction(0)] * 3) and name in _ONLY_IF_PAID:
            continue
        found.append(Line(name, rule, quantity, unit, amount, grade, because))
    return found


_ONLY_IF_PAID = ("start-up", "image", "interruptions", "increments", "reservation unused")
LISTED = Grade.LISTED
ASSUMED = Grade.ASSUMED
_DOUBTED = {"unverified": "not verified", "conflict": "contradicted by another text"}


def _work(quote: Quote) -> tuple[str, Fraction, str, Grade, str]:
    grade = weakest((LISTED, quote.carried.grade))
    rule = f"units × time of one × {decimal_text(quote.hour)} {quote.offer.currency}/h"
    return rule, quote.likely.work_s / H, "h", grade, quote.carried.said_by


def _startup(quote: Quote) -> tuple[str, Fraction, str, Grade, str]:
    because = "until the first unit, and what the first units took longer"
    grade = weakest((LISTED, quote.carried.grade))
    return "paid once", quote.likely.startup_s / H, "h", grade, because


def _image(quote: Quote) -> tuple[str, Fraction, str, Grade, str]:
    because = "an image arrives at 0.02 to 0.5 GB/s: nobody says at which rate"
    return "paid while it loads", quote.likely.pull_s / H, "h", ASSUMED, because


def _interruptions(quote: Quote) -> tuple[str, Fraction, str, Grade, str]:
    mtbf = mtbf_h(quote.profile, quote.offer)
    stated = quote.offer.mtbf_h or quote.profile.mtbf_h
    who = "as stated" if stated else "assumed (6 at worst): nobody states it"
    half = "half a checkpoint interval"
    if quote.profile.moves.checkpoint_every_s is None:
        half = "half of the work, since it keeps no checkpoint"
    because = (
        f"one in {decimal_text(mtbf or Fraction(0))} h, {who}; each costs {half} and a restart"
    )
    rule = "time / MTBF × (half a checkpoint interval + restart)"
    return rule, quote.likely.lost_s / H, "h", ASSUMED, because


def _increments(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    billing, paid = quote.billing, quote.likely
    if billing.plan is None:
        because = "no plan says how time is rounded: as metered at best, in whole hours at worst"
        return "not stated", None, "h", ASSUMED, because
    rule = f"{billing.plan}: {billing.words}"
    because = f"{decimal_text(paid.metered_s)} s are billed as {decimal_text(paid.billed_s)} s"
    for rival in billing.rivals:
        because += f"; another text ({rival.plan}) says {rival.words}, and the range holds both"
    if billing.confidence in _DOUBTED:
        because += f"; a part of this rule is {_DOUBTED[billing.confidence]}"
    sure = ASSUMED if billing.confidence in _DOUBTED else LISTED
    grade = weakest((sure, quote.carried.grade))
    return rule, (paid.billed_s - paid.metered_s) / H, "h", grade, because


def _storage(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    gb = kept_gb(quote.profile) or Fraction(0)
    because = f"{decimal_text(gb)} GB while the work goes on"
    if quote.billing.storage_gb_h is None:
        because = f"{because}: no price of storage is stated"
    return quote.billing.storage_rule, gb * quote.likely.finish_s / H, "GB-h", ASSUMED, because


def _data_in(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    known = quote.likely.amounts["data in"] is not None
    because = "brought in once" if known else "no price of traffic in is stated"
    return quote.billing.into.rule, quote.profile.moves.dataset_gb, "GB", LISTED, because


def _results_out(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    moves = quote.profile.moves
    to = moves.egress_to
    out, gb = quote.billing.out_to(to), moves.results_gb
    if quote.likely.amounts["results out"] is None:
        because = "no price of traffic out is stated"
        if to is not None:
            because = (
                f"no price of traffic to {'the internet' if to == INTERNET else repr(to)} is stated"
            )
        return out.rule, gb, "GB", LISTED, because
    before = moves.out_before_gb
    since = f"after {decimal_text(before)} GB" if before else "from nothing"
    because = f"at the tiers reached {since}; to "
    because += "the internet" if to in (None, INTERNET) else str(to)
    return out.rule, gb, "GB", LISTED, because + ("" if to else ", since nobody says where")


def _ip(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    quantity = quote.profile.moves.public_ips * quote.likely.finish_s / H
    because = "while the work goes on"
    if quote.billing.ip_h is None:
        because = "no price of an address is stated"
    return quote.billing.ip_rule, quantity, "address-h", LISTED, because


def _reservation(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    reserved = quote.profile.moves.reserved_h or Fraction(0)
    unused = max(Fraction(0), reserved - quote.likely.billed_s / H)
    because = f"{decimal_text(reserved)} h reserved, paid whether used or not"
    return "reserved time at the price of an hour", unused, "h", ASSUMED, because


def _tax_words(quote: Quote) -> tuple[str, Fraction | None, str, Grade, str]:
    tax, own = quote.billing.tax, quote.profile.tax
    rate = tax_rate(quote.profile, quote.billing, "likely")
    if tax.status in ("included", "none"):
        words = "is in the price" if tax.status == "included" else "none is charged"
        return tax.status, None, "", LISTED, words
    on_top = tax.status == "excluded"
    if rate is None:
        words = "comes on top; its rate is not stated: --tax gives it"
        words = words if on_top else "whether the price includes it is not stated"
        return tax.status, None, "", LISTED, words
    who = "the plan says" if own is None else "the profile says"
    words = f"comes on top, at the rate of {decimal_text(100 * rate)} % that {who}"
    if not on_top:
        words += "; whether the price includes it is not stated, so the low case adds none"
    grade = LISTED if own is None and on_top else ASSUMED
    return f"{tax.status}, {decimal_text(rate)} of all lines", rate, "of all lines", grade, words


_WORDS: dict[str, Words] = {
    "work": _work,
    "start-up": _startup,
    "image": _image,
    "interruptions": _interruptions,
    "increments": _increments,
    "storage": _storage,
    "data in": _data_in,
    "results out": _results_out,
    "public IP": _ip,
    "reservation unused": _reservation,
    "tax": _tax_words,
}
