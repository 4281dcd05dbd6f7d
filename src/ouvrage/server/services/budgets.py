"""Budgets of projects: set, lifted, and how much of each is spent now.

Decides that a budget is in the organisation's currency and that a changed one is told anew. What follows from one is ``money``'s.
"""

from __future__ import annotations

from ouvrage.base.time import utc_text
from ouvrage.books.dues.lease import amount_text
from ouvrage.model.dues import Budget
from ouvrage.model.tenancy import Project
from ouvrage.server.authorise import authorise, visible_projects
from ouvrage.server.context import Actor, Platform
from ouvrage.server.recording import record, stated
from ouvrage.server.services.billing import billed
from ouvrage.server.services.money import spent_now
from ouvrage.server.services.naming import organisation_meant, project_meant
from ouvrage.server.wakes import ENGINE
from ouvrage.store.platform.dues import (
    budgets_of_org,
    forget_warned,
    leases_meeting,
    put_budget,
)
from ouvrage.store.platform.tenancy import project_of
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.dues import BudgetTold, NewBudget


def put(tx: Transaction, platform: Platform, actor: Actor, asked: NewBudget) -> BudgetTold:
    """Set or lift a project's budget."""
    project = project_meant(tx.connection, actor, asked.project)
    authorise(actor, "budget.change", org=project.org, project=project.project)
    org = organisation_meant(tx.connection, actor, project.org)
    budget = Budget(
        org=org.org, project=project.project, amount=asked.amount, currency=org.currency,
        period=asked.period, action=asked.action,
    )  # fmt: skip
    put_budget(tx.connection, budget)
    forget_warned(tx.connection, project.project)
    fact = stated(platform, budget, subject=f"project:{project.project}", at_us=tx.now_us)
    detail = (
        "lifted"
        if budget.amount is None
        else f"{budget.amount} {budget.currency} a {budget.period}"
    )
    record(
        tx, platform, actor, "budget.set", org=org.org, target=project.project, detail=detail, facts=(fact,)
    )  # fmt: skip
    platform.wakes.tell(ENGINE)
    return _told(tx.connection, budget, project, tx.now_us)


def listed(
    platform: Platform, actor: Actor, *, org: str | None, after: str, limit: int
) -> list[BudgetTold]:
    """The first ``limit`` budgets after a project that somebody may see, each with what is spent of it now."""
    with platform.reading() as connection:
        found = organisation_meant(connection, actor, org)
        within = visible_projects(actor, found.org)
        if within is None:
            authorise(actor, "budget.read", org=found.org)
        for each in within or ():
            authorise(actor, "budget.read", org=found.org, project=each)
        now = platform.clock()
        told: list[BudgetTold] = []
        for budget in budgets_of_org(connection, found.org, after):
            if len(told) == limit:
                break
            project = project_of(connection, budget.project)
            if project is not None and (within is None or project.project in within):
                told.append(_told(connection, budget, project, now))
    return told


def _told(connection: Connection, budget: Budget, project: Project, now_us: int) -> BudgetTold:
    rows = leases_meeting(connection, project=budget.project, from_us=now_us, to_us=now_us + 1)
    going = [each for each in billed(connection, rows) if each.ended is None]
    spent = spent_now(connection, budget, going, now_us)
    used_up = spent.used_up_us if spent else None
    return BudgetTold(
        project=budget.project, name=project.name, amount=budget.amount, currency=budget.currency,
        period=budget.period, action=budget.action, now=spent.period if spent else None,
        spent=amount_text(spent.nano) if spent else None, level=spent.level if spent else 0,
        used_up_at=None if used_up is None else utc_text(used_up),
    )  # fmt: skip
