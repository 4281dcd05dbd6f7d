"""``ouvrage evidence``: what is said of a provider, by whom, and what it does not show.

Decides what is printed and which files are written; what belongs in a dossier is
``evidence/dossier.py``, and its words are ``evidence/dossier_text.py``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import DAY, utc_text
from ouvrage.cli.evidence_add import add
from ouvrage.cli.evidence_book import called, evidence_in, record, standing
from ouvrage.cli.evidence_observe import observe
from ouvrage.cli.ledger import opened, past
from ouvrage.cli.options import as_of_option, html_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table, write_file
from ouvrage.evidence.claims import name_of, provider_key
from ouvrage.evidence.dossier import STALE_AFTER_US, dossier, providers_in
from ouvrage.evidence.dossier_text import dossier_json, dossier_markdown, dossier_text
from ouvrage.evidence.observations import unsealed
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.model.claims import Claim
from ouvrage.model.observations import Observation, Question, Search
from ouvrage.model.records import Withdrawal
from ouvrage.pricing.words import mark

_NOTHING = (
    "No evidence yet.\n"
    "  an example: ouvrage evidence add --shipped genesis-volta\n"
    "  then:       ouvrage evidence report genesis-cloud"
)
_HEAD = ("name", "date", "about", "what", "who")
_DAYS = re.compile(r"([0-9]{1,6})\s*d?")


@click.group()
def evidence() -> None:
    """Who says what about a provider, when, why, and what it does not show.

    \b
    Begin:  ouvrage evidence add --shipped genesis-volta
    Then:   ouvrage evidence report genesis-cloud
    """


evidence.add_command(add)
evidence.add_command(observe)


@evidence.command("list")
@click.option("--provider", metavar="NAME", help="Only what names this provider.")
@json_option
@plain_option
@as_of_option
def list_(provider: str | None, as_json: bool, plain: bool, as_of: int | None) -> None:
    """List the evidence, in the order in which it was recorded."""
    with opened() as ledger:
        records = standing(ledger, past(as_of, ledger))
    if provider is not None:
        records = [entry for entry in records if _names(entry, provider)]
    if as_json:
        say_json({"evidence": [_json(entry) for entry in records]})
        return
    if not records:
        say_text(_NOTHING if provider is None else f"Nothing recorded names {safe(provider)}.")
        return
    say_text(table(_HEAD, [_row(entry, plain) for entry in records], "<<<<<"))
    say_text("\nOne of them whole: ouvrage evidence show NAME")


def _names(entry: Recorded, provider: str) -> bool:
    value = read(entry.fact)
    keys = {provider_key(name) for name in getattr(value, "providers", ())}
    return provider_key(provider) in keys


def _row(entry: Recorded, plain: bool) -> tuple[str, ...]:
    value, fact = read(entry.fact), entry.fact
    day = utc_text(fact.valid_from)[:10]
    about, what, who = fact.subject, fact.kind, ""
    if isinstance(value, Claim):
        day = value.stated_on or "undated"
        about, what, who = value.subject, value.property, value.said_by
    elif isinstance(value, Observation):
        outcomes = sorted({finding.outcome for finding in value.findings})
        about, what, who = value.subject, ", ".join(outcomes), value.place
    elif isinstance(value, Search):
        about, what, who = ", ".join(value.providers), "found nothing", value.place
    elif isinstance(value, Question):
        about, what, who = ", ".join(value.providers), "not known", value.question
    cells = (name_of(fact), day, shortened(about, 24), shortened(what, 28))
    return (*cells, shortened(who, 40) + mark(fact.grade, plain))


@evidence.command()
@click.argument("name", metavar="NAME")
@click.option("--raw", metavar="FILE", help="Write the raw answer of an observation (`-`: print).")
@json_option
@plain_option
def show(name: str, raw: str | None, as_json: bool, plain: bool) -> None:
    """Everything that one statement says, and what it does not show."""
    with opened() as ledger:
        entry = called(name, standing(ledger))
    if raw is not None:
        _write_raw(entry, raw)
        return
    if as_json:
        say_json(_json(entry))
        return
    say_text("\n".join(_shown(entry, plain)))


def _write_raw(entry: Recorded, raw: str) -> None:
    value = read(entry.fact)
    body = unsealed(value) if isinstance(value, Observation) else None
    if body is None:
        raise OuvrageError(
            "evidence/no-answer",
            f"{name_of(entry.fact)} keeps no raw answer",
            hint="only what `evidence observe` asked does",
        )
    if raw == "-":
        sys.stdout.buffer.write(body)
    else:
        write_file(Path(raw), body)


def _shown(entry: Recorded, plain: bool) -> list[str]:
    fact = entry.fact
    lines = [f"{name_of(fact)}{mark(fact.grade, plain)}"]
    for field, value in json.loads(fact.payload).items():
        if field == "answer":
            value = "kept: --raw FILE writes it" if value else "not kept"
        if field == "stated_on" and value is None:
            value = "undated"
        if value is None or value in ([], ""):
            continue
        lines += _field(field, value)
    lines.append(f"  recorded       {utc_text(entry.recorded_at)} as fact {fact.key}")
    return [safe(line) for line in lines]


def _field(field: str, value: Any) -> list[str]:
    name = field.removesuffix("_us").replace("_", " ")
    if field.endswith("_us"):
        value = utc_text(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    if isinstance(value, dict):
        return [f"  {name}", *(f"  {line}" for each in value.items() for line in _field(*each))]
    if isinstance(value, list):
        rows = [", ".join(f"{k} {v}" for k, v in row.items() if v is not None) for row in value]
        return [f"  {name}", *(f"    {row}" for row in rows)]
    return [f"  {name:<14} {value}"]


def _json(entry: Recorded) -> dict[str, Any]:
    fact = entry.fact
    return {
        "name": name_of(fact),
        "fact": fact.key,
        "kind": fact.kind,
        "version": fact.version,
        "grade": fact.grade.word,
        "recorded_at": utc_text(entry.recorded_at),
        "sha256": fact.sha256,
        "states": json.loads(fact.payload),
    }


def _stale(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int:
    if value is None:
        return STALE_AFTER_US
    found = _DAYS.fullmatch(value.strip())
    if not found:
        raise OuvrageError(
            "evidence/stale-after", f"{value!r} is no number of days", hint="such as 90d"
        )
    return int(found[1]) * DAY


@evidence.command()
@click.argument("provider", metavar="PROVIDER")
@click.option(
    "--markdown",
    "markdown_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write it as Markdown.",
)
@click.option(
    "--stale-after",
    metavar="DAYS",
    callback=_stale,
    help=f"What counts as old, such as 90d; else {STALE_AFTER_US // DAY}d.",
)
@html_option
@json_option
@plain_option
@as_of_option
def report(
    provider: str,
    markdown_file: Path | None,
    html_file: Path | None,
    stale_after: int,
    as_json: bool,
    plain: bool,
    as_of: int | None,
) -> None:
    """The dossier of PROVIDER, in order of date.

    What is measured, reported and listed stand apart; then what contradicts what, what is old, what
    is not known, which searches found nothing, and what none of it shows.
    """
    with opened() as ledger:
        as_of = past(as_of, ledger)
        records = evidence_in(ledger, as_of)
    _refuse_unknown(provider, records)
    found = dossier(provider, records, as_of if as_of is not None else now_us(), stale_after)
    if markdown_file:
        write_file(markdown_file, dossier_markdown(found))
    if html_file:
        from ouvrage.console.dossier_page import dossier_html

        write_file(html_file, dossier_html(found))
    if as_json:
        say_json(dossier_json(found))
        return
    say_text(dossier_text(found, plain=plain))
    for file in (markdown_file, html_file):
        if file:
            say_text(f"Written: {file}")


def _refuse_unknown(provider: str, records: list[Recorded]) -> None:
    known = providers_in(records)
    if provider_key(provider) in known:
        return
    raise OuvrageError(
        "evidence/provider",
        f"no evidence names {provider!r}",
        where=tuple(sorted(known.values())[:5]),
        hint="that says nothing about it; ouvrage evidence add, or observe, records some; "
        "an example comes along: ouvrage evidence add --shipped genesis-volta",
    )


@evidence.command()
@click.argument("name", metavar="NAME")
@click.option("--why", required=True, help="Why it should not stand any longer.")
@json_option
def withdraw(name: str, why: str, as_json: bool) -> None:
    """Withdraw a statement, or close an open question. What was known before stays known."""
    if not why.strip():
        raise OuvrageError("command/usage", "--why is empty", hint="say it in a sentence")
    with opened() as ledger:
        entry = called(name, standing(ledger))
        withdrawal = _withdrawal(entry.fact, why, source_id(ledger.home))
        record(ledger, [withdrawal])
    if as_json:
        say_json({"withdrawn": entry.fact.key, "why": why, "fact": withdrawal.key})
    else:
        say_text(f"Withdrawn: {name_of(entry.fact)}. It is still in what was known before.")


def _withdrawal(fact: Fact, why: str, source: str) -> Fact:
    moment = now_us()
    return fact_of(
        Withdrawal(why=why),
        source=source,
        id=f"withdrawal/{moment}",
        subject=fact.subject,
        valid_from=moment,
        valid_to=None,
        grade=fact.grade,
        corrects=fact.key,
    )
