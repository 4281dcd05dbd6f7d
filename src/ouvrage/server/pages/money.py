"""What work costs and who has paid: an organisation's account, its jobs by cost, budgets, and the bill as it would be now.

Decides nothing about money; the figures and the words of the bill are those of the services, so that a page, a command and the
invoice never differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from ouvrage.base.grades import Grade, grade_of
from ouvrage.console.blocks import Block, Cell, ConsolePage, Field, Form, Notice, Said, Table, Tiles
from ouvrage.model.dues import BUDGET_ACTIONS
from ouvrage.server.authorise import is_owner_side, may
from ouvrage.server.pages.frame import Visit, asked, deed, page
from ouvrage.server.pages.told import money
from ouvrage.server.services import budgets, invoices, organisations, payments, projects, usage
from ouvrage.wire.api import OrganisationTold
from ouvrage.wire.dues import (
    AccountTold,
    BudgetTold,
    NewBudget,
    NewPayment,
    PaymentTold,
    TableShown,
    UsageRow,
    UsageTold,
)

router = APIRouter()
MOST = 100


def account(seen: Visit) -> ConsolePage:
    """The money of the organisation that the address names, or of the reader's own."""
    _ = seen.word
    name = seen.given("org") or None
    if name is None and is_owner_side(seen.who):
        return _choice(seen)
    told = usage.usage(
        seen.platform, seen.who, org=name, project=None, by="job", period=None, limit=MOST
    )
    blocks: list[Block] = []
    if told.account is not None:
        blocks += [*_warnings(seen, told.account), _tiles(seen, told.account)]
    blocks.append(_jobs(seen, told))
    if told.account is not None:
        blocks.append(_budgets(seen, told.account.org))
        blocks += _forms(seen, told.account)
    blocks += _bill(seen, told)
    inside = name if is_owner_side(seen.who) else None
    return ConsolePage(
        title=inside or _("Money"),
        headline=_headline(seen, told),
        lead=(_("Every amount is what the bill will say."),),
        place="money",
        trail=((_("Money"), "/money"),) if inside else (),
        blocks=tuple(blocks),
        live_s=10,
    )


def _headline(seen: Visit, told: UsageTold) -> str:
    _ = seen.word
    cost = money(told.cost, told.currency, seen.language).text
    if told.account is None:
        return f"{_('This month so far')}: {cost}"
    left = money(told.account.left, told.currency, seen.language).text
    return f"{told.account.name}: {_('this month so far')} {cost}; {_('left to spend')} {left}"


def _choice(seen: Visit) -> ConsolePage:
    """Every tenant's account, for the owner's side."""
    _ = seen.word
    found = [
        each
        for each in organisations.listed(seen.platform, seen.who, "", MOST)
        if each.side == "tenant"
    ]
    rows = tuple(_account_row(seen, each) for each in found)
    return ConsolePage(
        title=_("Money"),
        headline=_("What tenants owe and have left"),
        lead=(),
        place="money",
        blocks=(
            Table(
                heading="",
                columns=(_("Tenant"), _("Pays"), _("Paid in"), _("Charged"), _("Running now"), _("Left to spend"), _("Per hour now")),
                rows=rows,
                empty=_("No tenant yet: make one under Tenants and budgets."),
            ),
        ),
        live_s=10,
    )  # fmt: skip


def _account_row(seen: Visit, each: OrganisationTold) -> tuple[Cell, ...]:
    told = usage.usage(
        seen.platform, seen.who, org=each.org, project=None, by="project", period=None, limit=1
    ).account
    assert told is not None  # the owner's side sees every account
    lang = seen.language
    return (
        Cell(text=each.name, href=f"/money?org={each.name}"),
        Cell(text=seen.word(each.billing)),
        money(told.paid, told.currency, lang),
        money(told.charged, told.currency, lang),
        money(told.running, told.currency, lang),
        money(told.left, told.currency, lang),
        money(told.burn_per_hour, told.currency, lang),
    )


def _warnings(seen: Visit, told: AccountTold) -> list[Block]:
    _ = seen.word
    if told.used_up_at is None:
        return []
    words = f"{_('At the present pace the money is used up at')} {told.used_up_at[:16].replace('T', ' ')} UTC"
    return [Notice(text=words, tone="wait")]


def _tiles(seen: Visit, told: AccountTold) -> Tiles:
    _ = seen.word
    lang = seen.language
    return Tiles(
        tiles=(
            (_("Left to spend"), money(told.left, told.currency, lang)),
            (_("Paid in"), money(told.paid, told.currency, lang)),
            (_("Charged"), money(told.charged, told.currency, lang, Grade.METERED)),
            (_("Running now"), money(told.running, told.currency, lang, Grade.METERED)),
            (_("Per hour now"), money(told.burn_per_hour, told.currency, lang)),
        )
    )


def _jobs(seen: Visit, told: UsageTold) -> Table:
    _ = seen.word
    return Table(
        heading=_("What cost it, this month"),
        columns=(_("Job or lease"), _("Project"), _("State"), _("Charged"), _("Running now"), _("Cost")),
        rows=tuple(_job_row(seen, each, told) for each in told.rows),
        empty=_("Nothing has cost anything this month."),
    )  # fmt: skip


def _job_row(seen: Visit, each: UsageRow, told: UsageTold) -> tuple[Cell, ...]:
    lang, currency, grade = seen.language, told.currency, grade_of(told.grade)
    return (
        Cell(text=f"{each.code} {each.name}"),
        Cell(text=each.project),
        Cell(text=seen.word(each.state)),
        money(each.charged, currency, lang),
        money(each.running, currency, lang),
        money(each.cost, currency, lang, grade),
    )


def _budgets(seen: Visit, org: str) -> Table:
    _ = seen.word
    found = (
        budgets.listed(seen.platform, seen.who, org=org, after="", limit=MOST)
        if may(seen.who, "budget.read", org=org)
        else []
    )
    return Table(
        heading=_("Budgets"),
        columns=(_("Project"), _("Budget"), _("Each"), _("Spent"), _("At the end of it")),
        rows=tuple(_budget_row(seen, each) for each in found if each.amount is not None),
        empty=_("No budget: work stops only where the money is used up."),
    )  # fmt: skip


def _budget_row(seen: Visit, each: BudgetTold) -> tuple[Cell, ...]:
    _ = seen.word
    spent = money(each.spent, each.currency, seen.language)
    tone = "bad" if each.level >= 100 else "wait" if each.level >= 50 else "plain"
    note = f"{_('beyond')} {each.level} %" if each.level else ""
    return (
        Cell(text=each.name),
        money(each.amount, each.currency, seen.language),
        Cell(text=_(each.period)),
        Cell(text=spent.text, tone=tone, note=note, number=True),
        Cell(text=_("work is stopped") if each.action == "stop" else _("only a warning")),
    )


def _forms(seen: Visit, told: AccountTold) -> list[Block]:
    _ = seen.word
    found: list[Block] = []
    if may(seen.who, "budget.change", org=told.org):
        mine = projects.listed(seen.platform, seen.who, told.org, "", MOST)
        found.append(
            Form(
                heading=_("Set a budget"),
                action="/money/budgets",
                submit=_("Set it"),
                twin="ouvrage budget set PROJECT AMOUNT --each month",
                open=False,
                fields=(
                    Field(name="org", label="", kind="hidden", value=told.name),
                    Field(name="project", label=_("Project"), kind="select", choices=tuple((p.project, p.name) for p in mine)),
                    Field(name="amount", label=_("Amount"), required=False, help=_("Empty lifts it.")),
                    Field(name="period", label=_("Each"), kind="select", value="month", choices=tuple((w, _(w)) for w in ("day", "month", "total"))),
                    Field(name="action", label=_("At the end of it"), kind="select", value="stop", choices=tuple((w, _(w)) for w in BUDGET_ACTIONS)),
                ),
            )
        )  # fmt: skip
    if may(seen.who, "payment.create", org=told.org):
        found.append(
            Form(
                heading=_("Note a payment"),
                action="/money/payments",
                submit=_("Note it"),
                twin=f"ouvrage payment add {told.name} AMOUNT",
                open=False,
                fields=(
                    Field(name="org", label="", kind="hidden", value=told.name),
                    Field(name="amount", label=_("Amount")),
                    Field(name="reference", label=_("Reference"), required=False),
                ),
            )
        )
    return found


def _bill(seen: Visit, told: UsageTold) -> list[Block]:
    """The bill of the month as it would be issued now, in its own words."""
    if told.account is None or not may(seen.who, "invoice.read", org=told.account.org):
        return []
    made = invoices.drafted(seen.platform, seen.who, told.account.org, None)
    words = invoices.told_of(seen.platform, made, seen.language).shown
    sums = Table(
        heading=words.headline,
        columns=("", words.title),
        rows=tuple((Cell(text=s.label), Cell(text=s.text, number=True)) for s in words.sums),
    )
    return [*(_shown(table) for table in words.tables), sums, Said(heading=words.title, text="\n".join(words.notes))]  # fmt: skip


def _shown(table: TableShown) -> Table:
    return Table(
        heading=table.heading,
        columns=tuple(table.columns),
        rows=tuple(_cells(row, table.right) for row in table.rows),
        empty="–",
    )


def _cells(row: Sequence[str], right: str) -> tuple[Cell, ...]:
    return tuple(Cell(text=text, number=side == ">") for text, side in zip(row, right, strict=True))


def set_budget(seen: Visit, form: dict[str, str]) -> str:
    """Set or lift a project's budget."""
    once = seen.once(form)
    wanted = asked(
        NewBudget,
        project=form.get("project", ""),
        amount=form.get("amount", "").strip() or None,
        period=form.get("period", ""),
        action=form.get("action", ""),
    )
    once.do(BudgetTold, wanted, lambda tx: budgets.put(tx, seen.platform, seen.who, wanted))
    return _back(seen, form)


def add_payment(seen: Visit, form: dict[str, str]) -> str:
    """Note that a tenant paid."""
    once = seen.once(form)
    wanted = asked(
        NewPayment,
        org=form.get("org", ""),
        amount=form.get("amount", "").strip(),
        reference=form.get("reference", "").strip(),
    )
    once.do(PaymentTold, wanted, lambda tx: payments.add(tx, seen.platform, seen.who, wanted))
    return _back(seen, form)


def _back(seen: Visit, form: dict[str, str]) -> str:
    name = form.get("org", "")
    return (
        f"/money?org={name}"
        if is_owner_side(seen.who) and name.replace("-", "").isalnum()
        else "/money"
    )


page(router, "/money", account)
deed(router, "/money/budgets", set_budget)
deed(router, "/money/payments", add_payment)
