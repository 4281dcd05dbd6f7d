"""What services did, kept account of: in memory while it happens, and as facts soon after.

Decides how often it is stated: a tenth of the time since a service was first asked, but every ten seconds at the most and every ten
minutes at the least. A server that is killed loses what it had not stated yet, and no more; one that ends states it all.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ouvrage.base.grades import Grade
from ouvrage.base.time import MINUTE, SECOND
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import read
from ouvrage.metering.service_use import Exchange, Tally
from ouvrage.model.work import ServiceUsed
from ouvrage.server.context import Platform
from ouvrage.server.recording import stated

_LEAST_US, _MOST_US = 10 * SECOND, 10 * MINUTE


@dataclass(slots=True)
class _Open:
    """An attempt's sum that is not stated yet."""

    job: str
    first_us: int
    from_us: int
    tally: Tally = field(default_factory=Tally)


class Uses:
    """All services of this process; safe in several threads."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._lock = threading.Lock()  # held for moments only: exchanges end in the event loop
        self._order = (
            threading.Lock()
        )  # held while facts are written or read, so that each counts once
        self._open: dict[str, _Open] = {}

    def note(self, attempt: str, job: str, seen: Exchange) -> None:
        """Count an exchange that has just ended."""
        now = self._platform.clock()
        with self._lock:
            held = self._open.setdefault(attempt, _Open(job, now, now - seen.took_us))
            held.tally.note(seen)

    def total(self, attempt: str) -> Tally:
        """Everything that is known about an attempt's service."""
        found = Tally()
        with self._order:
            for each in self._platform.store.records(subject=attempt, kind=ServiceUsed.KIND):
                found.add(read(each.fact))
            with self._lock:
                held = self._open.get(attempt)
                if held is not None:
                    found.add(held.tally)
        return found

    def state(self, *, all_: bool = False) -> None:
        """State what is due, or all."""
        now = self._platform.clock()
        with self._order:
            taken = self._taken(now, all_)
            if not taken:
                return
            try:
                with self._platform.writing() as tx:
                    tx.note([self._fact(name, held, now) for name, held in taken.items()])
            except BaseException:
                self._give_back(taken)
                raise

    def _taken(self, now: int, all_: bool) -> dict[str, _Open]:
        with self._lock:
            for name in [name for name, held in self._open.items() if _idle(held, now)]:
                del self._open[name]
            due = {
                name: held
                for name, held in self._open.items()
                if held.tally.requests and (all_ or _due(held, now))
            }
            for name, held in due.items():
                self._open[name] = _Open(held.job, held.first_us, now)
        return due

    def _give_back(self, taken: dict[str, _Open]) -> None:
        with self._lock:
            for name, held in taken.items():
                held.tally.add(self._open[name].tally)
                self._open[name] = held

    def _fact(self, attempt: str, held: _Open, now_us: int) -> Fact:
        return stated(
            self._platform,
            held.tally.fact(attempt, held.job),
            subject=attempt,
            at_us=min(held.from_us, now_us),
            until_us=now_us,
            grade=Grade.MEASURED,
        )


def _due(held: _Open, now_us: int) -> bool:
    every = min(_MOST_US, max(_LEAST_US, (now_us - held.first_us) // 10))
    return now_us - held.from_us >= every


def _idle(held: _Open, now_us: int) -> bool:
    return not held.tally.requests and now_us - held.from_us >= _MOST_US
