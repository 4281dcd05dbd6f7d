"""What the machines of a job cost, what their GPUs did and drew, each moment of each machine once.

Decides which price a machine has: the one that the runs on it state for that time. Two prices for one
time are no price. Machines that are stated and not here are never guessed: sums are then of what is
known. Currencies meet only at a rate that is itself a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ouvrage.base.price import Price
from ouvrage.metering.gpu_use import DeviceUse, Energy, device_uses, metered_energy
from ouvrage.metering.jobs import Host, Job, Stretch, end_of
from ouvrage.metering.run_view import RunView
from ouvrage.model.offers import ExchangeRate

NO_PRICE = "no run on it states a price; ouvrage run --price 0.30/h"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCost:
    """``cost`` of one machine in ``currency``, None where ``why`` says; ``per_us`` where it has one price."""

    host: Host
    currency: str | None
    cost: Fraction | None
    price: Price | None
    why: str | None


def host_cost(host: Host) -> HostCost:
    """A machine's own price x the time that it was the job's."""
    pieces: list[tuple[Price, int]] = []
    for stretch in host.stretches:
        found = _priced(stretch)
        if isinstance(found, str):
            return HostCost(host=host, currency=None, cost=None, price=None, why=found)
        pieces += found
    currencies = {price.currency for price, _ in pieces}
    if len(currencies) > 1:
        why = f"it was paid for in several currencies: {', '.join(sorted(currencies))}"
        return HostCost(host=host, currency=None, cost=None, price=None, why=why)
    prices = {price for price, _ in pieces}
    return HostCost(
        host=host,
        currency=currencies.pop(),
        cost=sum((price.cost_of(us) for price, us in pieces), Fraction(0)),
        price=prices.pop() if len(prices) == 1 else None,
        why=None,
    )


def _priced(stretch: Stretch) -> list[tuple[Price, int]] | str:
    """What a stretch costs, piece by piece, or why nobody can say."""
    prices = {run.started.price for run in stretch.runs if run.started.price}
    if not prices:
        return NO_PRICE
    if len(prices) == 1:
        return [(prices.pop(), stretch.length_us)]
    edges = sorted({t for run in stretch.runs for t in (run.started.started_us, end_of(run))})
    pieces: list[tuple[Price, int]] = []
    for start, stop in pairwise(edges):
        there = {
            run.started.price
            for run in stretch.runs
            if run.started.price and run.started.started_us < stop and end_of(run) > start
        }
        if len(there) != 1:
            told = " and ".join(sorted(price.text() for price in there)) or "no price"
            return f"its runs state {told} for the same time"
        pieces.append((there.pop(), stop - start))
    return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """All machines together in one currency; ``total`` and ``rate_per_us`` are None where ``why`` says.

    ``known`` is what is known of it in that currency, ``by_currency`` what stands in each.
    ``rates`` are those used.
    """

    hosts: tuple[HostCost, ...]
    currency: str
    total: Fraction | None
    known: Fraction | None
    by_currency: Mapping[str, Fraction]
    rates: tuple[ExchangeRate, ...]
    why: str | None
    per_us: Fraction | None


def currencies_of(job: Job) -> set[str]:
    """Every currency that a run of the job was priced in."""
    return {run.started.price.currency for run in job.runs if run.started.price}


def money_of(job: Job, rates: Callable[[str, set[str]], Mapping[str, ExchangeRate]]) -> Money:
    """What the job cost. ``rates`` gives recorded rates between a currency and others."""
    costs = tuple(host_cost(host) for host in job.hosts)
    by_currency: dict[str, Fraction] = {}
    for each in costs:
        if each.cost is not None and each.currency is not None:
            by_currency[each.currency] = by_currency.get(each.currency, Fraction(0)) + each.cost
    currency, used = _common(by_currency, rates)
    unknown = [each for each in costs if each.cost is None]
    strange = sorted(by_currency.keys() - used.keys() - {currency})
    why = None
    if strange:
        why = (
            f"no rate from {strange[0]} to {currency}: ouvrage fx set {strange[0]}/{currency} RATE"
        )
    elif unknown:
        why = f"the cost of {unknown[0].host.label} is not known: {unknown[0].why}"
    elif job.missing:
        why = missing_words(job)
    known = None if strange or not by_currency else _sum(by_currency, currency, used)
    return Money(
        hosts=costs,
        currency=currency,
        total=known if why is None else None,
        known=known,
        by_currency=by_currency,
        rates=tuple(used[key] for key in sorted(used)),
        why=why,
        per_us=_per_us(costs, currency, used) if why is None else None,
    )


def missing_words(job: Job) -> str:
    """``1 of 4 machines is not here (node 3)``."""
    which = f" (node {', '.join(map(str, job.missing_nodes))})" if job.missing_nodes else ""
    verb = "is" if job.missing == 1 else "are"
    return (
        f"{job.missing} of {job.nodes_stated} machines {verb} not here{which}: "
        "ouvrage run push there, ouvrage run import here"
    )


def _common(
    by_currency: Mapping[str, Fraction],
    rates: Callable[[str, set[str]], Mapping[str, ExchangeRate]],
) -> tuple[str, Mapping[str, ExchangeRate]]:
    """The currency of which most others can be turned into, by name where that leaves a choice."""
    names = sorted(by_currency)
    if len(names) < 2:
        return (names[0] if names else "1"), {}
    found = [(name, rates(name, set(names) - {name})) for name in names]
    return max(found, key=lambda pair: (len(pair[1]), -names.index(pair[0])))


def _sum(
    by_currency: Mapping[str, Fraction], currency: str, used: Mapping[str, ExchangeRate]
) -> Fraction:
    return sum(
        (amount * factor(used.get(name), currency) for name, amount in by_currency.items()),
        Fraction(0),
    )


def factor(rate: ExchangeRate | None, currency: str) -> Fraction:
    """By what an amount is multiplied to stand in a currency; 1 without a rate."""
    if rate is None:
        return Fraction(1)
    value = Fraction(rate.rate)
    return value if rate.quote == currency else 1 / value


def _per_us(
    costs: Iterable[HostCost], currency: str, used: Mapping[str, ExchangeRate]
) -> Fraction | None:
    """What all machines together cost in a microsecond, where each has one price."""
    total = Fraction(0)
    for each in costs:
        if each.price is None or each.currency is None:
            return None
        total += each.price.cost_of(1) * factor(used.get(each.currency), currency)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """The GPUs of a job: how many, their time, the part in which they worked, and their energy.

    ``held_us`` is each card's time in the job, ``busy`` the share of the sampled part in which a kernel
    ran. Energies are microjoules over ``covered_us`` of a greatest ``expected_us``.
    """

    count: int
    held_us: int
    busy: Fraction | None
    energy_uj: Fraction | None
    covered_us: Fraction
    expected_us: int


def cards_of(job: Job) -> Cards:
    """Every card once, however many ranks saw it: by the run that read it longest."""
    names: set[tuple[str, str]] = set()
    held = 0
    busy = sampled = covered = Fraction(0)
    energy: Fraction | None = None
    for host in job.hosts:
        for stretch in host.stretches:
            uses = _uses(stretch.runs)
            names |= {(host.host, key) for key in uses}
            held += len(uses) * stretch.length_us
            for use in uses.values():
                if use.busy is not None:
                    busy, sampled = busy + use.busy * use.covered_us, sampled + use.covered_us
                if use.energy is not None:
                    energy = (energy or Fraction(0)) + use.energy.uj
                    covered += use.energy.covered_us
    return Cards(
        count=len(names),
        held_us=held,
        busy=busy / sampled if sampled else None,
        energy_uj=energy,
        covered_us=covered,
        expected_us=held,
    )


def _uses(runs: Iterable[RunView]) -> dict[str, DeviceUse]:
    found: dict[str, DeviceUse] = {}
    for run in runs:
        for use in device_uses(run, 0, run.wall_us):
            key = use.device.uuid or use.device.pci or str(use.device.index)
            if key not in found or use.covered_us > found[key].covered_us:
                found[key] = use
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnergy:
    """What the machines' own meters of one sort counted, over ``covered_us`` of all their time."""

    uj: Fraction
    covered_us: Fraction
    hosts: int


def metered(job: Job, kind: str) -> HostEnergy | None:
    """The meters of one sort (``rapl``, ``wall``) of every machine, each once; None where none told."""
    total = covered = Fraction(0)
    hosts: set[str] = set()
    for host in job.hosts:
        for stretch in host.stretches:
            best = _longest([metered_energy(run, kind, 0, run.wall_us) for run in stretch.runs])
            if best is not None:
                total, covered = total + best.uj, covered + best.covered_us
                hosts.add(host.host)
    return HostEnergy(uj=total, covered_us=covered, hosts=len(hosts)) if hosts else None


def _longest(found: Sequence[Energy | None]) -> Energy | None:
    known = [energy for energy in found if energy is not None]
    return max(known, key=lambda energy: energy.covered_us, default=None)


def time_here(job: Job) -> int:
    """Machine-time of the job that is known."""
    return sum(host.length_us for host in job.hosts)


def coverage(job: Job, covered: Fraction, expected: int) -> Fraction | None:
    """Share of everything that a figure stands for: of the time here, and of the machines stated."""
    if not expected:
        return None
    here = Fraction(job.nodes_here, job.nodes_here + job.missing) if job.missing else Fraction(1)
    return min(Fraction(1), covered / expected) * here
