"""What people and programs say to the server about money: usage, payments, budgets, invoices, estimates, statements.

Amounts are exact decimal text in the organisation's currency, null where they are not known. Moments are RFC 3339 text, as
every report prints them; lengths of time are seconds as decimal text.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ouvrage.model.dues import BUDGET_ACTIONS
from ouvrage.wire.api import PLAIN, Amount, Answer, Name, Words
from ouvrage.wire.runner import Message

Signed = Annotated[str, Field(pattern=r"^-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$")]
Share = Annotated[str, Field(pattern=r"^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)$")]
Month = Annotated[
    str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2}(\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?)?)?$")
]
Language = Annotated[str, Field(pattern="^(en|fr)$")]
Moment = Annotated[str, Field(max_length=40, pattern=PLAIN)]


class AccountTold(Answer):
    """An organisation's money now. ``left`` is what may still be spent; ``tax_to_come`` null where no tax is stated."""

    org: str
    name: str
    currency: str
    billing: str
    paid: str
    charged: str
    running: str
    tax: str
    rounding: str
    balance: str
    credit_limit: str
    left: str
    tax_to_come: str | None
    burn_per_hour: str
    used_up_at: str | None
    as_of: str


class UsageRow(Answer):
    """What a lease, job or project cost in the period: charged, and running and not charged yet; both are the ``cost``."""

    key: str
    code: str
    name: str
    project: str
    state: str
    seconds: str
    charged: str
    running: str
    cost: str


class RentedTold(Answer):
    """A machine that its owner rents: what it cost since ``from_us``, and ``idle`` of that while nothing ran on it.

    ``working_s`` while at least one attempt ran, ``held_s`` while none did. ``rate`` is as it was stated.
    """

    lease: str
    code: str
    from_us: int
    working_s: str
    held_s: str
    paid: str
    idle: str
    currency: str
    plan: str
    rate: str | None


class UsageTold(Answer):
    """What an organisation's work cost in a period, the dearest first; ``left_out`` rows cost ``left_out_cost`` together."""

    account: AccountTold | None
    rented: RentedTold | None
    currency: str
    period: str
    by: str
    rows: list[UsageRow]
    cost: str
    left_out: int
    left_out_cost: str
    grade: str
    as_of: str


class NewPayment(Message):
    """``POST /v1/payments``: an organisation paid in, or (negative) was paid back."""

    org: Name
    amount: Signed
    reference: Words = ""
    at: Moment | None = None


class PaymentTold(Answer):
    """A payment."""

    payment: str
    code: str
    org: str
    name: str
    amount: str
    currency: str
    reference: str
    by: str
    at: str


class NewBudget(Message):
    """``POST /v1/budgets``: what a project may spend in each period; ``amount`` null lifts it."""

    project: Name
    amount: Amount | None
    period: Annotated[str, Field(pattern="^(day|month|total)$")] = "month"
    action: Annotated[str, Field(pattern=f"^({'|'.join(BUDGET_ACTIONS)})$")] = "stop"


class BudgetTold(Answer):
    """A project's budget and how much of it is spent; ``spent`` null and ``level`` 0 where it was lifted."""

    project: str
    name: str
    amount: str | None
    currency: str
    period: str
    action: str
    now: str | None
    spent: str | None
    level: int
    used_up_at: str | None


class NewTax(Message):
    """``POST /v1/taxes``: the share of tax on what tenants are charged, of all or of one."""

    rate: Share
    tenant: Name | None = None


class TaxTold(Answer):
    """The rate that holds from now on."""

    about: str
    rate: str


class NewInvoice(Message):
    """``POST /v1/invoices``: issue what an organisation was charged up to the end of a period (null: this month)."""

    org: Name
    period: Month | None = None


class NewCredit(Message):
    """``POST /v1/invoices/{number}/credit``: give back an invoice, or some of its charges, and say why."""

    why: Annotated[str, Field(min_length=3, max_length=200, pattern=PLAIN)]
    charges: list[Name] = Field(default_factory=list[Name], max_length=10_000)


class InvoiceLineTold(Answer):
    """One charge."""

    charge: str
    project: str
    job: str | None
    job_name: str | None
    lease: str
    attempt: str | None
    offer: str
    from_: Annotated[str, Field(alias="from")]
    to: str
    rule: str
    words: str
    price: str | None
    quantity: str
    unit: str
    amount: str
    credits: str | None
    grade: str


class WorkTold(Answer):
    """A job, or a lease, with what it cost and what it finished (null: not counted)."""

    project: str
    job: str | None
    name: str
    seconds: str
    amount: str
    unit: str | None
    finished: int | None
    cost_per_unit: str | None
    grade: str


class NotCharged(Answer):
    """What was held and not charged."""

    project: str
    job: str | None
    lease: str
    seconds: str
    why: str


class ProjectSum(Answer):
    """The charges of a project."""

    project: str
    amount: str


class PeriodTold(Answer):
    """A half-open period."""

    name: str
    from_: Annotated[str, Field(alias="from")]
    to: str


class TableShown(Answer):
    """A table of texts; ``right`` has ``<`` or ``>`` a column."""

    heading: str
    columns: list[str]
    rows: list[list[str]]
    right: str


class SumShown(Answer):
    """A line of the sum."""

    label: str
    text: str
    strong: bool


class InvoiceShown(Answer):
    """The invoice in words of a language."""

    language: str
    title: str
    headline: str
    draft: str
    issuer: list[str]
    recipient: list[str]
    about: list[list[str]]
    tables: list[TableShown]
    sums: list[SumShown]
    notes: list[str]


class InvoiceTold(Answer):
    """An invoice, or a draft (``number`` null). ``corrects`` is the id of the invoice that a credit note is about."""

    number: str | None
    issued_at: str | None
    corrects: str | None
    org: str
    name: str
    issuer: str
    currency: str
    period: PeriodTold
    charged: str
    rounding: str
    net: str
    tax_rate: str | None
    tax: str | None
    total: str | None
    paid_before: str
    due: str | None
    running: str
    grade: str
    as_of: str
    work: list[WorkTold]
    lines: list[InvoiceLineTold]
    projects: list[ProjectSum]
    not_charged: list[NotCharged]
    shown: InvoiceShown


class InvoiceListed(Answer):
    """An issued invoice in a list."""

    invoice: str
    number: str
    org: str
    name: str
    currency: str
    net: str
    tax: str
    total: str
    issued_at: str
    from_: Annotated[str, Field(alias="from")]
    to: str
    charges: int
    credits: str | None


class SpreadTold(Answer):
    """The middle of some values and how far they reach."""

    median: str
    low: str
    high: str


class EstimateTold(Answer):
    """What a job will probably cost by the organisation's own earlier runs; null where there are none."""

    name: str
    offer: str
    currency: str
    runs: int
    same_configuration: bool
    seconds: SpreadTold | None
    cost: SpreadTold | None
    unit: str | None
    cost_per_unit: SpreadTold | None
    time_grade: str | None
    grade: str | None
    why: str


class StatementLine(Answer):
    """What changed an account, by how much, and the balance after it."""

    at: str
    sort: str
    words: str
    amount: str
    balance: str


class StatementTold(Answer):
    """An account over a period: ``opening`` and the lines add up to ``closing``, without what still runs."""

    org: str
    name: str
    currency: str
    from_: Annotated[str, Field(alias="from")]
    to: str
    opening: str
    lines: list[StatementLine]
    closing: str
    running: str
    as_of: str
