"""Energy stated for short intervals, or power sampled from time to time, by the hour.

Decides how rows without a counter add up: each hour is one statement with the share of it that stands on
rows. Power holds until the next sample where that came soon enough; what lies between is no energy and
no cover. Two files that each know a part of an hour are added; where they overlap, the fuller counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.adapters.feeds.counters import Meter, energy_stated
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.grades import Grade
from ouvrage.base.time import HOUR, SECOND
from ouvrage.ledger.stated import Stated
from ouvrage.model.meters import EnergyRead


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Energy in joules of a period, as a row states it or as power times time."""

    from_us: int
    to_us: int
    joules: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Watts at a moment, and where that stands in a file."""

    at_us: int
    watts: Fraction
    place: str


def pieces_of(samples: Sequence[Power], limit_us: int) -> list[Piece]:
    """Power times the time until the next sample, where that is not further than ``limit_us``."""
    ordered = sorted(samples, key=lambda each: each.at_us)
    return [
        Piece(
            from_us=now.at_us,
            to_us=after.at_us,
            joules=now.watts * (after.at_us - now.at_us) / SECOND,
        )
        for now, after in itertools.pairwise(ordered)
        if 0 < after.at_us - now.at_us <= limit_us
    ]


def by_hour(
    meter: Meter, pieces: Iterable[Piece], known: Iterable[Stated], method: str, told: Told
) -> list[Stated]:
    """One statement for each hour touched, together with what is recorded of it."""
    hours: dict[int, list[Piece]] = {}
    for piece in pieces:
        for hour, part in _cut(piece):
            hours.setdefault(hour, []).append(part)
    before = {each.natural: each for each in known}
    found: list[Stated] = []
    for hour, parts in sorted(hours.items()):
        new = _hour(meter, hour, parts, method)
        held = before.get(new.natural)
        found.append(new if held is None else _joined(held, new, told))
    return found


def _cut(piece: Piece) -> Iterable[tuple[int, Piece]]:
    at = piece.from_us
    while at < piece.to_us:
        end = min(piece.to_us, (at // HOUR + 1) * HOUR)
        share = Fraction(end - at, piece.to_us - piece.from_us)
        yield at // HOUR, Piece(from_us=at, to_us=end, joules=piece.joules * share)
        at = end


def _hour(meter: Meter, hour: int, parts: Sequence[Piece], method: str) -> Stated:
    value = EnergyRead(
        meter=meter.name,
        about=meter.about,
        scope=meter.scope,
        energy_j=round(sum((part.joules for part in parts), Fraction(0))),
        method=method,
        covered_us=sum(part.to_us - part.from_us for part in parts),
    )
    period = (min(p.from_us for p in parts), max(p.to_us for p in parts))
    return energy_stated(meter, f"hour/{hour}", value, period, Grade.MEASURED)


def _joined(held: Stated, new: Stated, told: Told) -> Stated:
    """Two statements of one hour as one."""
    ends = (held.valid_to or held.valid_from, new.valid_to or new.valid_from)
    if ends[0] <= new.valid_from or ends[1] <= held.valid_from:
        value = EnergyRead(
            meter=new.value.meter,
            about=new.value.about,
            scope=new.value.scope,
            energy_j=held.value.energy_j + new.value.energy_j,
            method=new.value.method,
            covered_us=held.value.covered_us + new.value.covered_us,
        )
        start = min(held.valid_from, new.valid_from)
        return Stated(
            natural=new.natural,
            value=value,
            subject=new.subject,
            valid_from=start,
            valid_to=max(ends),
            grade=new.grade,
        )
    if held.value.covered_us > new.value.covered_us:
        return held
    if held.id != new.id:
        told.note("hours that two files state: the fuller one counts")
    return new
