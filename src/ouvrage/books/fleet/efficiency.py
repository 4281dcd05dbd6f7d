"""How much of what jobs asked for they used, and what to ask for instead.

Decides the levels at which advice is worth giving, and that it is given to a user about a partition and not for a single job: the
most that any of their jobs used is what the next one needs. Only jobs that ended and of which use was gathered count; how many
did not is told. Processor time and memory are those that the scheduler gathered, of all processes of a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.time import HOUR, MINUTE
from ouvrage.books.cluster_jobs import GOING, Attempt
from ouvrage.books.fleet.record import NO_ACCOUNT, Fleet

LOW = {
    "cores": Fraction(1, 2),
    "memory": Fraction(1, 2),
    "time limit": Fraction(1, 10),
    "GPU load": Fraction(15, 100),
}
"""The share of what was asked for below which a word is worth saying; the last two as in jobstats (Princeton), the others rounder."""
SPARE = Fraction(6, 5)
"""What a next job should ask for, of the most that was used: a fifth more."""
_GIB = 1024**2
_LEAST = _GIB // 4
"""Nobody is told to ask for less memory than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares of what was asked for that one user's jobs in a partition used, weighed by time; None where nobody gathered it.

    ``core_hours`` were allotted; ``unknown`` counts jobs without any gathered use. ``advice`` is what to ask for instead.
    """

    account: str
    user: str
    partition: str
    jobs: int
    unknown: int
    core_hours: Fraction
    cores: Fraction | None
    memory: Fraction | None
    time_limit: Fraction | None
    gpu_load: Fraction | None
    advice: tuple[str, ...]


def efficiencies(fleet: Fleet, attempts: Iterable[Attempt]) -> list[Efficiency]:
    """By account, user and partition; those with the most unused core time first."""
    groups: dict[tuple[str, str, str], list[Attempt]] = {}
    for each in attempts:
        if each.run_us and each.state not in GOING:
            key = (
                each.account or NO_ACCOUNT,
                each.user or "no user",
                each.partition or "no partition",
            )
            groups.setdefault(key, []).append(each)
    found = [_of(fleet, *key, ours) for key, ours in groups.items()]
    return sorted(
        found,
        key=lambda each: (-each.core_hours * (1 - (each.cores or 0)), each.account, each.user),
    )


def _of(
    fleet: Fleet, account: str, user: str, partition: str, ours: Sequence[Attempt]
) -> Efficiency:
    cores = _share((fleet.use(a).cpu_us, (a.run_us or 0) * (a.known.value.cpus or 0)) for a in ours)
    memory = _share(
        (_times(fleet.use(a).used_kib, a.run_us), (a.run_us or 0) * (fleet.use(a).memory_kib or 0))
        for a in ours
    )
    limit = _share((a.run_us, max(0, fleet.use(a).limit_us or 0)) for a in ours)
    load = _share((_times(fleet.use(a).gpu_percent, a.gpu_us), 100 * (a.gpu_us or 0)) for a in ours)
    return Efficiency(
        account=account, user=user, partition=partition, jobs=len(ours),
        unknown=sum(fleet.use(a).cpu_us is None for a in ours),
        core_hours=Fraction(sum((a.run_us or 0) * (a.known.value.cpus or 0) for a in ours), HOUR),
        cores=cores, memory=memory, time_limit=limit, gpu_load=load,
        advice=tuple(_advice(fleet, ours, {"cores": cores, "memory": memory, "time limit": limit, "GPU load": load})),
    )  # fmt: skip


def _times(value: int | None, us: int | None) -> int | None:
    return None if value is None or us is None else value * us


def _share(pairs: Iterable[tuple[int | None, int]]) -> Fraction | None:
    known = [(used, asked) for used, asked in pairs if used is not None and asked]
    asked = sum(each for _, each in known)
    return Fraction(sum(each for each, _ in known), asked) if asked else None


def _advice(
    fleet: Fleet, ours: Sequence[Attempt], shares: dict[str, Fraction | None]
) -> Iterable[str]:
    low = {name for name, share in shares.items() if share is not None and share < LOW[name]}
    uses = [(each, fleet.use(each)) for each in ours]
    cores = [
        Fraction(used.cpu_us, each.run_us)
        for each, used in uses
        if used.cpu_us is not None and each.run_us
    ]
    had = max((each.known.value.cpus or 0 for each in ours), default=0)
    wanted = max(1, ceil(max(cores, default=Fraction(0)) * SPARE))
    if "cores" in low and wanted < had:
        yield f"up to {had} cores, at most {fixed(max(cores), 2)} at work: {wanted} would do"
    memory = [used.used_kib for _, used in uses if used.used_kib]
    asked = max((used.memory_kib or 0 for _, used in uses), default=0)
    enough = max(_LEAST, ceil(max(memory, default=0) * SPARE))
    if "memory" in low and memory and enough < asked - _GIB:
        yield f"up to {_gib(asked)} of memory, at most {_gib(max(memory))} used: {_gib(enough)} would do"
    longest = max((each.run_us or 0 for each in ours), default=0)
    limit = max((used.limit_us or 0 for _, used in uses), default=0)
    if "time limit" in low and longest * SPARE + MINUTE < limit:
        shorter = ceil(longest * SPARE / MINUTE)
        yield f"a time limit of {limit // MINUTE} min, the longest ran {ceil(Fraction(longest, MINUTE))} min: {shorter} min would start earlier"
    if "GPU load" in low:
        yield f"GPUs at {fixed((shares['GPU load'] or Fraction(0)) * 100, 0)} %: fewer of them, or work that feeds them"


def _gib(kib: int) -> str:
    return (
        f"{decimal_text(round(Fraction(kib, _GIB), 1))} GiB"
        if kib >= _GIB
        else f"{ceil(kib / 1024)} MiB"
    )
