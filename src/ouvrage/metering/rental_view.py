"""One rental as the facts in force tell it, and how its time divides among runs and waiting.

Decides which runs stood on the rented machine (those of its source, and those named one by one) and
that every microsecond paid for is either ``working``, with a run on it, or ``held``, with none.
Several runs at once share the time that they overlap evenly. Runs know their own clock and a rental
the clock of whoever stated it; a run is counted in as far as it lies inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.ids import code_of
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.metering.run_view import RunView, price_fault
from ouvrage.model.rentals import (
    RentalAlarm,
    RentalCampaign,
    RentalEnded,
    RentalRun,
    RentalStarted,
)

RENTAL_KINDS = tuple(
    kind.KIND for kind in (RentalStarted, RentalEnded, RentalRun, RentalCampaign, RentalAlarm)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalView:
    """Everything known about one rental; ``ended_us`` is None while it is paid for.

    ``runs`` are those named one by one, ``alarms`` the ids of what was told already. ``keys`` are
    those of its start, and of its end where it has one.
    """

    rental: str
    started: RentalStarted
    ended_us: int | None
    end_key: str | None
    runs: frozenset[str]
    campaigns: tuple[str, ...]
    alarms: frozenset[str]
    keys: tuple[str, ...]
    grade: Grade

    @property
    def code(self) -> str:
        """The short code shown for the rental."""
        return code_of(self.rental)

    @property
    def name(self) -> str:
        """What it is called: its label, else its code."""
        return self.started.label or self.code

    def until(self, as_of: int) -> int:
        """The end of what is paid for, as far as ``as_of``; never before its start."""
        end = as_of if self.ended_us is None else min(self.ended_us, as_of)
        return max(end, self.started.started_us)

    def holds(self, run: str, source: str) -> bool:
        """Whether a run of this source stood on the machine, if it ran while it was paid for."""
        return run in self.runs or source == self.started.machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A run on the machine, in microseconds UTC; ``grade`` is the run's own."""

    run: str
    from_us: int
    to_us: int
    grade: Grade = Grade.MEASURED


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalTime:
    """How the paid time divides. ``shares`` holds each run's part of ``working_us``, exactly.

    ``before_us`` is held before the first run (boot, download), ``between_us`` between runs,
    ``after_us`` after the last (forgotten hours). Without a run all of it is ``before_us``.
    """

    from_us: int
    to_us: int
    working_us: int
    before_us: int
    between_us: int
    after_us: int
    shares: Mapping[str, Fraction]

    @property
    def paid_us(self) -> int:
        """All of it."""
        return self.to_us - self.from_us

    @property
    def held_us(self) -> int:
        """Paid for, and nothing ran."""
        return self.before_us + self.between_us + self.after_us


def rental_views(records: Iterable[Recorded]) -> dict[str, RentalView]:
    """The rentals that these records tell of, by id, in order of their start."""
    by_rental: dict[str, list[tuple[Recorded, Any]]] = {}
    for entry in in_force(records):
        if entry.fact.kind in RENTAL_KINDS:
            by_rental.setdefault(entry.fact.subject, []).append((entry, read(entry.fact)))
    views = [_view(rental, entries) for rental, entries in by_rental.items()]
    found = [view for view in views if view is not None]
    found.sort(key=lambda view: (view.started.started_us, view.rental))
    return {view.rental: view for view in found}


def _view(rental: str, entries: Sequence[tuple[Recorded, Any]]) -> RentalView | None:
    starts = [
        (e, v) for e, v in entries if isinstance(v, RentalStarted) and not price_fault(v.price)
    ]
    if not starts:
        return None
    ends = [(e, v) for e, v in entries if isinstance(v, RentalEnded)]
    end = max(ends, key=lambda pair: (pair[0].fact.id, pair[0].fact.source)) if ends else None
    used = [starts[0][0], *([end[0]] if end else [])]
    return RentalView(
        rental=rental,
        started=starts[0][1],
        ended_us=end[1].ended_us if end else None,
        end_key=end[0].fact.key if end else None,
        runs=frozenset(v.run for _, v in entries if isinstance(v, RentalRun)),
        campaigns=tuple(sorted({v.campaign for _, v in entries if isinstance(v, RentalCampaign)})),
        alarms=frozenset(v.alarm for _, v in entries if isinstance(v, RentalAlarm)),
        keys=tuple(entry.fact.key for entry in used),
        grade=weakest(entry.fact.grade for entry in used),
    )


def end_of(view: RunView) -> int:
    """The moment at which a run ended, by its own clock."""
    return view.started.started_us + view.wall_us


def stay_of(view: RunView) -> Stay:
    """A run as time spent on a machine."""
    return Stay(run=view.run, from_us=view.started.started_us, to_us=end_of(view), grade=view.grade)


def rental_time(from_us: int, to_us: int, stays: Iterable[Stay]) -> RentalTime:
    """Divide the paid time from one moment to another among the runs that stood on the machine."""
    inside = [stay for stay in (_clipped(s, from_us, to_us) for s in stays) if stay is not None]
    shares: dict[str, Fraction] = {stay.run: Fraction(0) for stay in inside}
    first = min((stay.from_us for stay in inside), default=to_us)
    last = max((stay.to_us for stay in inside), default=to_us)
    edges = sorted({moment for stay in inside for moment in (stay.from_us, stay.to_us)})
    working = between = 0
    for begin, end in pairwise(edges):
        there = [stay.run for stay in inside if stay.from_us <= begin and end <= stay.to_us]
        for run in there:
            shares[run] += Fraction(end - begin, len(there))
        working += end - begin if there else 0
        between += 0 if there else end - begin
    return RentalTime(
        from_us=from_us,
        to_us=to_us,
        working_us=working,
        before_us=first - from_us,
        between_us=between,
        after_us=to_us - last,
        shares=shares,
    )


def _clipped(stay: Stay, from_us: int, to_us: int) -> Stay | None:
    begin, end = max(stay.from_us, from_us), min(stay.to_us, to_us)
    if begin >= end:
        return None
    return Stay(run=stay.run, from_us=begin, to_us=end, grade=stay.grade)
