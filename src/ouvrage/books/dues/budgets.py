"""Budgets of projects and jobs and what follows from them: who is warned, and what is stopped gently.

Decides what of a lease falls into a budget's day or month (the growth of its cost in that time, so that the days add up to
the bill), at which shares of a budget somebody is told, and that work is stopped when all of it is spent. It returns
steps as values; the server takes them, sends SIGTERM, waits the job's grace for a checkpoint and tells whoever asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

from ouvrage.base.time import utc_text
from ouvrage.books.dues.account import Account, used_up
from ouvrage.books.dues.lease import Lease, amount_nano, amount_text, cost_until
from ouvrage.books.period import day_of, month_of, span
from ouvrage.model.dues import Budget

LEVELS = (50, 80, 100)
PERIODS = ("day", "month", "total")
BUDGET, BALANCE, JOB_BUDGET = "budget", "balance", "job-budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A budget at a moment: ``nano`` of ``allowed`` spent in the period called ``period``.

    ``level`` is the highest of ``LEVELS`` that is reached (0: none); ``used_up_us`` when all of it will be spent at the
    present burn, None where it will not in this period.
    """

    budget: Budget
    period: str
    from_us: int
    to_us: int | None
    allowed: int
    nano: int
    level: int
    used_up_us: int | None

    @property
    def percent(self) -> Fraction:
        """The share spent, in percent; 100 where nothing is allowed."""
        return Fraction(100 * self.nano, self.allowed) if self.allowed else Fraction(100)

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` and the API print of it."""
        return {
            "org": self.budget.org, "project": self.budget.project, "amount": self.budget.amount,
            "currency": self.budget.currency, "period": self.budget.period, "action": self.budget.action,
            "now": self.period, "spent": amount_text(self.nano), "level": self.level,
            "used_up_at": None if self.used_up_us is None else utc_text(self.used_up_us),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    """Somebody is to be told that ``level`` percent of a budget is spent, in the words given."""

    org: str
    project: str
    period: str
    level: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """These leases are to end, each attempt after its checkpoint; ``code`` is why, and waiting work is held back."""

    org: str
    project: str | None
    code: str
    words: str
    leases: tuple[str, ...]


def period_at(period: str, at_us: int, zone: str = "UTC") -> tuple[str, int, int | None]:
    """The day, the month or all time that a moment lies in: its name, its beginning and its end."""
    if period == "total":
        return "total", 0, None
    if period == "month":
        month = month_of(at_us, zone)
        return month.name, month.from_us, month.to_us
    day = day_of(at_us, zone)
    found = span(day, day + timedelta(days=1), zone, day.isoformat())
    return found.name, found.from_us, found.to_us


def spent_between(leases: Iterable[Lease], from_us: int, to_us: int) -> int:
    """By how much leases' costs grew in a time, in nano-units."""
    return sum(
        cost_until(each, to_us) - cost_until(each, from_us) if each.from_us < from_us
        else cost_until(each, to_us)
        for each in leases
        if each.from_us < to_us
    )  # fmt: skip


def spent_of(
    budget: Budget,
    leases: Sequence[Lease],
    at_us: int,
    zone: str = "UTC",
    nano: int | None = None,
) -> Spent | None:
    """How much of a budget is spent; ``leases`` are its project's. None for a budget that was lifted.

    ``nano`` is what is spent where that is known already; the leases then say only what goes on.
    """
    if budget.amount is None:
        return None
    name, begins, ends = period_at(budget.period, at_us, zone)
    allowed = amount_nano(budget.amount)
    nano = spent_between(leases, begins, at_us) if nano is None else nano
    going = [each for each in leases if each.ended is None]
    runs_out = used_up(going, allowed - nano, at_us)
    within = runs_out is not None and (ends is None or runs_out < ends)
    return Spent(
        budget=budget, period=name, from_us=begins, to_us=ends, allowed=allowed, nano=nano,
        level=max((level for level in LEVELS if 100 * nano >= level * allowed), default=0),
        used_up_us=runs_out if within else None,
    )  # fmt: skip


def budget_steps(
    spent: Iterable[Spent], leases: Sequence[Lease], told: Mapping[tuple[str, str], int]
) -> list[Warn | Stop]:
    """What is to be done about budgets. ``told`` is the highest level told of a project and period.

    Each level is told once a period; of several reached at once the highest. A stop is repeated while
    anything of the project runs.
    """
    found: list[Warn | Stop] = []
    for each in spent:
        project, budget = each.budget.project, each.budget
        if each.level > told.get((project, each.period), 0):
            found.append(
                Warn(
                    org=budget.org,
                    project=project,
                    period=each.period,
                    level=each.level,
                    words=_words(each),
                )
            )
        going = tuple(x.lease for x in leases if x.project == project and x.ended is None)
        if each.level >= 100 and budget.action == "stop" and going:
            found.append(
                Stop(org=budget.org, project=project, code=BUDGET, words=_words(each), leases=going)
            )
    return found


def _words(spent: Spent) -> str:
    budget = spent.budget
    when = "" if spent.period == "total" else f" of {spent.period}"
    return (
        f"{spent.level} % of the budget{when} is spent: {amount_text(spent.nano)} of "
        f"{amount_text(spent.allowed)} {budget.currency}"
    )


def balance_steps(account: Account, leases: Sequence[Lease]) -> list[Stop]:
    """The stop of everything that an organisation runs, where nothing is left to spend."""
    going = tuple(each.lease for each in leases if each.ended is None and each.org == account.org)
    if account.left > 0 or not going:
        return []
    kind = "the prepaid balance" if account.billing == "prepaid" else "the credit"
    words = f"{kind} is used up: {amount_text(account.balance)} {account.currency} left"
    return [Stop(org=account.org, project=None, code=BALANCE, words=words, leases=going)]


def job_steps(leases: Sequence[Lease], budgets: Mapping[str, str], at_us: int) -> list[Stop]:
    """The stops of jobs whose attempts have cost what the job may; ``budgets`` are decimal texts by job."""
    costs: dict[str, int] = {}
    for each in leases:
        if each.job in budgets:
            costs[each.job or ""] = costs.get(each.job or "", 0) + cost_until(each, at_us)
    found: list[Stop] = []
    for each in leases:
        job = each.job or ""
        if each.ended is None and job in costs and costs[job] >= amount_nano(budgets[job]):
            words = (
                f"the job's own budget of {budgets[job]} {each.offer.currency} is spent: "
                f"{amount_text(costs[job])}"
            )
            found.append(
                Stop(
                    org=each.org,
                    project=each.project,
                    code=JOB_BUDGET,
                    words=words,
                    leases=(each.lease,),
                )
            )
    return found


def may_start(account: Account, spent: Iterable[Spent]) -> str | None:
    """Why nothing of a project may start now, as a code; None where it may."""
    if account.left <= 0:
        return BALANCE
    return next((BUDGET for s in spent if s.level >= 100 and s.budget.action == "stop"), None)
