"""``ouvrage rental``: say what a machine costs from when to when, and see what was paid for nothing.

Decides what may be said: one open rental of this machine at a time, moments that have come, an end
after the start. What is said is a fact; where alarms go is kept beside the ledger, since an address
may be a secret and facts travel.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.names import check_campaign
from ouvrage.base.price import Price, parse_price
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger, known_runs, opened, past
from ouvrage.cli.options import as_of_option, json_option, moment, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.cli.rental_watch import watch
from ouvrage.cli.renting import (
    FIRST,
    accounted,
    channels_file,
    check_channels,
    keep_channels,
    open_rental,
    rental_called,
    rentals,
)
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.rental_view import RentalView
from ouvrage.model.rentals import RentalCampaign, RentalEnded, RentalRun, RentalStarted
from ouvrage.pricing.rental_cost import RentalAccount, rental_json, rental_sheet, rental_text
from ouvrage.pricing.summary import money
from ouvrage.pricing.words import duration

_HEAD = ("rental", "label", "started (UTC)", "paid", "working", "held", "cost")


@click.group()
def rental() -> None:
    """What is paid for a machine around the commands that run on it."""


@rental.command("start")
@click.option("--price", required=True, metavar="0.44/h", help="What the machine costs by time.")
@click.option("--currency", metavar="EUR", help="Currency of the price (EUR).")
@click.option("--label", metavar="NAME", help="A name for this rental, to find it by.")
@click.option("--since", metavar="TIME", help="When it began to be paid for (UTC; now).")
@click.option(
    "--elsewhere",
    is_flag=True,
    help="It is not this machine: only runs added by `rental add` stand on it.",
)
@click.option("--campaign", metavar="NAME", help="The campaign that pays for it.")
@click.option("--webhook", metavar="URL", help="Where `rental watch` posts an alarm.")
@click.option(
    "--on-alarm-command",
    "command",
    metavar="CMD",
    help="What `rental watch` runs at an alarm; it gets the alarm as JSON.",
)
@json_option
@plain_option
def start(
    price: str,
    currency: str | None,
    label: str | None,
    since: str | None,
    elsewhere: bool,
    campaign: str | None,
    webhook: str | None,
    command: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Say that a machine is paid for from now on."""  # fmt: skip
    rate, began = parse_price(price, currency), _moment(since)
    check_channels(webhook, label)
    if campaign is not None:
        check_campaign(campaign)
    with opened() as ledger:
        own = source_id(ledger.home)
        if not elsewhere:
            _refuse_second(ledger, own)
            _refuse_overlap(ledger, own, None, began, now_us() + 1)
        view = _started(ledger, rate, label, began, None if elsewhere else own, campaign)
        if webhook or command:
            keep_channels(ledger.home, view.rental, {"webhook": webhook, "command": command})
        account = accounted(ledger, view, now_us(), live=True)
    _say(account, as_json, plain, _began(view))


def _began(view: RentalView) -> str:
    return (
        f"{view.name} is paid for since {utc_text(view.started.started_us)[:19]}Z at "
        f"{view.started.price.text()}.\n"
        f"Told when it idles: ouvrage rental watch {view.code}      "
        f"When it is given back: ouvrage rental stop {view.code}"
    )


def _started(
    ledger: Ledger, price: Price, label: str | None, began: int, machine: str | None,
    campaign: str | None,
) -> RentalView:  # fmt: skip
    found = new_id()
    stated = RentalStarted(
        rental=found, label=label, price=price, started_us=began, machine=machine
    )
    facts = [_fact(ledger, stated, f"{found}/start", found, began)]
    if campaign is not None:
        joined = RentalCampaign(rental=found, campaign=campaign)
        facts.append(_fact(ledger, joined, f"{found}/campaign/{campaign}", found, began))
    ledger.store.append(facts, now_us=now_us(), own_source=source_id(ledger.home))
    return rentals(ledger)[found]


def _fact(
    ledger: Ledger, value: Any, id: str, subject: str, at: int, corrects: str | None = None
) -> Fact:
    return fact_of(
        value,
        source=source_id(ledger.home),
        id=id,
        subject=subject,
        valid_from=at,
        valid_to=None,
        grade=Grade.REPORTED,
        corrects=corrects,
    )


def _refuse_second(ledger: Ledger, own: str) -> None:
    for view in rentals(ledger).values():
        if view.started.machine == own and view.ended_us is None:
            raise OuvrageError(
                "rental/open",
                f"this machine is being paid for already, as {view.name}",
                hint=f"ouvrage rental stop {view.code}; for another machine say --elsewhere",
            )


def _refuse_overlap(ledger: Ledger, machine: str, this: str | None, began: int, end: int) -> None:
    """One machine is paid for once at a time: what ran on it would count in both."""
    for view in rentals(ledger).values():
        over = view.started.started_us < end and began < (view.ended_us or end)
        if view.rental != this and view.started.machine == machine and over:
            until = "" if view.ended_us is None else f" to {utc_text(view.ended_us)[:19]}Z"
            raise OuvrageError(
                "rental/overlap",
                f"this machine was paid for in a part of that time already, as {view.name}",
                where=(f"{utc_text(view.started.started_us)[:19]}Z{until}",),
                hint=f"ouvrage rental stop {view.code} --at TIME corrects its end; "
                "for another machine say --elsewhere",
            )


def _moment(text: str | None) -> int:
    """A moment that a person states about a rental: it must have come."""
    now = now_us()
    stated = now if text is None else moment(text)
    if stated > now:
        raise OuvrageError(
            "rental/future", f"{utc_text(stated)} has not come yet", hint="say it when it has"
        )
    return stated


@rental.command("stop")
@click.argument("name", metavar="[RENTAL]", required=False)
@click.option("--at", metavar="TIME", help="When it was given back (UTC; now).")
@json_option
@plain_option
def stop(name: str | None, at: str | None, as_json: bool, plain: bool) -> None:
    """Say that a machine was given back, and see what was paid for nothing.

    Without RENTAL the only one that is being paid for. With --at, also a stated end is corrected.
    """
    ended = _moment(at)
    with opened() as ledger:
        view = open_rental(name, rentals(ledger))
        _end(ledger, view, ended, stated=at is not None)
        channels_file(ledger.home, view.rental).unlink(missing_ok=True)
        account = accounted(ledger, rentals(ledger)[view.rental], now_us(), live=True)
    _say(account, as_json, plain)


def _end(ledger: Ledger, view: RentalView, ended: int, *, stated: bool) -> None:
    if view.ended_us is not None and not stated:
        raise OuvrageError(
            "rental/ended",
            f"{view.name} was given back at {utc_text(view.ended_us)[:19]}Z",
            hint=f"to correct that: ouvrage rental stop {view.code} --at TIME",
        )
    if ended < view.started.started_us:
        raise OuvrageError(
            "rental/end", f"it began only at {utc_text(view.started.started_us)[:19]}Z",
            hint="say a later moment",
        )  # fmt: skip
    if ended != view.ended_us:
        if view.started.machine is not None:
            _refuse_overlap(
                ledger, view.started.machine, view.rental, view.started.started_us, ended
            )
        value = RentalEnded(rental=view.rental, ended_us=ended)
        id = f"{view.rental}/end/{new_id()}"
        fact = _fact(ledger, value, id, view.rental, ended, view.end_key)
        ledger.store.append([fact], now_us=now_us(), own_source=source_id(ledger.home))


@rental.command("add")
@click.argument("name", metavar="RENTAL")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@json_option
@plain_option
def add(name: str, runs: tuple[str, ...], as_json: bool, plain: bool) -> None:
    """Say that each RUN stood on the rented machine; for runs imported from it."""
    with opened() as ledger:
        view = rental_called(name, rentals(ledger))
        began = view.started.started_us
        facts = [
            _fact(ledger, RentalRun(rental=view.rental, run=run), f"{view.rental}/run/{run}",
                  view.rental, began)
            for run in known_runs(ledger, runs, None)
        ]  # fmt: skip
        ledger.store.append(facts, now_us=now_us(), own_source=source_id(ledger.home))
        account = accounted(ledger, rentals(ledger)[view.rental], now_us(), live=True)
    _say(account, as_json, plain)


@rental.command("show")
@click.argument("name", metavar="[RENTAL]", required=False)
@json_option
@plain_option
@as_of_option
def show(name: str | None, as_json: bool, plain: bool, as_of: int | None) -> None:
    """What was paid for RENTAL, and how much of it while nothing ran; without a name, list all."""
    with opened() as ledger:
        as_of = past(as_of, ledger)
        views = rentals(ledger, as_of)
        chosen = [rental_called(name, views)] if name is not None else list(views.values())
        at = now_us() if as_of is None else as_of
        accounts = [accounted(ledger, view, at, live=as_of is None) for view in chosen]
    if name is not None:
        _say(accounts[0], as_json, plain)
    elif as_json:
        say_json({"rentals": [_json(account) for account in accounts]})
    elif not accounts:
        say_text(f"No rentals yet.\n  {FIRST}")
    else:
        rows = [_row(account, plain) for account in accounts[::-1]]
        say_text(table(_HEAD, rows, "<<<>>>>"))
        say_text(f"\nOne of them: ouvrage rental show {accounts[-1].view.code}")


def _row(account: RentalAccount, plain: bool) -> tuple[str, ...]:
    view, time, sheet = account.view, account.time, rental_sheet(account)
    return (
        view.code,
        shortened(view.started.label or "", 24),
        utc_text(view.started.started_us)[:16].replace("T", " "),
        duration(time.paid_us) + ("" if view.ended_us is not None else ", open"),
        duration(time.working_us),
        duration(time.held_us),
        money(sheet, "cost.total", plain),
    )


def _json(account: RentalAccount) -> dict[str, Any]:
    return rental_json(account, {run: code_of(run) for run in account.time.shares})


def _say(account: RentalAccount, as_json: bool, plain: bool, words: str | None = None) -> None:
    if as_json:
        say_json(_json(account))
    else:
        say_text(words or rental_text(account, plain=plain))


rental.add_command(watch)
