"""What work cost in a period, by lease, job or project, and what it costs at this moment.

Decides that a row's cost is the growth of its leases' costs in the period, so that the rows add up to the bill and a running cost is the figure
that the bill will show; and that somebody with a role in one project is shown that project alone, and no account.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.numbers import decimal_text
from ouvrage.base.time import SECOND, utc_text
from ouvrage.books.dues.budgets import spent_between
from ouvrage.books.dues.charging import charged_nano, of_cost
from ouvrage.books.dues.lease import Lease, amount_text
from ouvrage.books.period import Period
from ouvrage.model.tenancy import Organisation, Project
from ouvrage.server.authorise import authorise, is_owner_side, may, visible_projects
from ouvrage.server.context import Actor, Platform
from ouvrage.server.services.billing import account, billed, period_asked
from ouvrage.server.services.naming import organisation_meant, project_meant
from ouvrage.server.services.rented import rented_told
from ouvrage.store.platform.dues import charges_of_leases, leases_meeting
from ouvrage.store.platform.tenancy import list_projects
from ouvrage.store.platform.work import jobs_by_id
from ouvrage.store.transaction import Connection
from ouvrage.wire.dues import AccountTold, UsageRow, UsageTold

BY = ("lease", "job", "project")


@dataclass(slots=True)
class _Row:
    key: str
    name: str
    project: str
    state: str = "ended"
    us: int = 0
    charged: int = 0
    running: int = 0
    leases: list[Lease] = field(default_factory=list)

    @property
    def cost(self) -> int:
        return self.charged + self.running


def usage(
    platform: Platform,
    actor: Actor,
    *,
    org: str | None,
    project: str | None,
    by: str,
    period: str | None,
    limit: int,
) -> UsageTold:
    """What an organisation, or one of its projects, cost in a period (None: this month)."""
    now = platform.clock()
    asked = period_asked(period, now)
    with platform.reading() as connection:
        organisation, projects = _meant(connection, actor, org, project)
        rows = _rows(connection, organisation, projects, by, asked, now)
        money, rented = None, None
        if is_owner_side(actor) and organisation.side == "owner":
            rented = rented_told(connection, now)
        if may(actor, "usage.read", org=organisation.org):
            money = account_told(connection, organisation, now)
    shown, rest = rows[:limit], rows[limit:]
    return UsageTold(
        account=money, rented=rented, currency=organisation.currency, period=asked.name, by=by,
        rows=[_told(each) for each in shown], cost=amount_text(sum(each.cost for each in rows)),
        left_out=len(rest), left_out_cost=amount_text(sum(each.cost for each in rest)),
        grade=Grade.METERED.word, as_of=utc_text(now),
    )  # fmt: skip


def account_told(connection: Connection, org: Organisation, now_us: int) -> AccountTold:
    """An organisation's money now."""
    return AccountTold(**account(connection, org, now_us).as_json())


def _meant(
    connection: Connection, actor: Actor, org: str | None, project: str | None
) -> tuple[Organisation, dict[str, Project]]:
    """Whose usage is asked for: an organisation's, in the projects that the asker may see."""
    if project is not None:
        found = project_meant(connection, actor, project)
        authorise(actor, "usage.read", org=found.org, project=found.project)
        return organisation_meant(connection, actor, found.org), {found.project: found}
    organisation = organisation_meant(connection, actor, org)
    within = visible_projects(actor, organisation.org)
    if within is None:
        authorise(actor, "usage.read", org=organisation.org)
    for each in within or ():
        authorise(actor, "usage.read", org=organisation.org, project=each)
    listed = list_projects(
        connection, orgs=[organisation.org], within=within, after="", limit=100_000
    )
    return organisation, {each.project: each for each in listed}


def _rows(
    connection: Connection,
    org: Organisation,
    projects: dict[str, Project],
    by: str,
    period: Period,
    now_us: int,
) -> list[_Row]:
    end = min(period.to_us, now_us)
    meeting = leases_meeting(
        connection, org=org.org, from_us=period.from_us, to_us=max(end, period.from_us)
    )
    leases = [each for each in billed(connection, meeting) if each.project in projects]
    names = jobs_by_id(connection, [each.job for each in leases if each.job])
    found: dict[str, _Row] = {}
    for each in leases:
        project = projects[each.project].name
        job = names.get(each.job or "")
        name = job.name if job else f"lease of {each.offer.name}"
        key, shown = {
            "lease": (each.lease, name),
            "job": (each.job or each.lease, name),
            "project": (each.project, project),
        }[by]
        found.setdefault(key, _Row(key=key, name=shown, project=project)).leases.append(each)
    for row in found.values():
        _fill(connection, row, period, end)
    return sorted(found.values(), key=lambda row: (-row.cost, row.key))


def _fill(connection: Connection, row: _Row, period: Period, end: int) -> None:
    if any(each.ended is None for each in row.leases):
        row.state = "running"
    row.us = sum(each.held_us(end) - each.held_us(period.from_us) for each in row.leases)
    cost = spent_between(row.leases, period.from_us, end)
    row.charged = _charged(connection, row.leases, period)
    row.running = cost - row.charged


def _charged(connection: Connection, leases: Sequence[Lease], period: Period) -> int:
    """What was charged of some leases for time in a period that ended with a month or with the lease."""
    return charged_nano(
        each
        for each in of_cost(charges_of_leases(connection, [x.lease for x in leases]))
        if period.from_us <= each.valid_from and each.end <= period.to_us
    )


def _told(row: _Row) -> UsageRow:
    return UsageRow(
        key=row.key, code=code_of(row.key), name=row.name, project=row.project, state=row.state,
        seconds=decimal_text(Fraction(row.us, SECOND)), charged=amount_text(row.charged),
        running=amount_text(row.running), cost=amount_text(row.cost),
    )  # fmt: skip
