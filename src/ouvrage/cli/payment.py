"""``ouvrage payment``: what tenants paid in.

Decides only how it is asked for and printed. Each verb is one request under ``/v1/payments``.
"""

from __future__ import annotations

import click

from ouvrage.base.text import safe
from ouvrage.cli.money_words import day, short
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text, shortened, table, wrote
from ouvrage.cli.talking import talk


@click.group()
def payment() -> None:
    """Payments of tenants, as the owner records them."""


@payment.command()
@click.argument("tenant")
@click.argument("amount")
@click.option("--reference", metavar="TEXT", default="", help="What the bank's line says.")
@click.option("--at", metavar="TIME", help="When it came; else now.")
@json_option
def add(tenant: str, amount: str, reference: str, at: str | None, as_json: bool) -> None:
    """TENANT paid AMOUNT in, in its own currency; `-- -5` was paid back."""
    body = {"org": tenant, "amount": amount, "reference": reference, "at": at}
    with talk() as server:
        made = server.post("/v1/payments", body)
        account = server.get("/v1/usage", org=made["org"], limit=1)["account"]
    wrote()
    if as_json:
        say_json(made)
        return
    say_text(
        f"{made['amount']} {made['currency']} of {safe(made['name'])} is recorded; "
        f"it has {short(account['left'], made['currency'])} left to spend\n"
        f"All of them: ouvrage payment list --org {made['name']}"
    )


@payment.command("list")
@click.option("--org", metavar="NAME", help="Whose; else of all that you may see.")
@json_option
def list_(org: str | None, as_json: bool) -> None:
    """Payments, newest first."""
    with talk() as server:
        found = list(server.every("/v1/payments", org=org))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            day(p["at"]),
            safe(p["name"]),
            f"{p['amount']} {p['currency']}",
            shortened(p["reference"], 30),
            safe(p["by"]),
        ]
        for p in found
    ]
    said = f"{len(found)} payments" if len(found) != 1 else "1 payment"
    lines = [said if found else "No payments yet"]
    if rows:
        lines += ["", table(("on", "tenant", "amount", "reference", "by"), rows, "<<><<")]
    say_text("\n".join([*lines, "Another: ouvrage payment add TENANT AMOUNT --reference TEXT"]))
