"""``ouvrage offer``: what an owner sells from their own machines.

Decides how terms are asked for on a command line; sizes and times are written as in a job file. Each verb is one request under
``/v1/offers``.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.base.errors import OuvrageError
from ouvrage.base.price import parse_price
from ouvrage.cli.amounts import SIZE, TIME
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table, wrote
from ouvrage.cli.talking import talk
from ouvrage.cli.work_words import bounds, configuration, counted, moment, price
from ouvrage.model.selling import AUDIENCES
from ouvrage.model.work import ISOLATIONS

_HEAD = ("offer", "name", "per hour", "has", "leased for", "")


@click.group()
def offer() -> None:
    """What is for sale here: a configuration, a price, terms.

    \b
    ouvrage offer create standard --cpus 4 --memory 16GiB --gpus 1 --gpu "RTX 4090" --price 0.30/h
    ouvrage offer list
    """


@offer.command()
@click.argument("name")
@click.option("--price", "price_text", metavar="0.30/h", help="For the whole configuration.")
@click.option("--gpus", type=click.IntRange(0), default=0, metavar="N", help="Whole GPUs (0).")
@click.option("--gpu", metavar="MODEL", help="Their model; else any.")
@click.option("--cpus", type=click.IntRange(1), required=True, metavar="N", help="Whole cores.")
@click.option("--memory", type=SIZE, required=True, metavar="16GiB", help="Memory.")
@click.option("--disk", type=SIZE, default="1GiB", metavar="100GiB", help="Scratch (1GiB).")
@click.option(
    "--plan",
    metavar="PLAN",
    default="per-second",
    help="Billing rules: a shipped plan's name or a TOML file (per-second).",
)
@click.option("--at-least", "least_us", type=TIME, metavar="1h", help="Shortest lease.")
@click.option("--at-most", "most_us", type=TIME, metavar="30d", help="Longest lease or attempt.")
@click.option("--interruptible", is_flag=True, help="May be interrupted for dearer work.")
@click.option("--notice", "notice_us", type=TIME, default="30s", help="Before that (30s).")
@click.option("--audience", type=click.Choice(AUDIENCES), default="tenants", show_default=True)
@click.option("--channel", metavar="NAME", default="own-tenants", help="Where it is sold.")
@click.option("--node", "nodes", metavar="NAME", multiple=True, help="Only from these nodes.")
@click.option("--isolation", type=click.Choice(ISOLATIONS), default="sandbox", show_default=True)
@click.option(
    "--anyway", is_flag=True, help="To strangers though its machines are not proven; with --why."
)
@click.option("--why", metavar="TEXT", default="", help="Your reason, which stays on record.")
@click.option("--sla", metavar="TEXT", help="What is promised.")
@click.option("--document", metavar="TEXT", help="The terms, or their address.")
@json_option
@plain_option
def create(
    name: str,
    price_text: str | None,
    plan: str,
    nodes: tuple[str, ...],
    memory: int,
    disk: int,
    as_json: bool,
    plain: bool,
    **terms: Any,
) -> None:
    """Put a configuration up for sale as NAME. Its terms never change: withdraw it and make another.

    --audience public offers it to strangers: only from machines whose isolation was tried out and whose audit
    passed (ouvrage node audit --push).
    """  # fmt: skip
    if terms["anyway"] != bool(terms["why"].strip()):
        raise OuvrageError(
            "offer/why", "--anyway and --why go together: the reason stays on record",
            hint="--anyway --why 'the audit of runc is wrong: Debian mended it'",
        )  # fmt: skip
    stated = None if price_text is None else parse_price(price_text)
    _, text = frozen_plan(plan)
    rate = None
    if stated is not None:
        rate = _hourly(stated.amount, stated.per)
    body = {
        **terms,
        "name": name,
        "memory_mib": memory,
        "disk_mib": disk,
        "plan_text": text,
        "rate": rate,
        "currency": stated.currency if stated else None,
        "nodes": list(nodes),
    }
    with talk() as server:
        made = server.post("/v1/offers", body)
    wrote()
    words = f"{name} is for sale at {price(made, plain)}: {configuration(made)}"
    _said(
        made,
        f"{words}\nTake it: ouvrage lease take {name}      Or: ouvrage job submit --offer {name} -- COMMAND",
        as_json,
    )


def _hourly(amount: str, per: str) -> str:
    """The price of an hour as decimal text; one that has none exactly is refused."""
    from fractions import Fraction

    from ouvrage.base.numbers import decimal_text
    from ouvrage.base.price import PER_US
    from ouvrage.base.time import HOUR

    if per == "h":
        return amount
    exact = Fraction(amount) * HOUR / PER_US[per]
    text = decimal_text(exact)
    if Fraction(text) != exact:
        raise OuvrageError(
            "offer/price",
            f"{amount}/{per} is no exact price of an hour",
            hint="give the price per hour: --price 0.30/h",
        )
    return text


@offer.command("list")
@click.option("--withdrawn", is_flag=True, help="Those no longer for sale too.")
@json_option
@plain_option
def list_(withdrawn: bool, as_json: bool, plain: bool) -> None:
    """Offers that you may take."""
    with talk() as server:
        found = list(server.every("/v1/offers", withdrawn=withdrawn or None))
    if as_json:
        say_json(found)
        return
    rows = [
        [
            each["code"],
            each["name"],
            price(each, plain),
            configuration(each),
            bounds(each),
            "withdrawn"
            if each["withdrawn_us"]
            else ("interruptible" if each["interruptible"] else ""),
        ]
        for each in found
    ]
    body = f"\n\n{table(_HEAD, rows, '<<<<<<')}" if rows else ""
    say_text(f"{counted(len(found), 'offer')} for sale{body}")
    say_text("Take one: ouvrage lease take NAME      Another: ouvrage offer create --help")


@offer.command()
@click.argument("name")
@json_option
@plain_option
def show(name: str, as_json: bool, plain: bool) -> None:
    """One offer with all its terms, by name, code or id."""
    with talk() as server:
        found = server.get(f"/v1/offers/{name}")
    state = f"withdrawn {moment(found['withdrawn_us'])}" if found["withdrawn_us"] else "for sale"
    lines = [
        f"{found['name']}: {price(found, plain)}, {state}",
        f"  has          {configuration(found)}",
        f"  billed by    {found['plan']}",
        f"  leased for   {bounds(found)}",
        f"  interrupted  {'with notice of ' + str(found['notice_us'] // 1_000_000) + ' s' if found['interruptible'] else 'never'}",
        f"  isolation    {found['isolation']}",
        f"  audience     {found['audience']}, sold as {found['channel']}",
    ]
    lines += [f"  promised     {found['sla']}"] if found["sla"] else []
    lines += [f"  terms        {found['document']}"] if found["document"] else []
    _said(found, "\n".join([*lines, f"Take it: ouvrage lease take {found['name']}"]), as_json)


@offer.command()
@click.argument("name")
@click.option("--why", metavar="TEXT", default="", help="For the trail.")
@json_option
def withdraw(name: str, why: str, as_json: bool) -> None:
    """Take an offer off sale. Leases under it run on, at its price."""
    with talk() as server:
        found = server.post(f"/v1/offers/{name}/withdraw", {"why": why})
    wrote()
    _said(found, f"{found['name']} is no longer for sale; leases under it run on.", as_json)


def _said(found: Any, words: str, as_json: bool) -> None:
    if as_json:
        say_json(found)
    else:
        say_text(words)
