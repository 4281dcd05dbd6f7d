"""``ouvrage usage`` and ``ouvrage statement``: what work costs now, and how an account came to its balance.

Decides only how they are printed: a running cost is the figure that the bill will show. Each is one request under ``/v1``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.base.text import safe
from ouvrage.base.time import SECOND, utc_text
from ouvrage.cli.money_words import left_words, metered, minute, short
from ouvrage.cli.options import json_option, plain_option, this_month_options
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.cli.talking import talk
from ouvrage.pricing.words import duration


@click.command()
@click.option("--org", metavar="NAME", help="Whose; else your own organisation's.")
@click.option("--project", metavar="NAME", help="Of one project alone.")
@click.option(
    "--by", type=click.Choice(["job", "lease", "project"]), default="job", show_default=True
)
@this_month_options
@json_option
@plain_option
def usage(
    org: str | None,
    project: str | None,
    by: str,
    period: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """What work costs: charged, and running at this moment. Without a period, of this month."""
    with talk() as server:
        found = server.get("/v1/usage", org=org, project=project, by=by, period=period)
    if as_json:
        say_json(found)
        return
    say_text("\n".join(_usage(found, plain)))


def _usage(found: Any, plain: bool) -> list[str]:
    currency, account = found["currency"], found["account"]
    running = sum(1 for row in found["rows"] if row["state"] == "running")
    going = f", {running} of them running" if running else ""
    what = f"{len(found['rows']) + found['left_out']} {found['by']}s{going}"
    lines = [f"{short(found['cost'], currency)}{metered(plain)} in {found['period']}: {what}"]
    if account is not None:
        lines.append(
            f"  {account['name']} has {short(account['left'], currency)} left to spend "
            f"(balance {short(account['balance'], currency)}); {left_words(account)}"
        )
    lines += _rented(found["rented"], plain)
    rows = [
        [
            row["code"], shortened(row["name"], 26), shortened(row["project"], 18), row["state"],
            duration(round(float(row["seconds"]) * SECOND)), row["charged"], row["running"], row["cost"],
        ]
        for row in found["rows"]
    ]  # fmt: skip
    head = (
        found["by"],
        "name",
        "project",
        "state",
        "held",
        "charged",
        "running",
        f"cost, {currency}",
    )
    if rows:
        lines += ["", *(f"  {line}" for line in table(head, rows, "<<<<>>>>").splitlines())]
    if found["left_out"]:
        lines.append(f"  and {found['left_out']} more: {found['left_out_cost']} {currency}")
    return [
        *lines,
        "How the balance came about: ouvrage statement      The bill so far: ouvrage invoice draft",
    ]


def _rented(told: Any, plain: bool) -> list[str]:
    """What a rented machine cost, and how much of that for nothing; a price that somebody typed is assumed."""
    if told is None:
        return []
    working, held = (int(told[name]) * SECOND for name in ("working_s", "held_s"))
    share = held * 100 // max(1, working + held)
    mark = " (assumed price)" if plain else " ?"
    return [
        f"  of {short(told['paid'], told['currency'])}{mark} for the machine, "
        f"{short(told['idle'], told['currency'])} stood idle ({share} %): "
        f"{duration(working)} working, {duration(held)} held, since {utc_text(told['from_us'])[:16]}"
    ]


@click.command()
@click.option("--org", metavar="NAME", help="Whose; else your own organisation's.")
@this_month_options
@json_option
def statement(org: str | None, period: str | None, as_json: bool) -> None:
    """An account, line by line: charges, payments, taxes. Without a period, of this month."""
    with talk() as server:
        found = server.get("/v1/statements", org=org, period=period)
    if as_json:
        say_json(found)
        return
    currency = found["currency"]
    rows = [
        [minute(each["at"])[:16], each["sort"], shortened(each["words"], 56), each["amount"], each["balance"]]
        for each in found["lines"]
    ]  # fmt: skip
    lines = [
        f"{safe(found['name'])} stands at {short(found['closing'], currency)} on {found['to'][:10]}"
    ]
    lines.append(f"  opening {found['opening']} {currency} on {found['from'][:10]}")
    if rows:
        head = ("when (UTC)", "what", "", f"amount, {currency}", "balance")
        lines += ["", *(f"  {line}" for line in table(head, rows, "<<<>>").splitlines()), ""]
    running = found["running"]
    lines.append(
        f"  closing {found['closing']} {currency}; {running} {currency} runs and is not charged yet"
    )
    lines.append("What runs: ouvrage usage      What was invoiced: ouvrage invoice list")
    say_text("\n".join(lines))
