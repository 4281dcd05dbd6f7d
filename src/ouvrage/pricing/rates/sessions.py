"""Usage under one rule: the stretches of time in which a resource's meter ran.

Decides, from events and the rule's meter and states, when it ran, at which level and with which
multiplier of the price. What ran at the end of the file needs an end from the caller: a meter that
nobody stopped is not free, and is not guessed either. Rounding comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.pricing.rates.plan import LIFECYCLE, Meter, Rule, Version
from ouvrage.pricing.rates.quantity import Rate, converted
from ouvrage.pricing.rates.usage import Resource, Row, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A period with one level and one multiplier. It may be empty: a start that lasted no time."""

    start: int
    end: int
    level: Fraction
    weight: Fraction

    @property
    def us(self) -> int:
        """How long it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One stretch without interruption. ``begins``: it started here and goes on from nothing."""

    resource: str
    rule: str = ""
    segments: tuple[Segment, ...]
    begins: bool = True

    @property
    def start(self) -> int:
        """Its first moment."""
        return self.segments[0].start

    @property
    def end(self) -> int:
        """The moment after its last."""
        return self.segments[-1].end

    @property
    def us(self) -> int:
        """How long it ran; cuts leave no holes inside."""
        return self.end - self.start


def amount_in(usage: Usage, row: Row, rate: Rate, gb: int) -> Fraction:
    """A row's quantity in the unit of a rate, or a refusal that names the row."""
    assert row.quantity is not None
    assert row.unit is not None
    if rate.unit is None:
        return row.quantity
    found = converted(row.quantity, row.unit, rate.unit, gb)
    if found is None:
        raise OuvrageError(
            "usage/unit",
            f"{row.resource}: {row.event} is in {row.unit}, and its price is for {rate.unit}",
            where=(usage.where(row),),
            hint=f"write the quantity in {rate.unit}, or in a unit that converts into it",
        )
    return found


class _Walk:
    """The meter of one resource, event by event."""

    def __init__(self, meter: Meter, counted: bool) -> None:
        self.meter = meter
        self.counted = counted
        self.on = not meter.starts
        self.state: str | None = None
        self.levels: dict[str, Fraction] = {}
        self.at = 0
        self.segments: list[Segment] = []
        self.found: list[tuple[Segment, ...]] = []

    @property
    def level(self) -> Fraction:
        return sum(self.levels.values(), Fraction(0)) if self.counted else Fraction(1)

    @property
    def running(self) -> bool:
        return self.on and self.level > 0 and self.meter.weight(self.state) > 0

    def event(self, row: Row) -> None:
        """The state after an event of the lifecycle."""
        self.state = row.event
        if row.event in self.meter.starts:
            self.on = True
        elif row.event in self.meter.stops or row.event == "terminated":
            self.on = False
        elif not self.meter.starts:
            self.on = True
        if row.event == "terminated":
            self.levels.clear()

    def step(self, row: Row, level: Fraction | None) -> None:
        """Close what lasted until this row, then take it in."""
        before = self.running
        self._close(row.at, before)
        if level is None:
            self.event(row)
        else:
            self.levels[row.event] = level
            self.on = self.on or not self.meter.starts
        if before and not self.running:
            self._finish()

    def _close(self, at: int, running: bool) -> None:
        if running:
            segment = Segment(
                start=self.at, end=at, level=self.level, weight=self.meter.weight(self.state)
            )
            self.segments.append(segment)
        self.at = at

    def _finish(self) -> None:
        self.found.append(tuple(_joined(self.segments)))
        self.segments = []

    def end(self, until: int) -> None:
        """Close what still runs."""
        self._close(until, self.running)
        self._finish()


def _joined(segments: list[Segment]) -> list[Segment]:
    """Neighbours that differ in nothing, as one; empty ones only where there is no other."""
    kept = [each for each in segments if each.us] or segments[:1]
    found: list[Segment] = []
    for each in kept:
        last = found[-1] if found else None
        if last and (last.level, last.weight) == (each.level, each.weight):
            found[-1] = replace(last, end=each.end)
        else:
            found.append(each)
    return found


def sessions(
    usage: Usage, resource: Resource, rule: Rule, version: Version, until: int | None
) -> list[Session]:
    """The sessions of a resource under a rule whose price is per time."""
    form = rule.form
    assert form is not None
    walk = _Walk(rule.meter, bool(rule.of))
    if rule.meter.starts and rule.of:
        walk.levels = _first_levels(usage, resource, rule, form, version.gb)
    for row in resource.rows:
        if row.event in LIFECYCLE:
            walk.step(row, None)
        elif row.event in rule.of and row.quantity is not None:
            walk.step(row, amount_in(usage, row, form, version.gb))
    if walk.running:
        walk.end(_end_of(usage, resource, rule, until))
    return [Session(resource=resource.name, rule=rule.name, segments=each) for each in walk.found]


def _first_levels(
    usage: Usage, resource: Resource, rule: Rule, form: Rate, gb: int
) -> dict[str, Fraction]:
    """What a machine is made of, stated once, holds from its beginning wherever the row stands."""
    first: dict[str, Fraction] = {}
    for row in resource.rows:
        if row.event in rule.of and row.quantity is not None and row.event not in first:
            first[row.event] = amount_in(usage, row, form, gb)
    started = any(row.event in rule.meter.starts for row in resource.rows)
    if started and not first:
        raise OuvrageError(
            "usage/missing-quantity",
            f"{resource.name}: {rule.name} is priced per {form.unit or rule.of[0]}, "
            "and no row says how many",
            where=(f"{usage.file}   {resource.name}",),
            hint=f"add a row: {resource.name},{rule.of[0]},TIME,NUMBER,{form.unit or 'piece'}",
        )
    return first


def _end_of(usage: Usage, resource: Resource, rule: Rule, until: int | None) -> int:
    last = resource.rows[-1]
    if until is None:
        raise OuvrageError(
            "usage/open",
            f"{resource.name} is still metered by {rule.name} after the last row",
            where=(usage.where(last),),
            hint="add the row that ends it, or say how far to rate with --until TIME",
        )
    if until < last.at:
        raise OuvrageError(
            "usage/until",
            f"{resource.name} has rows after --until",
            where=(usage.where(last),),
            hint="give a later --until, or leave these rows out",
        )
    return until


Seam = Callable[[int, int, bool], int]
"""Where a session that began at a moment is cut for a change at another; whether it begins there."""


def clipped(
    found: Sequence[Session], version: Version, taken: int | None, seam: Seam
) -> tuple[list[Session], int | None]:
    """The parts of one resource's sessions that a version rules, and where the next one takes over.

    An increment that was begun belongs to the version in which it began: ``taken`` is how far the
    version before this one has billed a session that goes on. Such a part does not begin here.
    """
    kept: list[Session] = []
    over: int | None = None
    for session in found:
        start, end = version.valid_from, version.valid_until
        if taken is not None and start is not None and session.start < start:
            start = taken
        low = session.start if start is None else max(start, session.start)
        if end is not None and session.start < end < session.end:
            end = over = max(low, seam(low, end, session.begins and low == session.start))
        inside = _inside(session, start, end)
        if inside is not None:
            kept.append(inside)
    return kept, over


def _inside(session: Session, start: int | None, end: int | None) -> Session | None:
    low = session.start if start is None else max(start, session.start)
    high = session.end if end is None else min(end, session.end)
    if high < low or (high == low and (session.us or high == end)):
        return None
    if (low, high) == (session.start, session.end):
        return session
    segments = cut_to(session.segments, low, high)
    return replace(session, segments=segments, begins=session.begins and low == session.start)


def cut_to(segments: Sequence[Segment], start: int, end: int) -> tuple[Segment, ...]:
    """Segments cut to a period, or stretched to it at the level of the first and the last."""
    first, last = segments[0], segments[-1]
    if end <= start:
        return (replace(first, start=start, end=start),)
    stretched = [
        replace(
            each,
            start=min(each.start, start) if each is first else each.start,
            end=max(each.end, end) if each is last else each.end,
        )
        for each in segments
    ]
    inside = [
        replace(each, start=max(each.start, start), end=min(each.end, end)) for each in stretched
    ]
    return tuple(each for each in inside if each.us > 0)
