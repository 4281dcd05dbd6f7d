"""``ouvrage job estimate``: what a job will probably cost, before it is submitted.

Decides only how it is printed: without finished runs of that job the cost is not known, and said so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from ouvrage.base.grades import grade_of
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND
from ouvrage.cli.money_words import short
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.talking import talk
from ouvrage.pricing.words import duration, mark


@click.command()
@click.argument("name")
@click.option("--offer", metavar="NAME", required=True, help="On which offer.")
@click.option("--project", metavar="NAME", default="main", help="Whose work it is (main).")
@click.option("--unit", metavar="WORD", help="The unit that its cost is wanted for, such as epoch.")
@json_option
@plain_option
def estimate(
    name: str, offer: str, project: str, unit: str | None, as_json: bool, plain: bool
) -> None:
    """What job NAME will cost, from your own finished runs of it."""
    with talk() as server:
        found = server.get("/v1/estimates", project=project, offer=offer, name=name, unit=unit)
    if as_json:
        say_json(found)
        return
    say_text("\n".join(_lines(found, plain)))


def _lines(found: Any, plain: bool) -> list[str]:
    name, currency = safe(found["name"]), found["currency"]
    if found["cost"] is None:
        return [
            f"What {name} costs on {found['offer']} is not known: none of your runs of it has finished.",
            f"Find out with a small one: ouvrage job submit --offer {found['offer']} --name {name} -- COMMAND",
        ]
    cost, seconds = found["cost"], found["seconds"]
    marked = mark(grade_of(found["grade"]), plain)
    timed = mark(grade_of(found["time_grade"]), plain)
    lines = [
        f"{name} on {found['offer']} will cost about {short(cost['median'], currency)}{marked} "
        f"({_range(cost)}), in {_lasting(seconds['median'])}{timed} "
        f"({_lasting(seconds['low'])} to {_lasting(seconds['high'])})"
    ]
    if found["cost_per_unit"]:
        per = found["cost_per_unit"]
        lines.append(
            f"  per {safe(found['unit'])}  {short(per['median'], currency)} ({_range(per)})"
        )
    lines.append(f"  {safe(found['why'])}")
    return [
        *lines,
        f"Submit it: ouvrage job submit --offer {found['offer']} --name {name} -- COMMAND",
    ]


def _range(spread: Any) -> str:
    return f"{short(spread['low'])} to {short(spread['high'])}"


def _lasting(seconds: str) -> str:
    return duration(round(Fraction(seconds) * SECOND))
