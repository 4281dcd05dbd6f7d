"""A balance paid in advance: when it no longer covers what runs, and what ends then.

Decides the last instant that is covered, to the microsecond and under the plan's own increments, by
asking what the usage up to an instant would cost if it went on for as long as the plan wants covered.
What the file states after that did not run as stated: it is listed and not charged, until another
deposit. How much anything costs is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ouvrage.base.time import utc_text
from ouvrage.pricing.rates.plan import LIFECYCLE, Prepaid
from ouvrage.pricing.rates.quantity import seconds_text
from ouvrage.pricing.rates.usage import Resource, Row, Usage

DEPOSIT = "deposit"
_IDLE = ("stopped", "deallocated", "offline", "terminated", "cancelled")
"""States in which nothing runs that a low balance could stop."""
_ENDS = ("stopped", "terminated")
Cost = Callable[[Usage, int], Fraction]
"""What a usage costs when everything that still runs is cut at a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """A row of the usage that the balance did not allow, and since when."""

    resource: str
    event: str
    at: int
    since: int

    @property
    def words(self) -> str:
        """``pod-1 active at …: not run, balance exhausted at …``."""
        return (
            f"{self.resource} {self.event} at {utc_text(self.at)}: "
            f"not run: balance exhausted at {utc_text(self.since)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One end of the balance. ``deleted``: of all that is kept, not only of what ran."""

    at: int
    deleted: bool
    resources: tuple[str, ...]
    because: str

    @property
    def words(self) -> str:
        """What ended, when and by which rule."""
        what = "what is kept may be deleted, and is charged no more" if self.deleted else "stopped"
        who = ", ".join(self.resources) or "nothing"
        return f"{utc_text(self.at)}: {who}: {what}; {self.because}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The usage as the balance allowed it, every end of the balance, and what did not run."""

    usage: Usage
    stops: tuple[Stop, ...] = ()
    not_run: tuple[NotRun, ...] = ()


def deposits(usage: Usage) -> list[Row]:
    """The rows that pay in, in order of time."""
    found = [row for row in usage.rows if row.event == DEPOSIT and row.quantity is not None]
    return sorted(found, key=lambda row: row.at)


def settled(
    prepaid: Prepaid, usage: Usage, until: int, named: frozenset[str], cost: Cost
) -> Settled:
    """The usage up to ``until`` under a plan that stops at a low balance.

    ``named`` are quantities that say what a machine is made of, wherever their row stands.
    """
    paid = deposits(usage)
    found = Settled(usage=usage)
    since, low = min(row.at for row in usage.rows), prepaid.stop_below_us
    while True:
        books = _Books(found.usage, paid, named, cost)
        at = books.last_covered(since, until, low)
        if at is None:
            return found
        again = next((row.at for row in paid if row.at > at), until + 1)
        found = _ended(found, at, again, named, deleted=not low, why=_because(prepaid, low))
        if low:
            since, low = at, 0  # what is kept goes on, until nothing is left
        else:
            since, low = again, prepaid.stop_below_us
        if since > until:
            return found


def used_up(usage: Usage, until: int, named: frozenset[str], cost: Cost) -> int | None:
    """The last instant that the deposits cover, where charges go on below zero; None: all of it."""
    first = min(row.at for row in usage.rows)
    return _Books(usage, deposits(usage), named, cost).last_covered(first, until, 0)


def _because(prepaid: Prepaid, low: int) -> str:
    if low:
        seconds = seconds_text(low)
        return f"the balance covered {seconds} s more (prepaid: stops below {seconds} s of balance)"
    return f"the balance was used up (prepaid: {prepaid.negative})"


@dataclass(frozen=True, slots=True)
class _Books:
    usage: Usage
    paid: Sequence[Row]
    named: frozenset[str]
    cost: Cost

    def last_covered(self, since: int, until: int, low: int) -> int | None:
        """The last instant from ``since`` on at which ``low`` more is covered; None: until the end.

        Between two rows nothing changes but the time, so that what is covered can only end once.
        """
        moments = sorted({row.at for row in self.usage.rows if since <= row.at <= until} | {since})
        for start, end in zip(moments, [*moments[1:], until + 1], strict=True):
            if not self._covered(start, low):
                return start
            if not self._covered(end - 1, low):
                return self._between(start, end - 1, low)
        return None

    def _between(self, good: int, bad: int, low: int) -> int:
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self._covered(middle, low) else (good, middle)
        return good

    def _covered(self, at: int, low: int) -> bool:
        held = sum(
            (row.quantity for row in self.paid if row.at <= at and row.quantity), Fraction(0)
        )
        known = _known(self.usage, at, self.named)
        return known is None or self.cost(known, at + low) <= held


def _known(usage: Usage, at: int, named: frozenset[str]) -> Usage | None:
    """The usage as far as it had happened at a moment; None where nothing had."""
    parted = ((each, _parted(each, at, named)[0]) for each in usage.resources)
    resources = [
        replace(each, rows=rows)
        for each, rows in parted
        if any(row.event != DEPOSIT for row in rows)
    ]
    return replace(usage, resources=tuple(resources)) if resources else None


def _parted(
    resource: Resource, at: int, named: frozenset[str]
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """A resource's rows up to a moment, and those after it.

    What says once what a resource is, such as the number of its GPUs, is known from its beginning.
    """
    before = [row for row in resource.rows if row.at <= at]
    after: list[Row] = []
    stated = {row.event for row in before}
    for row in resource.rows[len(before) :]:
        says = row.event in named or (row.quantity is None and row.event not in LIFECYCLE)
        if before and says and row.event not in stated:
            before.append(replace(row, at=before[0].at))
            stated.add(row.event)
        else:
            after.append(row)
    return tuple(sorted(before, key=lambda row: row.at)), tuple(after)


def _ended(
    found: Settled, at: int, again: int, named: frozenset[str], *, deleted: bool, why: str
) -> Settled:
    """The usage in which all that runs, or all that is kept, ends at a moment."""
    resources: list[Resource] = []
    ended: list[str] = []
    lost: list[NotRun] = []
    for each in found.usage.resources:
        before, after = _parted(each, at, named)
        if _goes_on(before, deleted):
            ended.append(each.name)
            last = replace(before[-1], event=_ENDS[deleted], at=at, quantity=None, unit=None)
            before = (*before, last)
        kept = tuple(row for row in after if _stands(row, again))
        lost += [
            NotRun(resource=row.resource, event=row.event, at=row.at, since=at)
            for row in after
            if not _stands(row, again)
        ]
        if before or kept:
            resources.append(replace(each, rows=(*before, *kept)))
    stop = Stop(at=at, deleted=deleted, resources=tuple(ended), because=why)
    return Settled(
        usage=replace(found.usage, resources=tuple(resources)),
        stops=(*found.stops, stop),
        not_run=(*found.not_run, *lost),
    )


def _goes_on(rows: Sequence[Row], deleted: bool) -> bool:
    """Whether a resource has something that ends: that runs, or that is kept."""
    states = [row.event for row in rows if row.event in LIFECYCLE]
    if states and states[-1] in ("terminated", "cancelled"):
        return False
    if deleted:
        return bool(states) or any(row.event != DEPOSIT and row.quantity for row in rows)
    return bool(states) and states[-1] not in _IDLE


def _stands(row: Row, again: int) -> bool:
    """Whether a row after the end still counts: it ends something, pays in, or came after a deposit."""
    return row.at >= again or row.event in (*_ENDS, DEPOSIT)
