"""Who had the GPUs of a cluster in a period, how long work waited, and what of it came to nothing.

Decides that time belongs to the account and the user that accounting names, that a job waited from the moment at which it might have
begun, and that what failed is told by how it ended: by itself, at its time limit, cancelled, sent away, or with its node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ouvrage.books.cluster_jobs import Attempt
from ouvrage.books.fleet.record import NO_ACCOUNT, Fleet
from ouvrage.books.goodput import Goodput, cluster_goodput, hours_in, meets, sort_of
from ouvrage.books.period import Period
from ouvrage.metering.serving import quantile

NODE_FAILED = ("NODE_FAIL", "BOOT_FAIL")
"""States in which the machine, and not the job, gave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Had:
    """What one account, or one ``user`` of it, had; ``tenant`` is the account at the top."""

    tenant: str
    account: str
    user: str | None
    goodput: Goodput

    @property
    def jobs(self) -> int:
        """How many attempts."""
        return sum(self.goodput.jobs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """How long the jobs of a partition waited that began in a period: microseconds. ``p95_us`` None where they are too few."""

    partition: str
    jobs: int
    median_us: int
    p95_us: int | None
    most_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """GPU-hours of jobs that ended in ``state``; ``attempts`` are those of them with the most first."""

    state: str
    hours: Fraction
    attempts: tuple[Attempt, ...]


def within(fleet: Fleet, period: Period, account: str | None = None) -> tuple[Attempt, ...]:
    """The attempts with time in a period, of all accounts or of one and those below it."""
    wanted = None if account is None else family(fleet, account)
    return tuple(
        each for each in fleet.attempts
        if meets(each, period) and (wanted is None or (each.account or NO_ACCOUNT) in wanted)
    )  # fmt: skip


def family(fleet: Fleet, account: str) -> frozenset[str]:
    """An account and all below it."""
    found = {account}
    while more := {n for n, a in fleet.accounts.items() if a.parent in found and n not in found}:
        found |= more
    return frozenset(found)


def had_by(fleet: Fleet, attempts: Iterable[Attempt], period: Period, *, users: bool) -> list[Had]:
    """What each account had, or each user of each, the most first."""
    groups: dict[tuple[str, str | None], list[Attempt]] = {}
    for each in attempts:
        groups.setdefault(
            (each.account or NO_ACCOUNT, (each.user or "no user") if users else None), []
        ).append(each)
    found = [
        Had(
            tenant=fleet.tenant(account),
            account=account,
            user=user,
            goodput=cluster_goodput(ours, period),
        )
        for (account, user), ours in groups.items()
    ]
    return sorted(found, key=lambda had: (-had.goodput.total, had.account, had.user or ""))


def waited(fleet: Fleet, attempts: Iterable[Attempt], period: Period) -> list[Waited]:
    """The waits of those that began in a period, by partition."""
    waits: dict[str, list[int]] = {}
    for each in attempts:
        eligible = fleet.use(each).eligible_us
        begins = eligible if eligible is not None else each.submit_us
        if (
            each.start_us is not None
            and begins is not None
            and period.from_us <= each.start_us < period.to_us
        ):
            waits.setdefault(each.partition or "no partition", []).append(
                max(0, each.start_us - begins)
            )
    return [
        Waited(
            partition=name, jobs=len(ours), median_us=quantile(sorted(ours), Fraction(1, 2)),
            p95_us=quantile(sorted(ours), Fraction(19, 20)), most_us=max(ours),
        )
        for name, ours in sorted(waits.items())
    ]  # fmt: skip


def lost(attempts: Iterable[Attempt], period: Period) -> list[Lost]:
    """What came to nothing, by how it ended, the most first."""
    groups: dict[str, list[tuple[Fraction, Attempt]]] = {}
    for each in attempts:
        if sort_of(each.state) not in ("completed", "going"):
            groups.setdefault(each.state, []).append((hours_in(each, period) or Fraction(0), each))
    found = [
        Lost(
            state=state, hours=sum((hours for hours, _ in ours), Fraction(0)),
            attempts=tuple(each for _, each in sorted(ours, key=lambda e: (-e[0], e[1].name))),
        )
        for state, ours in groups.items()
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-each.hours, each.state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hollow:
    """GPU-hours of jobs of a node that had GPUs: with ``no_process`` on them, with next to ``no_cpu`` used, seen ``busy``, and ``unknown``."""

    node: str
    no_process: Fraction = Fraction(0)
    no_cpu: Fraction = Fraction(0)
    busy: Fraction = Fraction(0)
    unknown: Fraction = Fraction(0)


NO_CPU = Fraction(1, 100)
"""Less than this of one core over its whole time: a program that feeds a GPU takes more."""


def evidence_of(fleet: Fleet, attempt: Attempt) -> str:
    """Whether something ran on the GPUs that a job had: ``busy``, ``no_process``, ``no_cpu`` or ``unknown``."""
    used = fleet.use(attempt)
    if used.gpu_kib is not None:
        return "busy" if used.gpu_kib else "no_process"
    if used.gpu_percent:
        return "busy"
    if used.cpu_us is not None and attempt.run_us and used.cpu_us < NO_CPU * attempt.run_us:
        return "no_cpu"
    return "unknown"


def hollow(fleet: Fleet, attempts: Sequence[Attempt], period: Period) -> list[Hollow]:
    """For each node what its allotted GPUs are known to have done, as far as there is evidence."""
    found: dict[str, dict[str, Fraction]] = {}
    for each in attempts:
        hours = hours_in(each, period) or Fraction(0)
        for node in each.nodes if hours else ():
            ours = found.setdefault(node, {})
            name = evidence_of(fleet, each)
            ours[name] = ours.get(name, Fraction(0)) + hours / len(each.nodes)
    return [Hollow(node=node, **hours) for node, hours in sorted(found.items())]
