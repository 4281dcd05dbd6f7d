"""Capacity reserved and used: who draws on a reservation at which moment, and what is left of it.

Decides that at every moment the sessions that began first are covered first, each as one of the
reserved places. The covered time is paid as the reservation's used row, what is left as its unused
row, and only the time beyond the reservation is metered by the covered rule itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from ouvrage.pricing.rates.sessions import Session, cut_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """``uncovered`` sessions, and the used place-microseconds of each reservation session."""

    uncovered: list[Session]
    used: list[Fraction]


def coverage(machines: Sequence[Session], reserved: Sequence[Session]) -> Coverage:
    """Give the places of reservations to sessions, moment by moment."""
    ordered = sorted(machines, key=lambda each: (each.start, each.resource))
    bare: list[list[tuple[int, int]]] = [[] for _ in ordered]
    used = [Fraction(0) for _ in reserved]
    live: list[int] = []
    following = 0
    for start, end in _slots([*machines, *reserved]):
        live = [n for n in live if ordered[n].end > start]
        while following < len(ordered) and ordered[following].start <= start:
            live += [following] if ordered[following].us else []
            following += 1
        places = [_level(each, start, end) for each in reserved]
        taken = min(len(live), sum(places))
        _share(used, places, taken, end - start)
        for n in live[taken:]:
            bare[n].append((start, end))
    uncovered = [each for n, one in enumerate(ordered) for each in _parts(one, bare[n])]
    empty = [each for each in ordered if not each.us]
    return Coverage(uncovered=[*uncovered, *empty], used=used)


def _slots(found: Sequence[Session]) -> Iterator[tuple[int, int]]:
    """Periods in which nothing changes."""
    times = {t for each in found for segment in each.segments for t in (segment.start, segment.end)}
    return pairwise(sorted(times))


def _level(reserved: Session, start: int, end: int) -> int:
    """Whole places that a reservation holds in a period."""
    for segment in reserved.segments:
        if segment.start <= start and end <= segment.end:
            return int(segment.level)
    return 0


def _share(used: list[Fraction], places: list[int], taken: int, us: int) -> None:
    """Book taken places on the reservations, the first one first."""
    for index, count in enumerate(places):
        drawn = min(count, taken)
        used[index] += drawn * us
        taken -= drawn


def _parts(session: Session, periods: list[tuple[int, int]]) -> list[Session]:
    """The uncovered parts of a session; one that goes on from a covered part does not begin there."""
    joined: list[tuple[int, int]] = []
    for start, end in periods:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return [
        replace(
            session,
            segments=cut_to(session.segments, start, end),
            begins=session.begins and start == session.start,
        )
        for start, end in joined
    ]
