"""``ouvrage plan``: what a machine should do next, from its own record.

Decides which machine is meant, as of which moment, and by whose rules: the shipped ones, those of
``decide.toml`` in the home, or those of a file named. The answer is made in ``planning``.
"""

from __future__ import annotations

from pathlib import Path

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import home
from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.base.errors import OuvrageError
from ouvrage.books.period import period_named
from ouvrage.books.pnl import class_name
from ouvrage.books.record import OwnerRecord
from ouvrage.books.scope import Scope
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.books_asked import site_option
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import as_of_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.planning.channels import channels_of
from ouvrage.planning.decide import decide
from ouvrage.planning.decide_text import decision_json, decision_lines
from ouvrage.planning.decision_case import case_of
from ouvrage.planning.rules import RULES, Numbers, rules_of

FILE = "decide.toml"


@click.group()
def plan() -> None:
    """What should a machine do next: grow, reprice, hold, repurpose or retire?"""


@plan.command("decide")
@click.option("--node", metavar="NAME", help="Which machine; else all of the site together.")
@click.option(
    "--class", "gpu_class", metavar="CLASS", help="Which GPUs, as in --by class: rtx4090."
)
@site_option
@click.option(
    "--rules",
    "rules_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Rules of your own, as TOML; else {FILE} in the home, if there is one.",
)
@click.option("--until", metavar="DAY", help="By the days up to this one; else the last of record.")
@as_of_option
@json_option
@plain_option
def decide_(
    node: str | None,
    gpu_class: str | None,
    site: str | None,
    rules_file: Path | None,
    until: str | None,
    as_of: int | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Grow, reprice, hold, repurpose or retire, with what speaks for it and what would change it.

    From the last 90 days of record: what was sold, at what rate, what it left after every cost, each
    with a range that holds the truth nine times in ten. Too few days covered: not yet, and when to ask.
    """
    rules = rules_in(rules_file)
    with opened() as ledger:
        books = books_of(ledger, as_of)
        name = books.site(site)
        scope = _scope(books.record, node, gpu_class)
        known = now_us() if as_of is None else as_of
        end = period_named(until, books.zone(name)).to_us if until else known
        asked = case_of(books.record, name, scope, min(end, known), rules)
    found = decide(asked.case, rules)
    pay = channels_of(asked.account, scope, asked.opportunity)
    if as_json:
        say_json(decision_json(asked, found, pay))
    else:
        say_text("\n".join(decision_lines(asked, found, pay, plain)))


def _scope(record: OwnerRecord, node: str | None, gpu_class: str | None) -> Scope:
    """What is asked about, or a refusal that says what there is."""
    if node is not None and node not in record.homes:
        raise OuvrageError(
            "decide/node", f"no machine is called {node!r}",
            hint=f"there is {', '.join(sorted(record.homes)[:8]) or 'none'}",
        )  # fmt: skip
    if gpu_class is None:
        return Scope(node=node)
    there = sorted(
        {class_name(p.value.model) for p in record.devices if node in (None, p.value.node)}
    )
    wanted = class_name(gpu_class).lower()
    found = next((name for name in there if name.lower() == wanted), None)
    if found is None:
        raise OuvrageError(
            "decide/class", f"no GPU of {node or 'yours'} is of a class {gpu_class!r}",
            hint=f"there is {', '.join(there[:8]) or 'none'}",
        )  # fmt: skip
    return Scope(node=node, gpu_class=found)


def rules_in(file: Path | None) -> Numbers:
    """The rules of a file, else of the home, else the shipped ones. Raises ``OuvrageError``."""
    chosen = file or home() / FILE
    if file is None and not chosen.is_file():
        return rules_of({})
    data = load_toml(str(chosen), read_text(chosen, "decide"), "decide/toml")
    table_ = data.get("decide", {})
    odd = sorted(data.keys() - {"decide"})
    if odd or not isinstance(table_, dict):
        raise OuvrageError(
            "decide/form", f"{chosen} has no table [decide] alone", where=(str(chosen),),
            hint="write the rules below a line [decide]; ouvrage plan rules lists them",
        )  # fmt: skip
    return rules_of(table_, str(chosen))


@plan.command("rules")
@click.option(
    "--rules",
    "rules_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Rules of your own, as TOML.",
)
@json_option
def rules_(rules_file: Path | None, as_json: bool) -> None:
    """The numbers by which it is decided, what each means, and where its default is from."""
    held = rules_in(rules_file)
    if as_json:
        say_json([
            {"name": rule.name, "value": held[rule.name], "default": float(rule.default),
             "unit": rule.unit, "meaning": rule.meaning, "source": rule.source}
            for rule in RULES
        ])  # fmt: skip
        return
    own = sum(held[rule.name] != float(rule.default) for rule in RULES)
    first = (
        f"{len(RULES)} rules, {own} of them your own."
        if own
        else f"{len(RULES)} rules, as shipped."
    )
    rows = [(rule.name, f"{held[rule.name]:g}", rule.unit.replace("1", "") or "", rule.meaning, rule.source)
            for rule in RULES]  # fmt: skip
    say_text(f"{first}\n")
    say_text(table(("rule", "value", "", "what it is", "from"), rows, "<><<<"))
    say_text(f"\nSet one: a line such as  least_days = 45  below [decide] in {home() / FILE}")
