"""``/v1/usage``, ``/v1/estimates``, ``/v1/payments``, ``/v1/budgets`` and ``/v1/statements``: what work costs and is allowed to.

Decides only how each is asked for; the services decide who may know what, and every figure is the bill's.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import budgets, estimates, payments, statements, usage
from ouvrage.wire.api import Listed
from ouvrage.wire.dues import (
    BudgetTold,
    EstimateTold,
    NewBudget,
    NewPayment,
    PaymentTold,
    StatementTold,
    UsageTold,
)

router = APIRouter(tags=["money"])
Text = Annotated[str | None, Query(max_length=200)]
PERIOD = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2}(\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?)?)?$"
Asked = Annotated[
    str | None,
    Query(pattern=PERIOD, description="A day, month, year or DAY..DAY; else this month."),
]


@router.get("/v1/usage", **acts("usage.read"))
def used(
    platform: PlatformDep,
    actor: UserDep,
    org: Text = None,
    project: Text = None,
    by: Annotated[str, Query(pattern="^(lease|job|project)$")] = "job",
    period: Asked = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> UsageTold:
    """What an organisation's work cost in a period, running costs included: the figures that the bill will show."""
    return usage.usage(platform, actor, org=org, project=project, by=by, period=period, limit=limit)


@router.get("/v1/estimates", **acts("job.read"))
def estimated(
    platform: PlatformDep,
    actor: UserDep,
    project: Annotated[str, Query(min_length=1, max_length=200)],
    offer: Annotated[str, Query(min_length=1, max_length=200)],
    name: Annotated[str, Query(min_length=1, max_length=200)],
    unit: Text = None,
    limit_us: Annotated[int | None, Query(ge=0, lt=2**53)] = None,
) -> EstimateTold:
    """What a job of this name will probably cost on an offer, by the organisation's own finished runs; null where there are none."""
    return estimates.estimated(
        platform, actor, project=project, offer=offer, name=name, unit=unit, limit_us=limit_us
    )


@router.get("/v1/payments", **acts("payment.read"))
def paid(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: Text = None
) -> Listed[PaymentTold]:
    """Payments, newest first."""
    rows = payments.listed(platform, actor, org=org, cursor=page.after or None, limit=page.limit)
    items, following = cut(rows, page, lambda row: row.payment)
    return Listed[PaymentTold](items=list(items), next=following)


@router.post("/v1/payments", **acts("payment.create", status=201))
def pay(once: OnceDep, asked: NewPayment) -> PaymentTold:
    """Record that an organisation paid, or was paid back."""
    return once.do(
        PaymentTold, asked, lambda tx: payments.add(tx, once.platform, once.actor, asked)
    )


@router.get("/v1/budgets", **acts("budget.read"))
def allowed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: Text = None
) -> Listed[BudgetTold]:
    """The budgets of an organisation's projects, each with what is spent of it now."""
    rows = budgets.listed(platform, actor, org=org, after=page.after, limit=page.limit + 1)
    items, following = cut(rows, page, lambda row: row.project)
    return Listed[BudgetTold](items=list(items), next=following)


@router.post("/v1/budgets", **acts("budget.change", status=201))
def allow(once: OnceDep, asked: NewBudget) -> BudgetTold:
    """Set a project's budget, or lift it."""
    return once.do(BudgetTold, asked, lambda tx: budgets.put(tx, once.platform, once.actor, asked))


@router.get("/v1/statements", **acts("invoice.read"))
def stated(
    platform: PlatformDep, actor: UserDep, org: Text = None, period: Asked = None
) -> StatementTold:
    """An organisation's account over a period, line by line."""
    return statements.statement(platform, actor, org=org, period=period)
