"""``ouvrage own plan``: what is expected of a period, to hold against what came of it.

Decides how a plan is written on the command line and that another word about the same period is its next
version. What it is worth is told by ``ouvrage books pnl``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import click

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.numbers import fixed
from ouvrage.base.text import safe
from ouvrage.books.period import period_named
from ouvrage.books.pnl import COSTS, class_name
from ouvrage.cli.booking import Stated, book
from ouvrage.cli.books_asked import same_period
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.own_context import Owning, owning, site_of
from ouvrage.cli.owning import amount
from ouvrage.ledger.kinds import read
from ouvrage.model.plans import OwnerPlan, PlannedCost, PlannedSale


@click.command("plan")
@click.argument("period", metavar="PERIOD")
@click.option("--of", "about", metavar="ABOUT", required=True, help="site:home or node:node-1.")
@click.option(
    "--sell", "sales", metavar="[CHANNEL[/CLASS]=]HOURS@RATE", multiple=True, required=True,
    help="Hours of GPUs to be sold, and what an hour is to bring.",
)  # fmt: skip
@click.option(
    "--cost", "costs", metavar="LINE=AMOUNT", multiple=True, help="A cost of all the period."
)
@click.option("--by", "said_by", metavar="WHO", default="you", help="Whose plan it is.")
@json_option
def plan(
    period: str,
    about: str,
    sales: tuple[str, ...],
    costs: tuple[str, ...],
    said_by: str,
    as_json: bool,
) -> None:
    """What you expect of PERIOD: a month 2026-11, a year 2026, or DAY..DAY.

    \b
    ouvrage own plan 2026-11 --of site:home --sell vast=900@0.42 --sell own/RTX4090=200@0.55 \\
        --cost electricity=140 --cost rent=45

    The lines of costs are those of `ouvrage books pnl`; one that is not named is not planned, and is
    told beside the plan. Said again for the same period, it is the next version.
    """  # fmt: skip
    with owning(site_of(about)) as here:
        if here.exists(about).partition(":")[0] not in ("site", "node"):
            raise OuvrageError("own/about", f"{about} has no plan", hint="site:home or node:node-1")
        when = period_named(period, here.place.zone)
        value = OwnerPlan(
            about=about, number=1, currency=here.place.currency, said_by=said_by,
            sales=tuple(_sale(text, here.place.currency) for text in sales),
            costs=_costs(costs, here.place.currency),
        )  # fmt: skip
        _check_sales(value.sales)
        stated = Stated(
            natural=f"own/plan/{about}/{when.name}", value=value, subject=about,
            valid_from=when.from_us, valid_to=when.to_us, grade=Grade.REPORTED,
        )  # fmt: skip
        stated = _numbered(here, stated)
        booked = book(here.ledger, [stated], typed=True)
    result = "corrected" if booked.corrected else "recorded" if booked.new else "said before"
    found: OwnerPlan = stated.value
    if as_json:
        say_json({"natural": stated.natural, "version": found.number, "result": result})
        return
    say_text(
        f"{_words(found, when.name)}: {result}.\n"
        f"Against what came of it: ouvrage books pnl{same_period(when)}      "
        f"Never so: ouvrage own withdraw {safe(stated.natural.removeprefix('own/'))} --why TEXT"
    )


def _sale(text: str, currency: str) -> PlannedSale:
    """``vast/RTX4090=500@0.42``, ``vast=500@0.42`` or ``500@0.42``."""
    where, equals, what = text.rpartition("=")
    hours, at, rate = what.partition("@")
    if not at or (equals and not where):
        raise OuvrageError(
            "own/plan", f"--sell {text!r} is no hours at a rate",
            hint="write it as 500@0.42, vast=500@0.42 or vast/RTX4090=500@0.42",
        )  # fmt: skip
    channel, _, model = where.partition("/")
    if channel:
        check_name("channel", channel, "vast")
    return PlannedSale(
        channel=channel or None, gpu_class=class_name(model) if model else None,
        hours=amount(hours, "h", currency, "--sell"), rate=amount(rate, "CUR/h", currency, "--sell"),
    )  # fmt: skip


def _check_sales(sales: Sequence[PlannedSale]) -> None:
    named = [(sale.channel, sale.gpu_class) for sale in sales]
    if len(named) != len(set(named)):
        raise OuvrageError(
            "own/plan", "two sales of a plan are of one channel and class",
            hint="add up their hours, or name the channel or the class of each",
        )  # fmt: skip


def _costs(texts: Sequence[str], currency: str) -> tuple[PlannedCost, ...]:
    found: dict[str, PlannedCost] = {}
    for text in texts:
        line, equals, much = text.partition("=")
        if not equals or line not in COSTS or line in found:
            wrong = "is named twice" if line in found else "is no line of costs and its amount"
            raise OuvrageError(
                "own/plan", f"--cost {text!r} {wrong}", hint=f"one of {', '.join(COSTS)}, once"
            )
        found[line] = PlannedCost(line=line, amount=amount(much, "CUR", currency, f"--cost {line}"))
    return tuple(found.values())


def _numbered(here: Owning, stated: Stated) -> Stated:
    """The plan with its version: that of the same one in force, else the next."""
    held = [p for p in here.record.plans if (p.value.about, p.valid_from, p.valid_to)
            == (stated.subject, stated.valid_from, stated.valid_to)]  # fmt: skip
    for each in held:
        if replace(each.value, number=1) == stated.value:
            return replace(stated, value=each.value)
    before = [
        value.number
        for entry in here.books.records
        if entry.fact.kind == OwnerPlan.KIND
        and entry.fact.id.rpartition("/")[0] == stated.natural
        and isinstance(value := read(entry.fact), OwnerPlan)
    ]
    return replace(stated, value=replace(stated.value, number=max(before, default=0) + 1))


def _words(found: OwnerPlan, period: str) -> str:
    hours = sum((Fraction(sale.hours) for sale in found.sales), Fraction(0))
    brings = sum((Fraction(s.hours) * Fraction(s.rate) for s in found.sales), Fraction(0))
    costs = sum((Fraction(cost.amount) for cost in found.costs), Fraction(0))
    left = (
        f"; less {fixed(costs, 2)} of costs, {fixed(brings - costs, 2)} are left" if costs else ""
    )
    return (
        f"plan of {safe(found.about)} for {period}, version {found.number}: {fixed(hours, 1)} h sold "
        f"bring {fixed(brings, 2)} {found.currency}{left}"
    )
