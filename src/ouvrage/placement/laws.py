"""What must hold over the facts about work, whatever happened to servers and runners meanwhile.

Decides from the order in which facts were recorded: an attempt is ordered before anything else is known of it and ends at most once; a job has one
attempt at a time; no GPU and no core is given to two at once. The clocks of nodes are not relied on. Cores that a Slurm
gave out are its own to share, as its owner set it up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.law_book import where_of
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import in_force
from ouvrage.model.fleet import ClusterPlaced
from ouvrage.model.selling import LeaseEnded, LeaseGranted, Placed
from ouvrage.model.work import AttemptEnded, AttemptOrdered, JobEnded, JobSubmitted

Found = Iterator[tuple[str, str]]
_KINDS = {
    kind.KIND
    for kind in (
        JobSubmitted,
        JobEnded,
        AttemptOrdered,
        AttemptEnded,
        LeaseGranted,
        LeaseEnded,
        ClusterPlaced,
    )
}


def _told(records: Sequence[Recorded]) -> Iterator[tuple[Recorded, object]]:
    """Facts about work that nothing corrected, in the order of their recording, with what they state."""
    ours = [entry for entry in records if entry.fact.kind in _KINDS]
    for entry in sorted(in_force(ours), key=lambda entry: entry.seq):
        yield entry, read(entry.fact)


def _attempts(records: Sequence[Recorded]) -> Found:
    ordered: dict[str, AttemptOrdered] = {}
    ended: set[str] = set()
    for entry, value in _told(records):
        if isinstance(value, AttemptOrdered):
            if value.attempt in ordered:
                yield where_of(entry), f"attempt {value.attempt} is ordered a second time"
            ordered[value.attempt] = value
        elif isinstance(value, AttemptEnded):
            order = ordered.get(value.attempt)
            if order is None or order.job != value.job:
                yield where_of(entry), f"attempt {value.attempt} ended, and nobody had ordered it"
            elif value.attempt in ended:
                yield where_of(entry), f"attempt {value.attempt} ends a second time"
            ended.add(value.attempt)


@dataclass(slots=True)
class _Job:
    """What is known of a job so far: how many attempts, which of them is open, whether it is over."""

    attempts: int = 0
    open: str | None = None
    over: bool = False


def _jobs(records: Sequence[Recorded]) -> Found:
    jobs: dict[str, _Job] = {}
    for entry, value in _told(records):
        if isinstance(value, JobSubmitted):
            jobs.setdefault(value.job, _Job())
        elif isinstance(value, (AttemptOrdered, AttemptEnded, JobEnded)):
            job = jobs.get(value.job)
            if job is None:
                yield where_of(entry), f"job {value.job} was never submitted"
            else:
                yield from ((where_of(entry), found) for found in _next(job, value))


def _next(job: _Job, value: AttemptOrdered | AttemptEnded | JobEnded) -> Iterator[str]:
    if isinstance(value, AttemptEnded):
        job.open = None if job.open == value.attempt else job.open
        return
    if job.open is not None:
        yield f"job {value.job} has attempt {job.open} under way"
    if job.over:
        yield f"job {value.job} had come to its end"
    if isinstance(value, JobEnded):
        job.over = True
        return
    job.attempts += 1
    job.open = value.attempt
    if value.number != job.attempts:
        yield f"attempt {value.number} of job {value.job} comes as its number {job.attempts}"


@dataclass(slots=True)
class _Held:
    """Who holds each GPU and each core of the nodes: leases for a term, and attempts outside them."""

    holders: dict[tuple[str, str], str] = field(default_factory=dict)
    places: dict[str, Placed] = field(default_factory=dict)

    def take(self, holder: str, placed: Placed) -> Iterator[str]:
        self.places[holder] = placed
        for thing in _things(placed):
            other = self.holders.setdefault(thing, holder)
            if other != holder:
                yield f"{thing[1]} is given to {holder}, and {other} has it"

    def leave(self, holder: str) -> None:
        placed = self.places.pop(holder, None)
        for thing in _things(placed) if placed else ():
            if self.holders.get(thing) == holder:
                del self.holders[thing]


def _things(placed: Placed) -> list[tuple[str, str]]:
    cores = [f"core {number}" for number in placed.cpus]
    return [(placed.node, name) for name in (*placed.devices, *cores)]


def _exclusive(records: Sequence[Recorded]) -> Found:
    """Leases hold their place against everybody else; the attempts in one, each its part of it."""
    outside, inside = _Held(), dict[str, _Held]()
    terms: set[str] = set()
    where: dict[str, _Held] = {}
    told = list(_told(records))
    by_slurm = {value.attempt for _, value in told if isinstance(value, ClusterPlaced)}
    for entry, value in told:
        found: Iterator[str] = iter(())
        if isinstance(value, LeaseGranted) and value.kind == "term":
            terms.add(value.lease)
            found = outside.take(value.lease, value.placed)
        elif isinstance(value, LeaseEnded) and value.lease in terms:
            outside.leave(value.lease)
            found = _left_behind(inside.pop(value.lease, _Held()), outside, where)
        elif isinstance(value, AttemptOrdered):
            leased = value.lease in terms
            held = inside.setdefault(value.lease, _Held()) if leased else outside
            where[value.attempt] = held
            placed = replace(value.placed, cpus=()) if value.attempt in by_slurm else value.placed
            found = held.take(value.attempt, placed)
        elif isinstance(value, AttemptEnded) and value.attempt in where:
            where.pop(value.attempt).leave(value.attempt)
        yield from ((where_of(entry), words) for words in found)


def _left_behind(lease: _Held, outside: _Held, where: dict[str, _Held]) -> Iterator[str]:
    """What still ends in a lease that has ended keeps its own place until then."""
    for attempt, placed in lease.places.items():
        where[attempt] = outside
        yield from outside.take(attempt, placed)


def _leases(records: Sequence[Recorded]) -> Found:
    granted: dict[str, tuple[Recorded, LeaseGranted]] = {}
    ordered: set[str] = set()
    ended: set[str] = set()
    for entry, value in _told(records):
        if isinstance(value, AttemptOrdered):
            ordered.add(value.attempt)
        elif isinstance(value, LeaseGranted):
            granted[value.lease] = (entry, value)
            if value.attempt is not None and value.attempt not in ordered:
                yield where_of(entry), f"a lease for attempt {value.attempt}, which nobody ordered"
        elif isinstance(value, LeaseEnded):
            if value.lease not in granted:
                yield where_of(entry), f"lease {value.lease} ended, and nobody had granted it"
            elif value.lease in ended:
                yield where_of(entry), f"lease {value.lease} ends a second time"
            elif value.at_us < granted[value.lease][0].fact.valid_from:
                yield where_of(entry), f"lease {value.lease} ends before it begins"
            ended.add(value.lease)


LAWS: tuple[Law, ...] = (
    Law(
        name="work/attempts",
        statement="each attempt is ordered once, before all else, and ends at most once",
        check=_attempts,
    ),
    Law(
        name="work/jobs",
        statement="a job has one attempt at a time, numbered from 1, and none after its end",
        check=_jobs,
    ),
    Law(
        name="work/exclusive",
        statement="no GPU is given to two leases or attempts at once, nor a core where no Slurm gives them out",
        check=_exclusive,
    ),
    Law(
        name="work/leases",
        statement="each lease is granted before it ends, ends once, and no earlier than it began",
        check=_leases,
    ),
)
