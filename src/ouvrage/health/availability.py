"""Whether a machine was there when it was needed: availability, time between faults, time to repair, credits.

Decides that a sick GPU is down, whether or not its machine answers; that silence is neither up nor down, so that
availability lies between two bounds; and that planned maintenance is counted apart. What credit a promise implies
follows from the measured part; what silence could add stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

DOWN = frozenset({"fenced", "draining", "repairing", "verifying", "awaiting_hands", "rma"})
_ORDER = ("down", "maintenance", "unknown", "up")

RUNPOD_BUFFER_US = 10 * 60_000_000
"""RunPod's published formula (docs, maintenance and reliability) forgives ten minutes in thirty days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A node (``device`` None) or a device in one state, from a moment to another, half-open. ``id``: the move's fact."""

    device: str | None
    state: str
    from_us: int
    to_us: int
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """One device's time in a period, in microseconds: the four add up to the period.

    ``faults`` are the times it went down. Means are None where there was no fault to divide by.
    """

    device: str
    up_us: int
    down_us: int
    maintenance_us: int
    unknown_us: int
    faults: int
    evidence: tuple[str, ...]

    @property
    def least(self) -> Fraction | None:
        """The share of time up, maintenance left out and silence taken as down; None for no time at all."""
        return _share(self.up_us, self.up_us + self.down_us + self.unknown_us)

    @property
    def most(self) -> Fraction | None:
        """The same with silence taken as up."""
        return _share(self.up_us + self.unknown_us, self.up_us + self.down_us + self.unknown_us)

    @property
    def between_faults_us(self) -> Fraction | None:
        """Mean time between faults: time up, for each fault."""
        return _share(self.up_us, self.faults)

    @property
    def to_repair_us(self) -> Fraction | None:
        """Mean time to repair: time down, for each fault."""
        return _share(self.down_us, self.faults)


def _share(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None


def sort_of(state: str) -> str:
    """Up, down, maintenance or unknown; what is retired is out of service on purpose, as in maintenance."""
    if state in DOWN:
        return "down"
    if state in ("maintenance", "retired"):
        return "maintenance"
    return "unknown" if state == "unknown" else "up"


def availability(device: str, stays: Iterable[Stay], from_us: int, to_us: int) -> Availability:
    """A device's time in a period. Its node's states count for it; where nothing is told, it is unknown."""
    mine = [
        s for s in stays if s.device in (None, device) and s.to_us > from_us and s.from_us < to_us
    ]
    edges = sorted(
        {
            from_us,
            to_us,
            *(max(s.from_us, from_us) for s in mine),
            *(min(s.to_us, to_us) for s in mine),
        }
    )
    times: dict[str, int] = dict.fromkeys(_ORDER, 0)
    faults, before, evidence = 0, "", dict[str, None]()
    for begin, end in pairwise(edges):
        covering = [s for s in mine if s.from_us <= begin and s.to_us >= end]
        sort = _worst(covering)
        times[sort] += end - begin
        if sort == "down":
            faults += before != "down"
            evidence.update((s.id, None) for s in covering if s.id and sort_of(s.state) == "down")
        before = sort
    return Availability(
        device=device,
        up_us=times["up"],
        down_us=times["down"],
        maintenance_us=times["maintenance"],
        unknown_us=times["unknown"],
        faults=faults,
        evidence=tuple(evidence),
    )


def _worst(covering: Sequence[Stay]) -> str:
    sorts = {sort_of(stay.state) for stay in covering}
    return next((sort for sort in _ORDER if sort in sorts), "unknown")


def runpod_reliability(total_us: int, down_us: int) -> Fraction:
    """RunPod's published score: (total - down + 10 minutes) / total, 1 at most."""
    return min(Fraction(1), Fraction(total_us - down_us + RUNPOD_BUFFER_US, total_us))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Below this share of availability, so many percent of the price are credited."""

    below: Fraction
    percent: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What a promise implies: the credit that is sure, what it is if silence was down, and the moves that say so."""

    percent: Fraction
    at_most: Fraction
    evidence: tuple[str, ...]


def credit(found: Availability, tiers: Sequence[Tier]) -> Credit:
    """The credit for one device's period under a promise; none where no time was asked for."""
    return Credit(
        percent=_credited(found.most, tiers),
        at_most=_credited(found.least, tiers),
        evidence=found.evidence,
    )


def _credited(share: Fraction | None, tiers: Sequence[Tier]) -> Fraction:
    if share is None:
        return Fraction(0)
    return max((tier.percent for tier in tiers if share < tier.below), default=Fraction(0))
