"""What a lease costs until a moment, by the plan that it was granted under: one function for every figure.

Decides that a running cost, an estimate, a budget's spending and the charges of the bill are the same
calculation at different moments, so that none can differ from another. Each rule's amount is rounded to
whole nano-units, half to even, once, over all of the lease until the moment. What a lease is comes from its
facts; when it is cut into charges is decided by ``charging``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.numbers import NANO, nano, number
from ouvrage.model.selling import OwnOffer
from ouvrage.pricing.rates.bill import Charge
from ouvrage.pricing.rates.frozen import asks_for_rate, lease_plan
from ouvrage.pricing.rates.plan import GIVEN, Plan
from ouvrage.pricing.rates.quantity import Rate
from ouvrage.pricing.rates.rating import apply_plan
from ouvrage.pricing.rates.usage import Resource, Row, Usage

_STARTS = ("requested", "created", "active", "healthy")
"""A lease begins with everything that a plan may count from: what comes before it is not the tenant's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a lease ended: at ``at_us``, with ``billable_us`` of it charged.

    ``outcome`` is its attempt's (None: a term, or nobody said).
    """

    at_us: int
    billable_us: int
    outcome: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease as it is billed, from ``from_us`` on; ``until_us`` is the end it was granted to, if any.

    ``sent`` and ``received`` are bytes, known when its attempt has ended. ``grade`` is the weakest of its facts',
    ``key`` that of its grant.
    """

    lease: str
    org: str
    project: str
    kind: str
    attempt: str | None
    job: str | None
    node: str
    devices: tuple[str, ...]
    offer: OwnOffer
    from_us: int
    until_us: int | None
    ended: Ended | None = None
    sent: int | None = None
    received: int | None = None
    grade: Grade = Grade.METERED
    key: str = ""

    @property
    def plan(self) -> Plan:
        """The plan frozen into its offer."""
        return lease_plan(self.offer.plan)

    @property
    def stops_us(self) -> int | None:
        """Until when it can cost anything; None while nobody knows."""
        if self.ended is not None:
            return self.from_us + self.ended.billable_us
        return self.until_us

    @property
    def unbilled(self) -> bool:
        """Whether it ended and nothing of it is charged, since its failure was not the tenant's."""
        return self.ended is not None and not self.ended.billable_us

    def held_us(self, at_us: int) -> int:
        """How long it was held until a moment, billed or not."""
        ends = self.until_us if self.ended is None else self.ended.at_us
        return max(0, (at_us if ends is None else min(at_us, ends)) - self.from_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What one rule makes of a lease until a moment; ``nano`` is the amount in nano-units.

    ``price`` is None where several prices made it.
    """

    rule: str
    words: str
    price: str | None
    quantity: Fraction
    unit: str
    nano: int


def cost_lines(lease: Lease, at_us: int) -> tuple[CostLine, ...]:
    """What a lease costs if it ends at ``at_us``, rule by rule; nothing before it began."""
    end = at_us if lease.stops_us is None else min(at_us, lease.stops_us)
    if end <= lease.from_us:
        return ()
    usage = _usage(lease, end)
    rates = {GIVEN: _rate(lease.offer)} if asks_for_rate(lease.plan) else {}
    bill = apply_plan(lease.plan, usage, rates, currency=lease.offer.currency)
    by_rule: dict[str, list[Charge]] = {}
    for charge in bill.charges:
        name = charge.rule if charge.kind != "rounding" else "rounding"
        by_rule.setdefault(name, []).append(charge)
    return tuple(_line(name, charges, bill.currency) for name, charges in by_rule.items())


def cost_until(lease: Lease, at_us: int) -> int:
    """What a lease costs if it ends at ``at_us``, in nano-units."""
    return sum(line.nano for line in cost_lines(lease, at_us))


def burn_per_hour(leases: Sequence[Lease], at_us: int, hour_us: int) -> int:
    """What some leases cost in the hour after a moment if they go on, in nano-units."""
    return sum(cost_until(each, at_us + hour_us) - cost_until(each, at_us) for each in leases)


def _line(rule: str, charges: Sequence[Charge], currency: str) -> CostLine:
    prices = {each.rate.words(currency) if each.rate else "" for each in charges}
    one = next(iter(prices)) if len(prices) == 1 else ""
    units = {each.unit for each in charges}
    return CostLine(
        rule=rule,
        words="; ".join(dict.fromkeys(each.because for each in charges)),
        price=one or None,
        quantity=sum((each.quantity for each in charges), Fraction(0)),
        unit=next(iter(units)) if len(units) == 1 else "",
        nano=nano(sum((each.amount for each in charges), Fraction(0))),
    )


def _rate(offer: OwnOffer) -> Rate:
    text = offer.rate or "0"
    return Rate(amount=number(text), text=text, per="h", currency=offer.currency)


def _usage(lease: Lease, end: int) -> Usage:
    offer = lease.offer
    levels: tuple[tuple[str, int, str], ...] = (
        ("gpus", offer.gpus, "GPU"),
        ("cpus", offer.cpus, "CPU"),
        ("vcpus", offer.cpus, "vCPU"),
        ("memory", offer.memory_mib, "MiB"),
        ("storage", offer.disk_mib, "MiB"),
        ("disk", offer.disk_mib, "MiB"),
    )
    counted = {n for v in lease.plan.versions for r in v.rules for n in (*r.of, *r.includes)}
    first = Row(line=0, resource=lease.lease, event="", at=lease.from_us)
    rows = [replace(first, event=event) for event in _STARTS]
    rows += [
        replace(first, event=name, quantity=Fraction(level), unit=unit)
        for name, level, unit in levels
        if name in counted and level
    ]
    over = lease.ended is not None and end == lease.stops_us
    for name, moved in (("egress", lease.sent), ("ingress", lease.received)):
        if over and moved and name in counted:
            rows.append(replace(first, event=name, at=end, quantity=Fraction(moved), unit="B"))
    rows.append(replace(first, event="terminated", at=end))
    resource = Resource(name=lease.lease, rows=tuple(rows))
    return Usage(file=f"lease {lease.lease}", resources=(resource,))


def amount_text(value: int) -> str:
    """Nano-units as exact decimal text: ``0.305833333``."""
    sign, digits = "-" if value < 0 else "", str(abs(value)).rjust(10, "0")
    whole, rest = digits[:-9], digits[-9:].rstrip("0")
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


def amount_nano(text: str) -> int:
    """The nano-units of a decimal text; ``ValueError`` where it has smaller parts."""
    value = number(text) * NANO
    if value.denominator != 1:
        raise ValueError(f"{text} has parts of less than a nano-unit")
    return int(value)
