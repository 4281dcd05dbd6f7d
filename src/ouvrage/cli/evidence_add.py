"""``ouvrage evidence add``: state what somebody says, what was searched in vain, what is not known.

Decides how the options make one fact; what a fact must hold is ``evidence/claims.py``. Nothing given
here can become a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import grade_of
from ouvrage.base.time import utc_text
from ouvrage.cli.evidence_book import from_file, record, recorded_json, shipped
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.evidence.claims import asked, name_of, named, searched, stated
from ouvrage.evidence.reading import UNDATED
from ouvrage.ledger.facts import Fact
from ouvrage.model.claims import INTERESTS, Claim
from ouvrage.model.observations import Question, Search
from ouvrage.store.store import Outcome

_GRADES = ("reported", "listed", "assumed")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """The options of a claim, as typed."""

    name: str
    provider: tuple[str, ...]
    subject: str
    property: str
    statement: str
    value: str | None
    unit: str | None
    said_by: str
    interest: str
    stated_on: str
    read_on: str
    address: str | None
    grade: str
    not_shown: str


@click.command()
@click.option("--provider", multiple=True, metavar="NAME", help="Whose dossier it belongs in.")
@click.option("--subject", default="", help="What the claim is about; else the provider.")
@click.option("--property", default="", help="What it states of the subject, such as holder.")
@click.option("--statement", default="", help="What is said, in a sentence.")
@click.option("--value", help="The value that is stated, where there is one.")
@click.option("--unit", help="The value's unit; the value is then a number.")
@click.option("--said-by", default="", help="Who says it.")
@click.option("--interest", default="", metavar="|".join(INTERESTS), help="What they have in it.")
@click.option("--stated-on", default="", metavar="DATE|undated", help="When it was stated.")
@click.option("--read-on", default="", metavar="DATE", help="When it was read; else today.")
@click.option("--address", help="Where it was read.")
@click.option("--grade", default="reported", metavar="|".join(_GRADES), help="What it is worth.")
@click.option("--not-shown", default="", help="What the claim does not show.")
@click.option("--name", default="", help="How to call it; else a code is made.")
@click.option("--search", metavar="WORDS", help="A search that found nothing, with --place.")
@click.option("--place", default="", help="Where it was searched.")
@click.option("--question", metavar="TEXT", help="Something that is not known.")
@click.option("--shipped", "example", metavar="SET", help="An example set: genesis-volta.")
@click.option(
    "--file",
    "path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="All the evidence in a JSON file.",
)
@json_option
def add(
    search: str | None,
    place: str,
    question: str | None,
    example: str | None,
    path: Path | None,
    as_json: bool,
    **options: object,
) -> int:
    """State what somebody says of a provider.

    A claim needs a provider, a property, a statement, who says it, their interest in it, the date of
    the statement or `undated`, and what it does not show. It never becomes a measurement.
    """
    if sum(each is not None for each in (search, question, example, path)) > 1:
        raise OuvrageError(
            "command/usage",
            "one thing at a time",
            hint="one of --search, --question, --shipped, --file",
        )
    given = _Given(**options)  # pyright: ignore[reportArgumentType] - Click gives the declared types
    facts = shipped(example) if example is not None else []
    day = given.read_on or utc_text(now_us())[:10]
    if example is None and path is None:
        _one(given, search, place, question, day, "0" * 32)  # refused before a home is made
    with opened() as ledger:
        own = source_id(ledger.home)
        if path is not None:
            facts = from_file(path, own)
        elif example is None:
            facts = [_one(given, search, place, question, day, own)]
        outcomes = record(ledger, facts)
    if as_json:
        say_json(recorded_json(facts, outcomes))
    else:
        say_text(_told(facts, outcomes))
    return 1 if any(outcome.result == "conflict" for outcome in outcomes) else 0


def _one(
    given: _Given, search: str | None, place: str, question: str | None, day: str, own: str
) -> Fact:
    if search is not None:
        found = Search(providers=given.provider, words=search, place=place, searched_on=day)
        return searched(found, source=own)
    if question is not None:
        return asked(
            Question(providers=given.provider, question=question, asked_on=day), source=own
        )
    return _claim(given, day, own)


def _claim(given: _Given, day: str, own: str) -> Fact:
    if not given.stated_on:
        raise OuvrageError(
            "evidence/incomplete",
            "the claim does not say when it was stated",
            hint="give --stated-on 2026-11-30, or --stated-on undated",
        )
    if given.grade not in _GRADES:
        raise OuvrageError(
            "evidence/grade",
            f"a claim is not {given.grade!r}",
            hint=f"it is one of {', '.join(_GRADES)}; only what we observe ourselves is measured",
        )
    claim = Claim(
        name=given.name,
        providers=given.provider,
        subject=given.subject or (given.provider[0] if given.provider else ""),
        property=given.property,
        statement=given.statement,
        value=given.value,
        unit=given.unit,
        said_by=given.said_by,
        interest=given.interest,
        stated_on=None if given.stated_on == UNDATED else given.stated_on,
        read_on=day,
        address=given.address,
        not_shown=given.not_shown,
        comparison=None,
    )
    return stated(named(claim), source=own, grade=grade_of(given.grade))


def _told(facts: list[Fact], outcomes: list[Outcome]) -> str:
    counts = {r: sum(o.result == r for o in outcomes) for r in ("accepted", "exists", "conflict")}
    if len(facts) == 1:
        words = {
            "accepted": "Recorded",
            "exists": "Known already:",
            "conflict": "Refused, another statement bears this name:",
        }
        first = f"{words[outcomes[0].result]} {name_of(facts[0])}."
    else:
        first = f"Recorded {counts['accepted']} statements, {counts['exists']} known already."
        if counts["conflict"]:
            first += f" {counts['conflict']} refused: another statement bears the name."
    return f"{first}\nThe dossier: ouvrage evidence report PROVIDER      All: ouvrage evidence list"
