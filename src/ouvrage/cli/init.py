"""``ouvrage init``: from nothing to books that can answer, in one command.

Decides what is asked for, what stands in for what is not given, and that both are told. Everything is
optional: what nobody states is assumed, from something read or by our judgement, recorded as assumed, and listed with
its source. Run again it changes what is given anew and nothing else. Another name for the site adds a
second one; another currency for the same site is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.booking import Booked, book
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.set_up import SITE_TERMS, Plan, facts_of, plan_of, read_plan, told, told_json

_ASKED: tuple[tuple[str, str, str], ...] = (
    ("currency", "Currency of the books", "EUR"),
    ("zone", "Time zone", "UTC"),
    ("electricity", "Electricity, per kWh (empty: not known)", ""),
    ("gpus", "GPUs in the machine", "1"),
    ("model", "Their model, such as RTX 4090 (empty: not known)", ""),
    ("price", "Price of the machine (empty: not known)", ""),
    ("bought", "Day it was bought, such as 2026-03-01 (empty: not known)", ""),
    ("channel", "Where it is sold, such as vast (empty: to own tenants)", ""),
    ("fee", "What that channel keeps, such as 15 % (empty: not known)", ""),
)


def _options(verb: Any) -> Any:
    for name, metavar, words in (
        ("--loan-months", "N", "Its length."),
        ("--loan-rate", "SHARE", "Its interest a year: 6 %."),
        ("--loan", "AMOUNT", "Money borrowed for the machine, on the day it was bought."),
        ("--residual", "AMOUNT", "What the machine is worth at the end of its life."),
        ("--life-months", "N", "How long the machine is used."),
        ("--bought", "DAY", "When the machine was bought."),
        ("--price", "AMOUNT", "What the machine cost, all parts."),
        ("--since", "DAY", "Since when the machine is in service; else since it was bought."),
        ("--model", "NAME", "Their model: RTX 4090."),
        ("--gpus", "N", "How many GPUs stand in it."),
        ("--node", "NAME", "The machine; else node-1."),
        ("--fee", "SHARE", "What the channel keeps: 15 %."),
        ("--channel", "NAME", "Where it is sold: vast, own, …"),
    ):
        verb = click.option(name, metavar=metavar, help=words)(verb)
    for name, (term, words) in reversed(SITE_TERMS.items()):
        verb = click.option(f"--{name.replace('_', '-')}", name, metavar="AMOUNT", help=words)(verb)
        del term
    verb = click.option(
        "--zone", metavar="ZONE", help="Whose clock its days follow: Europe/Paris."
    )(verb)
    verb = click.option("--currency", metavar="CODE", help="The currency of its books: EUR.")(verb)
    return click.option("--site", metavar="NAME", help="The place; else home.")(verb)


@click.command()
@_options
@click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="All of this, and more machines and parts, as TOML.",
)
@json_option
@plain_option
def init(file: Path | None, as_json: bool, plain: bool, **given: str | None) -> None:
    """Set up the books of a machine: a place, a machine in it, what it cost, where it is sold.

    \b
    ouvrage init --electricity 0.28/kWh --node node-1 --gpus 4 --model "RTX 4090" \\
        --price 9200 --bought 2026-03-01 --channel vast --fee 15%

    Nothing is required. What is not given is assumed, and said. Without any option, on a terminal,
    the most important things are asked for.
    """  # fmt: skip
    stated = {name: value for name, value in given.items() if value is not None}
    if not stated and file is None and sys.stdin.isatty() and not as_json:
        stated = _asked()
    plan = plan_of(read_plan(file) if file else {}, stated)
    found, booked = _record(plan)
    if as_json:
        say_json(told_json(found, booked))
    else:
        say_text(told(found, booked, plain=plain))


def _record(plan: Plan) -> tuple[Any, Booked]:
    with opened() as ledger:
        found = facts_of(plan, books_of(ledger, None).record)
        return found, book(ledger, found.facts, typed=True)


def _asked() -> Mapping[str, str]:
    """The answers of a person at a terminal; an empty one leaves the matter to be assumed."""
    say_text("Set up the books of a machine. Return takes what stands in brackets.\n", err=True)
    answers = {
        name: click.prompt(words, default=usual, show_default=bool(usual), err=True)
        for name, words, usual in _ASKED
    }
    return {name: value.strip() for name, value in answers.items() if value.strip()}
