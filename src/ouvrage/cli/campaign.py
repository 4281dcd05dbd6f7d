"""``ouvrage campaign``: which runs and rentals are spent on one result.

Decides how a run comes to belong to a campaign after it was metered, or stops to. The figures are
those of ``ouvrage report --campaign NAME``.
"""

from __future__ import annotations

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.names import check_campaign
from ouvrage.cli.campaigning import FIRST, campaign_found, members, names
from ouvrage.cli.ledger import Ledger, known_runs, opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.renting import rental_called, rentals
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.model.accepted import RunCampaign
from ouvrage.model.records import Withdrawal
from ouvrage.model.rentals import RentalCampaign
from ouvrage.pricing.campaign_report import answer, campaign_json


@click.group()
def campaign() -> None:
    """All attempts, sweeps and rentals behind one accepted result."""


@campaign.command("add")
@click.argument("name", metavar="NAME")
@click.argument("runs", metavar="[RUN…]", nargs=-1)
@click.option(
    "--rental",
    "rented",
    metavar="RENTAL",
    multiple=True,
    help="A rental that the campaign pays for; may be given several times.",
)
@json_option
@plain_option
def add(
    name: str, runs: tuple[str, ...], rented: tuple[str, ...], as_json: bool, plain: bool
) -> None:
    """Say that each RUN is an attempt in the campaign NAME; again, it changes nothing."""  # fmt: skip
    check_campaign(name)
    if not runs and not rented:
        raise OuvrageError(
            "campaign/nothing", "no run and no rental is named",
            hint=f"ouvrage campaign add {name} RUN…",
        )  # fmt: skip
    with opened() as ledger:
        ids = known_runs(ledger, runs, None) if runs else []
        held = members(ledger, None).get(name, {})
        facts = [_joins(ledger, run, name) for run in ids if run not in held]
        facts += _rentals_join(ledger, name, rented)
        ledger.store.append(facts, now_us=now_us(), own_source=source_id(ledger.home))
        found = campaign_found(ledger, name, None).campaign
    if as_json:
        say_json(campaign_json(found))
        return
    say_text(answer(found, plain))
    say_text(f"More: ouvrage report --campaign {name}")


def _rentals_join(ledger: Ledger, name: str, rented: tuple[str, ...]) -> list[Fact]:
    views = rentals(ledger) if rented else {}
    chosen = [rental_called(text, views) for text in rented]
    for view in chosen:
        others = [held for held in view.campaigns if held != name]
        if others:
            raise OuvrageError(
                "campaign/rental", f"{view.name} is paid for by the campaign {others[0]} already",
                hint="its runs can be attempts in several campaigns; its rent is paid by one",
            )  # fmt: skip
    return [
        _fact(ledger, RentalCampaign(rental=view.rental, campaign=name), view.rental,
              view.started.started_us)
        for view in chosen
        if name not in view.campaigns
    ]  # fmt: skip


def _joins(ledger: Ledger, run: str, name: str) -> Fact:
    return _fact(ledger, RunCampaign(run=run, campaign=name), run, now_us())


def _fact(
    ledger: Ledger,
    value: RunCampaign | RentalCampaign | Withdrawal,
    subject: str,
    at: int,
    corrects: str | None = None,
) -> Fact:
    return fact_of(
        value,
        source=source_id(ledger.home),
        id=f"campaign/{new_id()}",
        subject=subject,
        valid_from=at,
        valid_to=None,
        grade=Grade.REPORTED,
        corrects=corrects,
    )


@campaign.command("remove")
@click.argument("name", metavar="NAME")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option("--why", required=True, metavar="TEXT", help="Why it never was an attempt in it.")
@json_option
def remove(name: str, runs: tuple[str, ...], why: str, as_json: bool) -> None:
    """Withdraw that each RUN was an attempt in the campaign NAME."""
    with opened() as ledger:
        held = members(ledger, None).get(name, {})
        ids = known_runs(ledger, runs, None)
        strangers = [run for run in ids if run not in held]
        if strangers:
            raise OuvrageError(
                "campaign/not-in-it", f"{code_of(strangers[0])} is no attempt in {name!r}",
                hint=f"ouvrage report --campaign {name} lists them",
            )  # fmt: skip
        value, now = Withdrawal(why=why), now_us()
        facts = [_fact(ledger, value, run, now, held[run].fact.key) for run in ids]
        ledger.store.append(facts, now_us=now, own_source=source_id(ledger.home))
    if as_json:
        say_json({"campaign": name, "removed": ids})
    else:
        say_text(f"{', '.join(map(code_of, ids))}: no longer in {name}.")


@campaign.command("list")
@json_option
@plain_option
def list_(as_json: bool, plain: bool) -> None:
    """What each campaign has cost so far."""
    with opened() as ledger:
        known = names(ledger, rentals(ledger), None)
        found = [campaign_found(ledger, name, None).campaign for name in known]
    if as_json:
        say_json({"campaigns": [campaign_json(each) for each in found]})
    elif not found:
        say_text(f"No campaigns yet.\n  {FIRST}")
    else:
        say_text("\n".join(answer(each, plain) for each in found))
        say_text(f"\nOne of them: ouvrage report --campaign {found[-1].name}")
