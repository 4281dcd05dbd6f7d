"""A cluster's own billing units beside real prices: where the two split a bill differently among accounts, and why.

Decides that units are worth what makes both totals the same, so that only the split is compared, and that every difference is taken apart
until nothing is left: units given for cores, for memory, for GPUs in partitions of unlike weight, units that the weights of today do
not make, and what the rate plan rounds. Weights are those of https://slurm.schedmd.com/slurm.conf.html (TRESBillingWeights).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.numbers import NANO, number
from ouvrage.base.time import HOUR
from ouvrage.books.cluster_jobs import Attempt
from ouvrage.books.fleet.bill import Billed, rate_of
from ouvrage.books.fleet.record import Fleet

GPUS, CORES, MEMORY, OTHER, ROUNDED = "GPUs", "cores", "memory", "other", "rounding"
WORDS = {
    GPUS: "GPUs weigh unlike their prices",
    CORES: "units for cores, which cost nothing beside a GPU",
    MEMORY: "units for memory, which costs nothing",
    OTHER: "units cut to whole ones, or by weights of another day",
    ROUNDED: "what the rate plan rounds or does not charge",
}
_SCALE = {
    "": Fraction(1),
    "K": Fraction(1, 1024),
    "M": Fraction(1),
    "G": Fraction(1024),
    "T": Fraction(1024**2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One tenant: unit-hours of billing, their ``worth`` and the real charges in nano-units, and the difference by part.

    ``parts`` add up to charges less worth, exactly.
    """

    tenant: str
    unit_hours: Fraction
    worth: Fraction
    charged: int
    parts: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """Every tenant's split, what one unit-hour is worth in nano-units, and how many jobs have no units."""

    worth_of_unit: Fraction
    splits: tuple[Split, ...]
    without: int


def weighed(fleet: Fleet, attempts: Iterable[Attempt], found: Billed) -> Weighed | None:
    """The comparison over jobs that have both a price and billing units; None where there is none."""
    kept = [
        a
        for a in attempts
        if a.name in found.nano and fleet.use(a).billing is not None and a.run_us
    ]
    without = sum(a.name in found.nano and fleet.use(a).billing is None for a in attempts)
    units = {a.name: Fraction((fleet.use(a).billing or 0) * (a.run_us or 0), HOUR) for a in kept}
    total = sum(units.values(), Fraction(0))
    if not total:
        return None
    worth = Fraction(sum(found.nano[a.name] for a in kept)) / total
    groups: dict[str, list[Attempt]] = {}
    for each in kept:
        groups.setdefault(fleet.tenant(each.account), []).append(each)
    splits = tuple(
        _split(fleet, tenant, ours, units, found, worth) for tenant, ours in sorted(groups.items())
    )
    return Weighed(worth_of_unit=worth, splits=splits, without=without)


def _split(
    fleet: Fleet,
    tenant: str,
    ours: Iterable[Attempt],
    units: Mapping[str, Fraction],
    found: Billed,
    worth: Fraction,
) -> Split:
    parts: dict[str, Fraction] = dict.fromkeys(WORDS, Fraction(0))
    charged, hours = 0, Fraction(0)
    for each in ours:
        exact = _exact(fleet, each)
        made = parts_of(fleet, each)
        for name, hours_made in made.items():
            parts[name] -= hours_made * worth
        parts[OTHER] -= (units[each.name] - sum(made.values(), Fraction(0))) * worth
        parts[GPUS if each.gpus else CORES] += exact
        parts[ROUNDED] += found.nano[each.name] - exact
        charged += found.nano[each.name]
        hours += units[each.name]
    return Split(tenant=tenant, unit_hours=hours, worth=hours * worth, charged=charged, parts=parts)


def _exact(fleet: Fleet, attempt: Attempt) -> Fraction:
    """What an attempt costs by its price alone, before any rule of the plan, in nano-units."""
    rate = rate_of(fleet, attempt)
    count = attempt.gpus or attempt.known.value.cpus or 0
    return (
        Fraction(0)
        if rate is None
        else number(rate.rate) * count * (attempt.run_us or 0) / HOUR * NANO
    )


def parts_of(fleet: Fleet, attempt: Attempt) -> dict[str, Fraction]:
    """Unit-hours that the weights of an attempt's partition give it, by what they are for."""
    partition = fleet.partitions.get(attempt.partition or "")
    weights = weights_of(partition.weights if partition else "")
    mebibytes = Fraction(fleet.use(attempt).memory_kib or 0, 1024)
    hours = Fraction(attempt.run_us or 0, HOUR)
    return {
        GPUS: weights.get("gres/gpu", Fraction(0)) * (attempt.gpus or 0) * hours,
        CORES: weights.get("cpu", Fraction(0) if weights else Fraction(1))
        * (attempt.known.value.cpus or 0)
        * hours,
        MEMORY: weights.get("mem", Fraction(0)) * mebibytes * hours,
    }


def weights_of(text: str) -> dict[str, Fraction]:
    """``CPU=1.0,Mem=0.25G,GRES/gpu=10.0`` by resource: per core, per mebibyte, per GPU. Without any, a core is a unit."""
    found: dict[str, Fraction] = {}
    for each in text.split(","):
        name, _, value = each.partition("=")
        read = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)([KMGT]?)", value.strip())
        if read is not None:
            found[name.strip().lower()] = number(read[1]) / _SCALE[read[2]]
    return found
