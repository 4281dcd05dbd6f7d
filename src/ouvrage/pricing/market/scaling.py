"""A measured unit carried to another configuration: a model, and it says so.

Each place where time went is bounded by one part of a machine, and is scaled by the ratio of that part
there and here: computing by the GPU, waiting for data and for a core by the vCPUs, the rest by parts
that listings do not state. What is not known makes the range wider and never the likely time better.
On the very configuration of a timing nothing is scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import significant
from ouvrage.metering.timeuse import KEYS
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.gpus import speed
from ouvrage.pricing.market.profile import Configuration, Profile, Timing

ONE = Fraction(1)
CORE = Fraction(5, 4)
"""A vCPU elsewhere may be this much faster or slower: an assumption."""
WIDE = Fraction(2)
"""What is bounded by a part that nobody states may take half or twice as long: an assumption."""
_CPU = ("waiting_cpu", "waiting_data", "throttled")
_SEEN = Fraction(9, 10)

PARTS = {
    "computing": "GPU",
    "waiting_data": "CPU",
    "waiting_cpu": "CPU",
    "throttled": "CPU",
    "waiting_storage": "disk",
    "waiting_network": "network",
    "waiting_memory": "memory",
    "unknown": "unknown",
    "communication": "interconnect",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A low, a likely and a high."""

    low: Fraction
    likely: Fraction
    high: Fraction

    def times(self, low: Fraction, likely: Fraction, high: Fraction) -> Span:
        """Each end by its own factor."""
        return Span(self.low * low, self.likely * likely, self.high * high)


@dataclass(frozen=True, slots=True)
class Term:
    """One place of a unit's time on the other configuration, and by which rule."""

    key: str
    seconds: Span
    because: str


@dataclass(frozen=True, slots=True)
class Carried:
    """Seconds for one unit on an offer, the terms they are made of, and how much they are worth.

    ``parts`` holds the likely seconds by place, as far as they are known.
    """

    seconds: Span
    terms: tuple[Term, ...]
    grade: Grade
    said_by: str
    bottleneck: str
    parts: Mapping[str, Fraction]

    @property
    def scaled(self) -> bool:
        """Whether a model stands between the timing and this."""
        return bool(self.terms)


def configuration_of(offer: MarketOffer) -> Configuration:
    """An offer's machine."""
    return Configuration(
        name=offer.name,
        provider=offer.provider,
        gpu=offer.gpu,
        gpus=Fraction(offer.gpus),
        vcpus=None if offer.vcpus is None else Fraction(offer.vcpus),
        memory_mib=None if offer.memory_mib is None else Fraction(offer.memory_mib),
    )


def carried(profile: Profile, offer: MarketOffer, stated: Timing | None = None) -> Carried | None:
    """The time of a unit on an offer; None where the speed of its GPU is not known.

    ``stated`` is what the offer's own row says about this work.
    """
    there = configuration_of(offer)
    timings = [*([stated] if stated else []), profile.timing, *profile.others]
    found = next((t for t in timings if t is stated or same(t.on, there)), None)
    if found is not None:
        return _as_timed(profile, found)
    terms = scaled_terms(profile, there, offer.interconnect_gb_s)
    return None if terms is None else _of_terms(profile, terms)


def _as_timed(profile: Profile, timing: Timing) -> Carried:
    span = Span(timing.low, timing.likely, timing.high)
    parts = profile.terms if timing is profile.timing else {}
    bottleneck = _part(_largest(parts.items()), timing.on)
    return Carried(span, (), timing.grade, timing.said_by, bottleneck, parts)


def _of_terms(profile: Profile, terms: list[Term]) -> Carried:
    total = Span(
        sum((t.seconds.low for t in terms), Fraction(0)),
        sum((t.seconds.likely for t in terms), Fraction(0)),
        sum((t.seconds.high for t in terms), Fraction(0)),
    )
    low = profile.timing.low / profile.timing.likely if profile.timing.likely else ONE
    high = profile.timing.high / profile.timing.likely if profile.timing.likely else ONE
    parts = {term.key: term.seconds.likely for term in terms}
    return Carried(
        total.times(low, ONE, high),
        tuple(terms),
        weakest((Grade.ASSUMED, profile.timing.grade)),
        f"scaled from {profile.timing.said_by}",
        _part(_largest(parts.items()), profile.on),
        parts,
    )


def _largest(terms: Iterable[tuple[str, Fraction]]) -> str:
    return max(terms, key=lambda pair: pair[1], default=("unknown", Fraction(0)))[0]


def _part(key: str, on: Configuration) -> str:
    return "CPU" if key == "computing" and on.gpus == 0 else PARTS[key]


def slowed_by(slower: Carried, faster: Carried, on: Configuration) -> str | None:
    """The part that costs the slower one most against the faster one; None where nobody knows."""
    more = {
        key: seconds - faster.parts.get(key, Fraction(0))
        for key, seconds in slower.parts.items()
        if key != "unknown" and faster.parts
    }
    key = _largest(more.items())
    return _part(key, on) if more.get(key, Fraction(0)) > 0 else None


def same(on: Configuration, there: Configuration) -> bool:
    """Whether a timing's configuration is this very one.

    A machine shows a little less memory than is sold; GPU, their number and vCPUs must agree.
    """
    if on.name is not None and on.name == there.name and on.provider in (None, there.provider):
        return True
    if on.gpu != there.gpu or on.gpus != there.gpus or on.vcpus != there.vcpus:
        return False
    if on.vcpus is None or on.gpus is None:
        return False
    if on.memory_mib is None or there.memory_mib is None:
        return on.memory_mib == there.memory_mib
    smaller, larger = sorted((on.memory_mib, there.memory_mib))
    return smaller >= larger * _SEEN


def scaled_terms(
    profile: Profile, there: Configuration, interconnect: str | None
) -> list[Term] | None:
    """Every term of a unit on another configuration, or None where its GPU's speed is not known."""
    gpu = _gpu_factors(profile.on, there)
    if gpu is None:
        return None
    cores = _cores(profile.on, there)
    computing = _computing(profile, there, gpu, interconnect)
    terms: list[Term] = []
    for key in KEYS:
        seconds = profile.terms.get(key, Fraction(0))
        if not seconds:
            continue
        if key == "computing":
            terms += computing
        elif key in _CPU:
            terms.append(_cpu_term(key, seconds, cores, _slack(profile, key, computing)))
        else:
            likely = gpu[1] if key == "unknown" else ONE
            low, high = min(ONE, gpu[0]) / WIDE, max(ONE, gpu[2]) * WIDE
            if key != "unknown":
                low, high = ONE / WIDE, WIDE
            span = Span(seconds, seconds, seconds).times(low, likely, high)
            terms.append(Term(key, span, f"bounded by the {PARTS[key]}, which nobody states"))
    return terms


Factors = tuple[Fraction, Fraction, Fraction]


def _gpu_factors(on: Configuration, there: Configuration) -> Factors | None:
    """By what the time on a GPU is to be multiplied: low, likely, high."""
    if on.gpus == 0:
        return _core_factors(on, there)
    if on.gpu is None:
        return (ONE / WIDE, ONE, WIDE)
    if there.gpu is None:
        return None
    known = speed(on.gpu, there.gpu)
    if known is None:
        return None
    least, most = known
    return (1 / most, (1 / most + 1 / least) / 2, 1 / least)


def _core_factors(on: Configuration, there: Configuration) -> Factors:
    """The same for work that computes on the CPU: fewer cores cost time, more are no sure gain."""
    cores = _cores(on, there)
    if cores is None:
        return (ONE / WIDE, ONE, WIDE)
    fewer = max(ONE, 1 / cores)
    return (min(ONE, 1 / cores) / CORE, fewer, fewer * CORE)


def _cores(on: Configuration, there: Configuration) -> Fraction | None:
    """How many times as many vCPUs there are there; None where either is not known."""
    if not on.vcpus or not there.vcpus:
        return None
    return there.vcpus / on.vcpus


def _computing(
    profile: Profile, there: Configuration, gpu: Factors, interconnect: str | None
) -> list[Term]:
    seconds = profile.terms.get("computing", Fraction(0))
    if not seconds:
        return []
    count, words = _count(profile, there, interconnect)
    span = Span(seconds, seconds, seconds).times(*gpu).times(1 / count, 1 / count, 1 / count)
    terms = [Term("computing", span, f"{_gpu_words(profile.on, there)}{words}")]
    exchange = profile.moves.exchange_gb
    if count > 1 and interconnect is not None and exchange is not None:
        moved = exchange * 2 * (count - 1) / count / Fraction(interconnect)
        because = (
            f"{significant(exchange, 3)} GB a unit around a ring at {interconnect} GB/s measured"
        )
        terms.append(Term("communication", Span(moved, moved, moved * WIDE), because))
    return terms


def _count(
    profile: Profile, there: Configuration, interconnect: str | None
) -> tuple[Fraction, str]:
    """How many times as many GPUs count, and why."""
    here, now = profile.on.gpus or ONE, there.gpus or ONE
    if now <= here or profile.on.gpus == 0:
        return (now / here if profile.on.gpus else ONE), ""
    if interconnect is None or not Fraction(interconnect) or profile.moves.exchange_gb is None:
        return ONE, f"; {significant(now, 3)} GPUs, no gain without evidence of their interconnect"
    return now / here, f"; shared by {significant(now, 3)} GPUs"


def _gpu_words(on: Configuration, there: Configuration) -> str:
    if on.gpus == 0:
        return "bounded by the CPU: vCPUs there and here"
    if on.gpu is None:
        return "bounded by the GPU, and nobody says which it was"
    if on.gpu == there.gpu:
        return "bounded by the GPU: the same model"
    return f"bounded by the GPU: peak rates of {there.gpu} and {on.gpu}"


def _slack(profile: Profile, key: str, computing: list[Term]) -> tuple[Fraction, Span]:
    """A loader's work for a unit, and the computing under which it hides there."""
    if key != "waiting_data":
        return Fraction(0), Span(ONE, ONE, ONE)
    work = profile.terms.get("computing", Fraction(0)) + profile.terms[key]
    low = sum((term.seconds.low for term in computing), Fraction(0))
    high = sum((term.seconds.high for term in computing), Fraction(0))
    return work, Span(low, low, high)


def _cpu_term(
    key: str, seconds: Fraction, cores: Fraction | None, slack: tuple[Fraction, Span]
) -> Term:
    if cores is None:
        wide = Span(seconds / WIDE, seconds, seconds * WIDE)
        return Term(key, wide, "bounded by the CPU, and vCPUs are not stated")
    likely = seconds / cores
    low, high = min(seconds, likely) / CORE, max(seconds, likely) * CORE
    work, hidden = slack
    if work:
        # A loader that works while the model computes: what it cannot hide is waited for.
        low = min(low, max(Fraction(0), work / cores / CORE - hidden.high))
        high = max(high, work / cores - hidden.low)
    because = f"bounded by the CPU: {significant(cores, 3)} times the vCPUs"
    return Term(key, Span(low, likely, high), because)
