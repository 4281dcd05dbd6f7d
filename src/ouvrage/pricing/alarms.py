"""When somebody must be told that a machine is paid for and does not work.

Decides what is an alarm and what it is called. Its id follows from what it is about, not from when
it was noticed, so that the same trouble noticed twice is one alarm, and a listener that hears it
twice knows. Reading clocks and telling people is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.base.time import MINUTE, utc_text
from ouvrage.metering.rental_view import RentalView
from ouvrage.pricing.words import duration

HANG_LEAST_US = MINUTE
"""A run is never said to hang sooner: a meter hands on what it has seen every few seconds only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    """A run that has not ended: its unit, the moment (UTC) of its latest one, the median time of one.

    Both are None where they are not known; such a run cannot be said to hang.
    """

    run: str
    code: str
    unit: str
    last_unit_us: int | None
    median_us: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """``sort`` is ``idle`` (nothing ever ran), ``ended`` (the work is over) or ``hang``."""

    id: str
    rental: str
    sort: str
    run: str | None
    since_us: int
    words: str


def alarms_due(
    view: RentalView,
    ends: Iterable[int],
    live: Sequence[LiveRun],
    now_us: int,
    *,
    idle_us: int,
    hang_factor: Fraction,
) -> list[Alarm]:
    """What must be told now about a rental that is still paid for, told before or not.

    ``ends`` are the moments at which runs on the machine ended. A run hangs when no unit came for
    ``hang_factor`` times the median unit, and no sooner than ``HANG_LEAST_US``.
    """
    if view.ended_us is not None and view.ended_us <= now_us:
        return []
    if live:
        return [alarm for run in live if (alarm := _hang(view, run, now_us, hang_factor))]
    past = [end for end in ends if end <= now_us]
    since = max(past, default=view.started.started_us)
    if now_us - since < idle_us:
        return []
    sort, what = ("ended", "the work ended") if past else ("idle", "nothing has run")
    words = f"{what} at {_clock(since)}" if past else f"{what} since {_clock(since)}"
    return [_alarm(view, sort, None, since, f"{words}, and the machine is still paid for")]


def _hang(view: RentalView, run: LiveRun, now_us: int, factor: Fraction) -> Alarm | None:
    since, median = run.last_unit_us, run.median_us
    if since is None or median is None:
        return None
    if now_us - since <= max(factor * median, HANG_LEAST_US):
        return None
    words = (
        f"{run.code} seems to hang: no {run.unit} since {_clock(since)}, "
        f"where one takes {duration(round(median))}"
    )
    return _alarm(view, "hang", run.run, since, words)


def _alarm(view: RentalView, sort: str, run: str | None, since: int, words: str) -> Alarm:
    about = canonical([view.rental, sort, run, since])
    return Alarm(
        id=sha256_hex(about)[:32],
        rental=view.rental,
        sort=sort,
        run=run,
        since_us=since,
        words=words,
    )


def _clock(us: int) -> str:
    return f"{utc_text(us)[:19]}Z"
