"""The few numbers of a rate plan on which a quote depends, for one offer.

Decides which rule of a plan is meant by compute, storage, traffic and address, and how prices of the
offer itself come before the plan's. A plan says how time is billed; the price per hour is the offer's.
Charges of real usage are made by ``pricing.rates``; a quote is about usage that has not happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ouvrage.base.price import PER_US
from ouvrage.base.time import HOUR, SECOND
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.rates.plan import Plan, Rule, Steps, Tax, Tier, Version
from ouvrage.pricing.rates.quantity import MONTH, Rate, converted
from ouvrage.pricing.rates.steps import rounded_us
from ouvrage.pricing.rates.tiers import slices

MONTH_H = Fraction(730)
_HOUR_S = 3600
UNKNOWN_TAX = Tax()
INTERNET = "internet"
DESTINATIONS = (INTERNET, "other region", "other zone", "same zone")
"""Where results can go, as far as plans tell prices apart."""
_COUNTED = {
    "other region": ("cross-region", "other-region"),
    "other zone": ("cross-zone", "other-zone"),
    "same zone": ("same-zone",),
}
"""How a plan's rule calls traffic to a destination, before ``-out`` and ``-in``."""
_GB = Fraction(10**9)
"""A GB of a profile is 10⁹ bytes; a plan says what its own is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Tiers per GB after a free allowance, and who says so. No tiers: the price is not known."""

    tiers: tuple[Tier, ...] = ()
    free: Fraction = Fraction(0)
    rule: str = "not stated"
    scale: Fraction = Fraction(1)

    def cost(self, gb: Fraction, before: Fraction = Fraction(0)) -> Fraction | None:
        """What a quantity costs after so much in the same period; None: not known."""
        if not self.tiers:
            return None
        parts = slices(before * self.scale, gb * self.scale, self.free, self.tiers)
        return sum((each.quantity * each.rate.amount for each in parts if each.rate), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """How an offer bills. ``healthy``: the meter starts only when the machine works, so that loading
    an image is free. ``out`` is traffic to the internet, ``elsewhere`` that to other destinations as far
    as a price is stated. ``confidence`` is the weakest of the compute rule's fields. ``rivals`` are the
    readings of other official texts that contradict this one; none is taken for the right one."""

    plan: str | None
    steps: Steps
    healthy: bool = False
    storage_gb_h: Fraction | None = None
    storage_rule: str = "not stated"
    out: Traffic = Traffic()
    elsewhere: Mapping[str, Traffic] = field(default_factory=dict)
    into: Traffic = Traffic()
    ip_h: Fraction | None = None
    ip_rule: str = "not stated"
    tax: Tax = UNKNOWN_TAX
    confidence: str = "assumed"
    rivals: tuple[Billing, ...] = ()

    def billed_s(self, seconds: Fraction, *, later: bool = False) -> Fraction:
        """Seconds as they are billed. ``later``: begun in the middle of an hour of the clock."""
        if not seconds:
            return Fraction(0)
        us, steps = seconds * SECOND, self.steps
        if steps.align == "clock" and steps.increment_us and later:
            us += Fraction(steps.increment_us, 2)
        # The engine's own rounding; exact for fractions of a microsecond too.
        whole = Fraction(rounded_us(us, steps))  # pyright: ignore[reportArgumentType] // and - suffice
        return max(whole, Fraction(steps.minimum_us)) / SECOND

    def out_to(self, destination: str | None) -> Traffic:
        """The traffic to a destination (None: the internet); without tiers where no price is stated."""
        if destination in (None, INTERNET):
            return self.out
        return self.elsewhere.get(destination or "", Traffic())

    def at_least_s(self, seconds: Fraction) -> Fraction:
        """Seconds as they are billed at best, by the most favourable reading of the provider's texts."""
        return min(each.billed_s(seconds) for each in (self, *self.rivals))

    def at_most_s(self, seconds: Fraction) -> Fraction:
        """Seconds as they are billed at worst: where no plan is known, in whole hours."""
        if self.plan is not None:
            return max(each.billed_s(seconds, later=True) for each in (self, *self.rivals))
        return Fraction(-(-seconds // _HOUR_S) * _HOUR_S)

    @property
    def words(self) -> str:
        """``per 60 s, rounded up, at least 60 s``."""
        steps = self.steps
        if self.plan is None:
            return "as metered, since no plan is known"
        if not steps.increment_us:
            return "as metered"
        unit = f"{steps.increment_us // SECOND} s"
        clock = " of the clock" if steps.align == "clock" else ""
        least = f", at least {steps.minimum_us // SECOND} s" if steps.minimum_us else ""
        return f"per {unit}{clock}, rounded {steps.rounding}{least}"


EXACT = Billing(plan=None, steps=Steps())


def billing_of(offer: MarketOffer, plan: Plan | None, rivals: Iterable[Plan] = ()) -> Billing:
    """How an offer bills, from its plan, those that contradict it, and what the offer itself states."""
    base = with_rivals(billing_of_plan(plan), rivals)
    if offer.storage_gb_month is not None:
        price = Fraction(offer.storage_gb_month) / MONTH_H
        base = replace(base, storage_gb_h=price, storage_rule="the offer, a month of 730 h")
    if offer.egress_gb is not None:
        base = replace(base, out=_flat(offer.egress_gb))
    if offer.ingress_gb is not None:
        base = replace(base, into=_flat(offer.ingress_gb))
    if offer.tax not in ("unknown", base.tax.status):
        # What the offer says of its own price comes first: the plan's rate is for the plan's status.
        base = replace(base, tax=Tax(status=offer.tax))
    return base


def with_rivals(base: Billing, rivals: Iterable[Plan]) -> Billing:
    """A way of billing, and the contradicting ones that bill time otherwise."""
    others = map(billing_of_plan, rivals)
    return replace(base, rivals=tuple(other for other in others if other.steps != base.steps))


def _flat(price: str) -> Traffic:
    rate = Rate(amount=Fraction(price), text=price, unit="GB")
    return Traffic(tiers=(Tier(up_to=None, rate=rate),), rule="the offer")


def billing_of_plan(plan: Plan | None) -> Billing:
    """How a plan bills; without one time is billed as metered."""
    if plan is None:
        return EXACT
    version = plan.versions[-1]
    rules = [rule for rule in version.rules if rule.kind == "metered"]
    compute = next((rule for rule in rules if rule.part == "compute"), None)
    if compute is None:
        return replace(EXACT, plan=plan.name, tax=version.tax)
    storage = _timed(rules, "storage", ("storage",))
    address = _timed(rules, "address", ())
    return Billing(
        plan=plan.name,
        steps=compute.steps,
        healthy="healthy" in compute.meter.starts,
        storage_gb_h=None if storage is None else _per_hour(storage, version),
        storage_rule="not stated" if storage is None else f"{plan.name}/{storage.name}",
        out=_traffic(plan, version, _counting(rules, "egress")),
        elsewhere=_elsewhere(plan, version, rules),
        into=_traffic(plan, version, _counting(rules, "ingress")),
        ip_h=None if address is None else _per_hour(address, version),
        ip_rule="not stated" if address is None else f"{plan.name}/{address.name}",
        tax=version.tax,
        confidence=plan.confidence(compute),
    )


def _timed(rules: list[Rule], part: str, of: tuple[str, ...]) -> Rule | None:
    found = [r for r in rules if r.part == part and r.rate and r.rate.per]
    return next((r for r in found if not of or set(of) & set(r.of)), None)


def _per_hour(rule: Rule, version: Version) -> Fraction | None:
    """The price of one GB or one address for an hour; None where the month's length is not stated."""
    rate = rule.rate
    if rate is None or rate.per is None:
        return None
    scale = Fraction(1)
    if rate.unit not in (None, "address"):
        gb = converted(_GB, "B", rate.unit or "GB", version.gb)
        if gb is None:
            return None
        scale = gb
    if rate.per != MONTH:
        return rate.amount * scale * Fraction(HOUR, PER_US[rate.per])
    hours = Fraction(rule.calendar.month_us, HOUR) if rule.calendar.month_us else MONTH_H
    return rate.amount * scale / hours


def _counting(rules: list[Rule], name: str) -> Rule | None:
    return next((r for r in rules if r.part == "traffic" and name in r.of), None)


def _elsewhere(plan: Plan, version: Version, rules: list[Rule]) -> dict[str, Traffic]:
    """Traffic to destinations that a rule names, or to all where a plan charges for none at all."""
    found: dict[str, Traffic] = {}
    for destination, names in _COUNTED.items():
        name = next((n for n in names if _counting(rules, f"{n}-out")), None)
        rule = _counting(rules, f"{name}-out") if name else _free(rules)
        traffic = _traffic(plan, version, rule)
        if rule and f"{name}-in" in rule.of:
            # Charged each way: what leaves one of the buyer's zones arrives in another of them.
            words = f"{traffic.rule}, charged on leaving and on arriving"
            traffic = replace(traffic, scale=2 * traffic.scale, rule=words)
        if traffic.tiers:
            found[destination] = traffic
    return found


def _free(rules: list[Rule]) -> Rule | None:
    """A rule by which traffic costs nothing, in both directions."""
    rule = _counting(rules, "egress")
    free = rule is not None and rule.rate is not None and not rule.rate.amount and not rule.tiers
    return rule if rule is not None and free and "ingress" in rule.of else None


def _traffic(plan: Plan, version: Version, rule: Rule | None) -> Traffic:
    if rule is None:
        return Traffic()
    tiers = rule.tiers or ((Tier(up_to=None, rate=rule.rate),) if rule.rate else ())
    unit = rule.form.unit if rule.form else None
    scale = converted(_GB, "B", unit, version.gb) if unit else None
    if scale is None or (rule.rate_name and not rule.rate):
        return Traffic()
    return Traffic(
        tiers=tiers,
        free=rule.grouping.free,
        rule=f"{plan.name}/{rule.name}",
        scale=scale,
    )
