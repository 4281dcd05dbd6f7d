"""``ouvrage budget``: what projects may spend.

Decides only how it is asked for and printed. Each verb is one request under ``/v1/budgets``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.cli.money_words import minute, short
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk
from ouvrage.model.dues import BUDGET_ACTIONS


@click.group()
def budget() -> None:
    """Budgets of projects: told at 50, 80 and 100 %, stopped at all of it where you want."""


@budget.command("set")
@click.argument("project")
@click.argument("amount", required=False)
@click.option(
    "--period", type=click.Choice(["day", "month", "total"]), default="month", show_default=True
)
@click.option("--action", type=click.Choice(BUDGET_ACTIONS), default="stop", show_default=True)
@click.option("--lift", is_flag=True, help="No budget from now on.")
@json_option
def set_(
    project: str, amount: str | None, period: str, action: str, lift: bool, as_json: bool
) -> None:
    """PROJECT may spend AMOUNT in each period; at all of it work is stopped after its checkpoint."""
    if (amount is None) != lift:
        raise click.UsageError("name an AMOUNT, or --lift")
    body = {"project": project, "amount": amount, "period": period, "action": action}
    with talk() as server:
        made = server.post("/v1/budgets", body)
    wrote()
    if as_json:
        say_json(made)
        return
    say_text(f"{_words(made)}\nAll of them: ouvrage budget list")


def _words(told: Any) -> str:
    name = safe(told["name"])
    if told["amount"] is None:
        return f"{name} has no budget"
    return (
        f"{name} may spend {told['amount']} {told['currency']} {_each(told['period'])}; "
        f"{short(told['spent'], told['currency'])} is spent"
    )


def _each(period: str) -> str:
    return "in all" if period == "total" else f"a {period}"


@budget.command("list")
@click.option("--org", metavar="NAME", help="Whose; else your own organisation's.")
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """Budgets, and how much of each is spent now."""
    with talk() as server:
        found = list(server.every("/v1/budgets", org=org))
    if as_json:
        say_json(found)
        return
    set_now = [each for each in found if each["amount"] is not None]
    full = [each for each in set_now if each["level"] >= 100]
    first = f"{len(set_now)} budgets, {len(full)} of them spent" if set_now else "No budget is set"
    rows = [
        [
            safe(b["name"]), f"{b['amount']} {b['currency']} {_each(b['period'])}", b["now"], b["spent"],
            f"{b['level']} %" if b["level"] else "under 50 %", minute(b["used_up_at"]), b["action"],
        ]
        for b in set_now
    ]  # fmt: skip
    lines = [first]
    if rows:
        head = ("project", "may spend", "now", "spent", "told", "used up", "then")
        lines += ["", table(head, rows, "<<<>><<")]
    say_text("\n".join([*lines, "Set one: ouvrage budget set PROJECT AMOUNT"]))
