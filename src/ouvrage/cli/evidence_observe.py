"""``ouvrage evidence observe``: ask public records, and keep what they answered.

Decides which places are asked about what, and where they are; how an answer becomes an observation
is each place's adapter. Every answer is recorded as it comes, so that an interruption loses none.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters import hurricane, rdap, ripestat
from ouvrage.adapters.answers import Place, observation_of
from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.adapters.web import Answer, Reach, get
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.cli.evidence_book import record
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import Seconds, json_option, moment
from ouvrage.cli.output import say_json, say_text
from ouvrage.evidence.claims import name_of
from ouvrage.evidence.observations import LARGEST_ANSWER, observed
from ouvrage.ledger.facts import Fact
from ouvrage.model.observations import NO_ANSWER, Finding, Observation

_AS = re.compile(r"(?:AS)?([0-9]{1,10})", re.IGNORECASE)
_SAVED_BY = "a person who saved the page"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How far to go: the addresses of the places, the reach of a question, whose dossier."""

    ripestat: str
    rdap: str
    reach: Reach
    providers: tuple[str, ...]


@click.group()
def observe() -> None:
    """Ask RIPEstat and a registry's RDAP, and keep the answers.

    Three outcomes are never mixed: present, absent, and no answer, which proves nothing.
    """


def _asking(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a verb that asks."""
    for option in (
        click.option("--provider", multiple=True, metavar="NAME", help="Whose dossier it is for."),
        click.option(
            "--ripestat",
            envvar="OUVRAGE_RIPESTAT_URL",
            default=ripestat.BASE,
            metavar="URL",
            show_default=True,
            help="Where RIPEstat is; also OUVRAGE_RIPESTAT_URL.",
        ),
        click.option(
            "--rdap",
            envvar="OUVRAGE_RDAP_URL",
            default=rdap.BASE,
            metavar="URL",
            show_default=True,
            help="Where the registry is; also OUVRAGE_RDAP_URL.",
        ),
        click.option(
            "--follow", multiple=True, metavar="HOST", help="A host that may be redirected to."
        ),
        click.option(
            "--timeout",
            type=Seconds(0.05, 600),
            default=20.0,
            show_default=True,
            metavar="SECONDS",
            help="For each question, all of it.",
        ),
        json_option,
    ):
        verb = option(verb)
    return verb


@observe.command()
@click.argument("number", metavar="NUMBER")
@_asking
@click.option(
    "--he-page",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also read a page of bgp.he.net about the AS that you saved.",
)
@click.option("--saved-on", metavar="TIME", help="When you saved that page (UTC).")
def asn(number: str, he_page: Path | None, saved_on: str | None, **options: Any) -> int:
    """What is seen and registered of an AS NUMBER, such as 209045."""
    found = _AS.fullmatch(number.strip())
    if not found or not 0 < int(found[1]) < 2**32:
        raise OuvrageError("evidence/asn", f"{number!r} is no AS number", hint="such as 209045")
    if (he_page is None) != (saved_on is None):
        raise OuvrageError(
            "command/usage",
            "a saved page and the moment at which it was saved go together",
            hint="--he-page FILE --saved-on 2026-11-30T14:05:00Z",
        )
    subject, way = f"AS{int(found[1])}", _way(options)
    asked = [
        (ripestat.OVERVIEW, ripestat.overview_address(way.ripestat, subject)),
        (ripestat.STATUS, ripestat.status_address(way.ripestat, subject)),
        (ripestat.PREFIXES, ripestat.prefixes_address(way.ripestat, subject)),
        (rdap.AUTNUM, rdap.autnum_address(way.rdap, subject)),
    ]
    saved = [] if he_page is None else [_saved(he_page, saved_on or "", subject, way)]
    return _observe(subject, asked, way, saved, as_json=options["as_json"])


@observe.command()
@click.argument("block", metavar="BLOCK")
@_asking
def ip(block: str, **options: Any) -> int:
    """What is seen and registered of an address BLOCK, such as 2a09:7000::/31."""
    try:
        subject = str(ipaddress.ip_network(block.strip()))
    except ValueError as error:
        raise OuvrageError(
            "evidence/block", f"{block!r} is no address block", hint="such as 2a09:7000::/31"
        ) from error
    way = _way(options)
    asked = [
        (ripestat.BLOCK, ripestat.status_address(way.ripestat, subject)),
        (rdap.IP, rdap.ip_address(way.rdap, subject)),
    ]
    return _observe(subject, asked, way, [], as_json=options["as_json"])


def _way(options: dict[str, Any]) -> _Way:
    return _Way(
        ripestat=options["ripestat"],
        rdap=options["rdap"],
        providers=options["provider"],
        reach=Reach(
            deadline_s=options["timeout"],
            limit_bytes=LARGEST_ANSWER,
            follow=frozenset(host.lower() for host in options["follow"]),
        ),
    )


def _saved(file: Path, saved_on: str, subject: str, way: _Way) -> Observation:
    """What a saved page says. Raises ``OuvrageError`` where it is not a page about the AS."""
    saved_us = moment(saved_on)
    with file.open("rb") as page:
        body = page.read(LARGEST_ANSWER + 1)
    answer = Answer(
        address=f"{hurricane.ADDRESS}{subject}",
        asked_us=saved_us,
        answered_us=None,
        status=None,
        body=body[:LARGEST_ANSWER],
        fault=None if len(body) <= LARGEST_ANSWER else f"longer than {LARGEST_ANSWER} bytes",
    )
    found = observation_of(hurricane.PAGE, subject, answer, way.providers, made_by=_SAVED_BY)
    if found.fault is not None or saved_us > now_us():
        words = found.fault or "it is said to be saved in the future"
        raise OuvrageError(
            "evidence/page", f"{file}: {words}", hint=f"save {answer.address} as HTML"
        )
    return found


def _observe(
    subject: str,
    asked: list[tuple[Place, str]],
    way: _Way,
    saved: list[Observation],
    *,
    as_json: bool,
) -> int:
    said: list[tuple[Fact, Observation]] = []
    with opened() as ledger:
        for observation in _each(subject, asked, way, saved):
            fact = _recorded(ledger, observation)
            said.append((fact, observation))
            if not as_json:
                say_text("\n".join(_lines(fact, observation)))
    if as_json:
        say_json({"subject": subject, "observations": [_json(*pair) for pair in said]})
    else:
        silent = sum(o.fault is not None for _, o in said)
        say_text(_end(len(said), silent))
    return 0


def _each(
    subject: str, asked: list[tuple[Place, str]], way: _Way, saved: list[Observation]
) -> Iterator[Observation]:
    for place, address in asked:
        yield observation_of(place, subject, get(address, way.reach), way.providers)
    yield from saved


def _recorded(ledger: Ledger, observation: Observation) -> Fact:
    ours = observation.made_by != _SAVED_BY
    fact = observed(
        observation,
        source=source_id(ledger.home),
        id=new_id(),
        grade=Grade.MEASURED if ours else Grade.REPORTED,
    )
    record(ledger, [fact])
    return fact


def _lines(fact: Fact, observation: Observation) -> Iterator[str]:
    status = "" if observation.status is None else f", HTTP {observation.status}"
    yield safe(f"{observation.subject}: {observation.place}{status}  ({name_of(fact)})")
    if observation.fault is not None:
        yield safe(f"  no answer: {observation.fault}")
        return
    for finding in observation.findings:
        yield safe(f"  {finding.outcome:<9}  {finding.property}{_value(finding)}")


def _value(finding: Finding) -> str:
    if finding.value is None:
        return ""
    return f": {finding.value}{f' {finding.unit}' if finding.unit else ''}"


def _end(many: int, silent: int) -> str:
    text = f"{many} observations recorded, each with its answer."
    if silent:
        text = (
            f"{many} observations recorded; {silent} of them got no answer, which proves nothing."
        )
    return f"{text}\nThe dossier: ouvrage evidence report PROVIDER"


def _json(fact: Fact, observation: Observation) -> dict[str, Any]:
    return {
        "name": name_of(fact),
        "fact": fact.key,
        "place": observation.place,
        "address": observation.address,
        "status": observation.status,
        "outcome": NO_ANSWER if observation.fault is not None else "answered",
        "fault": observation.fault,
        "sha256": observation.sha256,
        "size_bytes": observation.size_bytes,
        "grade": fact.grade.word,
        "findings": [
            {
                "property": finding.property,
                "outcome": finding.outcome,
                "value": finding.value,
                "unit": finding.unit,
                "grade": finding.grade,
            }
            for finding in observation.findings
        ],
    }
