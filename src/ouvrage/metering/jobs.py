"""One job from the runs that bear its id: its machines, when they worked, and its units, each once.

Decides three things. Runs on one machine that overlap are one *stretch* of that machine, however many
ranks were metered in it, so that its time counts once. Runs are ranks of one piece of work where a
launcher says so (a rank, several nodes, a launcher in the command), and their units are then the same
units; without one they are different work and all of it counts. Clocks of machines are each machine's
own: no figure here depends on how they agree but the span from the first start to the last end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ouvrage.metering.around import job_of
from ouvrage.metering.launchers import launcher_of
from ouvrage.metering.ranks import rows_of
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.statistics import median
from ouvrage.metering.units import Units

WHOLE = "job"
"""The unit of a job in which nothing marked any: the job itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time in which at least one run of the job was on a machine, by that machine's clock."""

    from_us: int
    to_us: int
    runs: tuple[RunView, ...]

    @property
    def length_us(self) -> int:
        """How long the machine was the job's."""
        return self.to_us - self.from_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine of the job. ``index`` is its number in the job's figures, ``nodes`` the launchers' for it."""

    index: int
    host: str
    name: str
    nodes: tuple[int, ...]
    stretches: tuple[Stretch, ...]

    @property
    def runs(self) -> tuple[RunView, ...]:
        """Every run on it, in order of their start."""
        return tuple(run for stretch in self.stretches for run in stretch.runs)

    @property
    def length_us(self) -> int:
        """How long it was the job's, each moment once."""
        return sum(stretch.length_us for stretch in self.stretches)

    @property
    def label(self) -> str:
        """How it is called beside others."""
        return f"{self.name}" + (f" (node {self.nodes[0]})" if len(self.nodes) == 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUnits:
    """The finished units of a job. ``redone`` were finished again after a restart and count once.

    ``lead`` is the run whose marks tell most; ``notes`` say what a reader should know.
    """

    name: str
    finished: int
    redone: int
    lead: RunView | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Everything known about one job."""

    job: str
    hosts: tuple[Host, ...]

    @cached_property
    def runs(self) -> tuple[RunView, ...]:
        """Every run of it."""
        return tuple(run for host in self.hosts for run in host.runs)

    @cached_property
    def launched(self) -> bool:
        """Whether a launcher says that the runs are ranks of one piece of work."""
        return any(_is_rank(run) for run in self.runs)

    @cached_property
    def nodes_stated(self) -> int | None:
        """How many machines a launcher spoke of."""
        told = [place.nodes for run in self.runs if (place := job_of(run)) and place.nodes]
        return max(told, default=None)

    @cached_property
    def nodes_here(self) -> int:
        """How many of them are known here: several nodes of a launcher's may stand on one machine."""
        return max(len(self.hosts), len({number for host in self.hosts for number in host.nodes}))

    @cached_property
    def missing(self) -> int:
        """How many stated machines nothing is known of."""
        return max(0, (self.nodes_stated or 0) - self.nodes_here)

    @cached_property
    def missing_nodes(self) -> tuple[int, ...]:
        """Their numbers, where the launcher numbers them."""
        seen = {number for host in self.hosts for number in host.nodes}
        if not self.missing or len(seen) != self.nodes_here:
            return ()
        return tuple(number for number in range(self.nodes_stated or 0) if number not in seen)

    @cached_property
    def units(self) -> JobUnits:
        """Its finished units."""
        return _units(self)


def _is_rank(run: RunView) -> bool:
    place = job_of(run)
    if place and (place.rank is not None or max(place.ranks or 1, place.nodes or 1) > 1):
        return True
    return launcher_of(run.started.command) is not None


def job_from(job: str, runs: Iterable[RunView]) -> Job:
    """The job of this name from its runs; at least one."""
    by_host: dict[str, list[RunView]] = {}
    for run in runs:
        place = job_of(run)
        if place is not None and place.job == job:
            by_host.setdefault(place.host, []).append(run)
    found = [_host(host, members) for host, members in by_host.items()]
    found.sort(key=lambda host: (host.nodes or (1 << 30,), host.name, host.host))
    hosts = tuple(
        Host(index=i, host=h.host, name=h.name, nodes=h.nodes, stretches=h.stretches)
        for i, h in enumerate(found)
    )
    return Job(job=job, hosts=hosts)


def _host(host: str, members: Sequence[RunView]) -> Host:
    places = [place for run in members if (place := job_of(run))]
    numbers = {place.node for place in places if place.node is not None}
    return Host(
        index=0,
        host=host,
        name=places[0].host_name,
        nodes=tuple(sorted(numbers)),
        stretches=_stretches(members),
    )


def end_of(run: RunView) -> int:
    """When a run ended, by its machine's clock."""
    return run.started.started_us + run.wall_us


def _stretches(members: Sequence[RunView]) -> tuple[Stretch, ...]:
    ordered = sorted(members, key=lambda run: (run.started.started_us, run.run))
    found: list[list[RunView]] = []
    reached = 0
    for run in ordered:
        if not found or run.started.started_us > reached:
            found.append([])
        found[-1].append(run)
        reached = max(reached, end_of(run))
    return tuple(
        Stretch(from_us=runs[0].started.started_us, to_us=max(map(end_of, runs)), runs=tuple(runs))
        for runs in found
    )


def _units(job: Job) -> JobUnits:
    marked = [run for run in job.runs if not reckon(run).units.is_command]
    if not marked:
        return _whole(job)
    names = Counter(reckon(run).units.name for run in marked)
    name = min(names, key=lambda each: (-names[each], each))
    chosen = [run for run in marked if reckon(run).units.name == name]
    lead = max(chosen, key=lambda run: (len(ends_of(run)), reckon(run).units.finished, run.run))
    notes = []
    if len(names) > 1:
        aside = ", ".join(sorted(names.keys() - {name}))
        notes.append(f"counted {name}; other runs of the job mark {aside}")
    if not job.launched:
        if len(chosen) > 1:
            notes.append(f"no launcher joins the {len(chosen)} runs: their {name}s all count")
        finished = sum(reckon(run).units.finished for run in chosen)
        return JobUnits(name=name, finished=finished, redone=0, lead=lead, notes=tuple(notes))
    finished, redone, more = _of_ranks(job, chosen, name)
    return JobUnits(name=name, finished=finished, redone=redone, lead=lead, notes=(*notes, *more))


def _whole(job: Job) -> JobUnits:
    done = not job.missing and all(run.outcome == "completed" for run in job.runs)
    note = "no run of the job marks units" + (", so the job itself is the unit" if done else "")
    lead = job.runs[0] if done else None
    return JobUnits(name=WHOLE, finished=int(done), redone=0, lead=lead, notes=(note,))


def _of_ranks(job: Job, chosen: Sequence[RunView], name: str) -> tuple[int, int, list[str]]:
    """Units of ranks: those of one attempt once, those of several attempts together."""
    attempts = _attempts(job, chosen)
    notes: list[str] = []
    total, numbers, redone = 0, set[int](), 0
    restarted = any((place := job_of(run)) and place.restart for run in chosen)
    for runs in attempts:
        fullest = max(runs, key=lambda run: (reckon(run).units.finished, run.run))
        count, told = reckon(fullest).units.finished, numbers_of(fullest)
        if not _same(fullest, runs):
            notes.append(f"the ranks did not mark the same {name}s: each rank's count")
            total += sum(reckon(run).units.finished for run in runs)
        elif restarted and told is not None:
            redone += len(told & numbers)
            numbers |= told
        else:
            total += count
    if len(chosen) > 1 and not notes:
        told = all(numbers_of(run) is not None for run in chosen)
        how = "marked the same" if told else "counted equally many, taken for the same,"
        notes.append(f"{len(chosen)} runs {how} {name}s; each counts once")
    if redone:
        notes.append(f"{redone} {name}s were done again after a restart; each counts once")
    return total + len(numbers), redone, notes


def _attempts(job: Job, chosen: Sequence[RunView]) -> list[list[RunView]]:
    """Runs that worked together: by the launcher's count of restarts, else by the machines' stretches."""
    groups: dict[int, list[RunView]] = {}
    places = [(run, job_of(run)) for run in chosen]
    if any(place and place.restart for _, place in places):
        for run, place in places:
            groups.setdefault((place.restart if place else None) or 0, []).append(run)
        return [groups[key] for key in sorted(groups)]
    if all(len(host.stretches) == 1 for host in job.hosts):
        return [list(chosen)]
    reached, number = None, -1
    for run in sorted(chosen, key=lambda each: (each.started.started_us, each.run)):
        if reached is None or run.started.started_us > reached:
            number += 1
        groups.setdefault(number, []).append(run)
        reached = max(reached or 0, end_of(run))
    return list(groups.values())


def _same(fullest: RunView, runs: Iterable[RunView]) -> bool:
    """Whether every run marked a part of what the fullest did: numbers of it, or as many but one."""
    told, most = numbers_of(fullest), reckon(fullest).units.finished
    for run in runs:
        mine, count = numbers_of(run), reckon(run).units.finished
        if mine is not None and told is not None:
            if not mine <= told:
                return False
        elif run.outcome == "completed" and most - count > 1:
            return False
    return True


def numbers_of(run: RunView) -> frozenset[int] | None:
    """The numbers of its finished units; None where they do not tell them all."""
    units = reckon(run).units
    found = {n for n, _ in _numbered(run, units)}
    return frozenset(found) if len(found) == units.finished else None


def ends_of(run: RunView) -> Mapping[int, int]:
    """When each numbered unit ended, in microseconds of the run; empty where numbers come again."""
    found: dict[int, int] = {}
    for n, t in _numbered(run, reckon(run).units):
        if n in found:
            return {}
        if t is not None:
            found[n] = t
    return found


def _numbered(run: RunView, units: Units) -> list[tuple[int, int | None]]:
    """Number and end of each unit that the counted marks name; a head ends the unit before it."""
    rows = [
        row
        for marks in run.marks
        if (marks.name, marks.via) == (units.name, units.via)
        for row in rows_of(marks)
    ]
    found: list[tuple[int, int | None]] = []
    opened: int | None = None
    for mark, n, t in rows:
        if mark == "end":
            found.append((n, t))
            opened = None
        elif mark == "head":
            if opened is not None:
                found.append((opened, t))
            opened = n
    if opened is not None and run.outcome == "completed":
        found.append((opened, None))
    return found


def laps_of(run: RunView) -> Mapping[int, int]:
    """How long each numbered unit took, by the run's own clock, where both of its ends are known."""
    ends = ends_of(run)
    return {n: t - ends[n - 1] for n, t in ends.items() if n - 1 in ends and t > ends[n - 1]}


def leads_of(job: Job) -> dict[int, RunView]:
    """By host: the run whose numbered units tell most, for the hosts that have one."""
    name, found = job.units.name, dict[int, RunView]()
    for host in job.hosts:
        runs = [run for run in host.runs if reckon(run).units.name == name and laps_of(run)]
        if runs:
            found[host.index] = max(runs, key=lambda run: (len(laps_of(run)), run.run))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """By how much one machine's marks of the same units come after the first's: clocks and delay together."""

    host: int
    units: int
    median_us: Fraction
    spread_us: int


def marks_apart(job: Job) -> tuple[Apart, ...]:
    """What the marks say of the clocks; nothing where one machine alone marks units."""
    leads = leads_of(job)
    if len(leads) < 2:
        return ()
    first, *others = sorted(leads)
    base = leads[first]
    found: list[Apart] = []
    for index in others:
        run = leads[index]
        shift = run.started.started_us - base.started.started_us
        mine, theirs = ends_of(run), ends_of(base)
        gaps = [shift + mine[n] - theirs[n] for n in mine.keys() & theirs.keys()]
        if gaps:
            found.append(
                Apart(
                    host=index,
                    units=len(gaps),
                    median_us=median([Fraction(gap) for gap in gaps]),
                    spread_us=max(gaps) - min(gaps),
                )
            )
    return tuple(found)
