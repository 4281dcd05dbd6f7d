"""What money forbids and what it ends: jobs that may not start, warnings of budgets, stops after a checkpoint.

Decides which accounts and budgets are looked at (those of whatever runs or waits) and carries out the steps that ``books.dues`` makes of
them: a warning is written once into the tenant's trail, a stop asks each attempt to end within its job's own grace, and a lease for
a term to end with its last attempt. The owner's own organisation pays nobody, and only its budgets count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ouvrage.books.dues.account import running_nano
from ouvrage.books.dues.budgets import (
    BALANCE,
    Spent,
    Stop,
    Warn,
    balance_steps,
    budget_steps,
    job_steps,
    period_at,
    spent_of,
)
from ouvrage.books.dues.lease import Lease, amount_nano, amount_text, cost_until
from ouvrage.model.dues import Budget
from ouvrage.model.tenancy import Organisation, Project
from ouvrage.placement.snapshot import Hold
from ouvrage.server.context import SERVER, Platform
from ouvrage.server.errors import conflict
from ouvrage.server.recording import record
from ouvrage.server.services.billing import ZONE, account, billed, charge_months
from ouvrage.server.services.snapshots import Holds
from ouvrage.store.platform.dues import (
    budgets_of,
    charged_since,
    charges_of_leases,
    leases_called,
    leases_meeting,
    put_warned,
    warned,
)
from ouvrage.store.platform.selling import open_leases
from ouvrage.store.platform.tenancy import organisation_of
from ouvrage.store.platform.work import JobRow, attempts_of, jobs_by_id
from ouvrage.store.transaction import Connection, Transaction


def spent_now(
    connection: Connection, budget: Budget, going: Sequence[Lease], now_us: int
) -> Spent | None:
    """How much of a budget is spent; ``going`` are the project's leases that run.

    Of a month or of all time from the charges, whose times end with months, and from what runs beyond them; of a day from
    the leases of that day.
    """
    if budget.amount is None:
        return None
    _, begins, ends = period_at(budget.period, now_us, ZONE)
    if budget.period == "day":
        rows = leases_meeting(
            connection, project=budget.project, from_us=begins, to_us=ends or now_us + 1
        )
        return spent_of(budget, billed(connection, rows), now_us, ZONE)
    charged = charged_since(connection, budget.project, begins)
    before = charges_of_leases(connection, [each.lease for each in going])
    nano = charged + running_nano(going, before, now_us)
    return spent_of(budget, going, now_us, ZONE, nano=nano)


def look(platform: Platform, tx: Transaction) -> list[Stop]:
    """Charge months that ended, tell what is to be told, and give the stops that are to be carried out."""
    rows = open_leases(tx.connection)
    charge_months(platform, tx, rows)
    going = billed(tx.connection, rows)
    stops: list[Stop] = []
    for org in {each.org for each in going}:
        found = organisation_of(tx.connection, org)
        if found is not None and found.side != "owner":
            stops += balance_steps(account(tx.connection, found, tx.now_us, ahead=False), going)
    for step in _budgets(tx, going):
        if isinstance(step, Stop):
            stops.append(step)
        else:
            _tell(platform, tx, step)
    return [*stops, *_jobs(tx.connection, going, tx.now_us)]


def _budgets(tx: Transaction, going: Sequence[Lease]) -> list[Warn | Stop]:
    found: list[Spent] = []
    told: dict[tuple[str, str], int] = {}
    for project, budget in budgets_of(tx.connection, [each.project for each in going]).items():
        ours = [each for each in going if each.project == project]
        spent = spent_now(tx.connection, budget, ours, tx.now_us)
        if spent is not None:
            found.append(spent)
            told[project, spent.period] = warned(tx.connection, project, spent.period)
    return budget_steps(found, going, told)


def _tell(platform: Platform, tx: Transaction, step: Warn) -> None:
    put_warned(tx.connection, step.project, step.period, step.level, tx.now_us)
    record(
        tx,
        platform,
        SERVER,
        "budget.warn",
        org=step.org,
        target=step.project,
        detail=step.words,
    )


def _jobs(connection: Connection, going: Sequence[Lease], now_us: int) -> list[Stop]:
    """Stops of jobs that have cost what they may, all their attempts together."""
    jobs = jobs_by_id(connection, [each.job for each in going if each.job])
    limits = {job: row.spec.budget for job, row in jobs.items() if row.spec.budget is not None}
    if not limits:
        return []
    return job_steps(_attempts_of(connection, limits), limits, now_us)


def _attempts_of(connection: Connection, jobs: Iterable[str]) -> list[Lease]:
    """The leases of all attempts of some jobs."""
    names = [each.lease for job in jobs for each in attempts_of(connection, job)]
    return billed(
        connection, [row for row in leases_called(connection, names) if row.kind == "job"]
    )


def waits_for_money(connection: Connection, waiting: Sequence[JobRow], now_us: int) -> Holds:
    """Jobs that may not start for want of money, by the balance, a budget or their own limit."""
    found: dict[str, list[Hold]] = {}
    holds: dict[tuple[str, str, bool], list[Hold]] = {}
    for job in waiting:
        key = (job.org, job.project, job.lease is not None)
        if key not in holds:
            holds[key] = _holds(connection, job, now_us)
        own = _own_limit(connection, job, now_us)
        if holds[key] or own:
            found[job.job] = [*holds[key], *own]
    return found


def _holds(connection: Connection, job: JobRow, now_us: int) -> list[Hold]:
    """What holds the jobs of a project. Work in a lease that is paid for already needs no balance of its own."""
    found: list[Hold] = []
    org = organisation_of(connection, job.org)
    if org is not None and job.lease is None:
        found += _balance_hold(connection, org, now_us)
    budget = budgets_of(connection, [job.project]).get(job.project)
    if budget is not None and budget.action == "stop" and job.lease is None:
        rows = leases_meeting(connection, project=job.project, from_us=now_us, to_us=now_us + 1)
        going = [each for each in billed(connection, rows) if each.ended is None]
        spent = spent_now(connection, budget, going, now_us)
        if spent is not None and spent.level >= 100:
            words = (
                f"the budget of {spent.period} is spent: {amount_text(spent.nano)} of "
                f"{budget.amount} {budget.currency}"
            )
            found.append(Hold(kind="budget", words=words))
    return found


def _balance_hold(connection: Connection, org: Organisation, now_us: int) -> list[Hold]:
    if org.side == "owner":
        return []
    found = account(connection, org, now_us, ahead=False)
    if found.left > 0:
        return []
    words = (
        f"nothing is left to spend: the balance is {amount_text(found.balance)} {found.currency}"
    )
    return [Hold(kind=BALANCE, words=words)]


def _own_limit(connection: Connection, job: JobRow, now_us: int) -> list[Hold]:
    if job.spec.budget is None or not job.attempts or job.lease is not None:
        return []
    leases = _attempts_of(connection, [job.job])
    cost = sum(cost_until(each, now_us) for each in leases)
    if cost < amount_nano(job.spec.budget):
        return []
    return [Hold(kind="budget", words=f"its own budget of {job.spec.budget} is spent")]


def refuse_without_money(connection: Connection, project: Project, now_us: int) -> None:
    """Raise ``Refused`` 409 where an organisation or a project has nothing left to lease anything with."""
    org = organisation_of(connection, project.org)
    holds = [] if org is None else _balance_hold(connection, org, now_us)
    if holds:
        raise conflict(
            "lease/balance",
            holds[0].words,
            hint="the owner records what was paid: ouvrage payment add",
        )
