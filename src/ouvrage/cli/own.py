"""``ouvrage own``: an owner's word, one statement at a time: machines, GPUs, parts, loans, leases.

Decides how each is asked for and what is refused against what is known already: a lease of GPUs that
are all leased, a part of nothing, a term that an object has not. The same word again changes nothing;
another word about the same thing corrects it. ``ouvrage init`` states the usual ones in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.books.calendar import Turn, in_turn, leases_of, placements
from ouvrage.books.period import Period
from ouvrage.books.record import FOR_EVER, Known, OwnerRecord
from ouvrage.cli.booking import Booked, Stated, book
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.own_context import owning, site_of, site_of_node
from ouvrage.cli.own_plan import plan
from ouvrage.cli.own_show import show, withdraw
from ouvrage.cli.own_tariff import tariff
from ouvrage.cli.owning import (
    amount,
    asset_part_stated,
    asset_stated,
    device_stated,
    lease_stated,
    loan_stated,
    node_stated,
    retired_stated,
    state_stated,
    term_stated,
)
from ouvrage.model.assets import Asset, AssetPart, AssetRetired, Loan
from ouvrage.model.earnings import OwnerLease
from ouvrage.model.occupancy import DeviceState
from ouvrage.model.sites import DevicePlaced


@click.group()
def own() -> None:
    """State what you own, what it cost, and what it did.

    \b
    ouvrage own term site:home electricity 0.31/kWh --from 2026-04-01
    ouvrage own gpu node-1-gpu4 --node node-1 --model "RTX 4090" --since 2026-05-02
    ouvrage own lease spring --of node:node-1 --count 2 --tenant ann --price 0.45/h \\
        --from 2026-05-01 --to 2026-06-01
    """


def _say(stated: Stated, booked: Booked, words: str, *, as_json: bool) -> None:
    """The one line that every statement answers with."""
    result = "corrected" if booked.corrected else "recorded" if booked.new else "said before"
    if as_json:
        say_json({"natural": stated.natural, "result": result})
    else:
        what = safe(stated.natural.removeprefix("own/"))
        say_text(
            f"{safe(words)}: {result}.\nStated so far: ouvrage own show      "
            f"Never so: ouvrage own withdraw {what} --why TEXT"
        )


site_option = click.option("--site", metavar="NAME", help="Whose, where there are several sites.")


def _dates(*names: tuple[str, str, bool, str]) -> Callable[[Any], Any]:
    """Options that name a day."""

    def decorate(verb: Any) -> Any:
        for option, name, required, words in reversed(names):
            verb = click.option(option, name, metavar="DAY", required=required, help=words)(verb)
        return verb

    return decorate


@own.command("node")
@click.argument("name")
@_dates(
    ("--since", "since", True, "The day it came into service."),
    ("--until", "until", False, "The first day that it is not in service any more."),
)
@site_option
@json_option
def node_(name: str, since: str, until: str | None, site: str | None, as_json: bool) -> None:
    """A machine and the time in which it is in service."""
    with owning(site) as here:
        ends = None if until is None else here.place.moment(until)
        begins = here.place.moment(since)
        stays = in_turn(here.record.homes.get(name, ()), lambda value: [value.node])
        stated = node_stated(name, here.place.site, begins, ends, _again(stays, begins, since))
        booked = book(here.ledger, [stated], typed=True)
    _say(
        stated,
        booked,
        f"node {name} in service from {since}" + (f" to {until}" if until else ""),
        as_json=as_json,
    )


@own.command("gpu")
@click.argument("device", metavar="ID")
@click.option(
    "--node", "node", metavar="NODE", required=True, help="The machine that it stands in."
)
@click.option("--model", metavar="NAME", help="RTX 4090, H100, …")
@click.option("--slot", type=click.IntRange(0), metavar="N", help="Its index in the machine.")
@_dates(
    ("--since", "since", True, "The day it was put there."),
    ("--until", "until", False, "The day it was taken out."),
)
@json_option
def gpu(
    device: str,
    node: str,
    model: str | None,
    slot: int | None,
    since: str,
    until: str | None,
    as_json: bool,
) -> None:
    """A GPU in a machine. Put elsewhere later, or another in its slot, it leaves the old place."""
    with owning(site_of_node(node)) as here:
        here.exists(f"node:{node}")
        known = here.record.placed.get(device, ())
        model = model or next((k.value.model for k in reversed(known) if k.value.model), None)
        placed = DevicePlaced(device=device, node=node, model=model, slot=slot)
        ends = None if until is None else here.place.moment(until)
        begins = here.place.moment(since)
        standing = placements(here.record)
        stays = [t for t in standing if t.value.device == device and t.value.node == node]
        stated = device_stated(placed, begins, ends, _again(stays, begins, since))
        booked = book(here.ledger, [stated], typed=True)
    words = f"GPU {device} in {node} from {since}" + (f" to {until}" if until else "")
    _say(stated, booked, words + _leaving(standing, placed, begins), as_json=as_json)


def _again(stays: Sequence[Turn[Any]], begins: int, since: str) -> str:
    """The day as a name for a stay of its own, where an earlier one has ended by then.

    A stay that has not ended is corrected; one that has is history, which a later one does not change.
    """
    return since if any(turn.to_us <= begins for turn in stays) else ""


def _leaving(standing: Sequence[Turn[DevicePlaced]], placed: DevicePlaced, begins: int) -> str:
    """What has to leave because of a placing: another GPU its slot, or this one another machine."""
    there = [turn for turn in standing if turn.from_us <= begins < turn.to_us]
    slot = (placed.node, placed.slot)
    words = [
        f"; {t.value.device} leaves slot {placed.slot}"
        for t in there
        if placed.slot is not None
        and (t.value.node, t.value.slot) == slot
        and t.value.device != placed.device
    ]
    words += [
        f"; it leaves {t.value.node}"
        for t in there
        if t.value.device == placed.device and t.value.node != placed.node
    ]
    return "".join(words)


@own.command("term")
@click.argument("about", metavar="ABOUT")
@click.argument("name")
@click.argument("value")
@_dates(
    ("--from", "begins", False, "The day from which it holds; else it always did."),
)
@click.option(
    "--by", "said_by", metavar="WHO", default="the owner", show_default=True, help="Who says so."
)
@json_option
def term_(
    about: str, name: str, value: str, begins: str | None, said_by: str, as_json: bool
) -> None:
    """A figure that was agreed or is known: NAME of ABOUT is VALUE.

    \b
    ouvrage own term site:home pue 1.2
    ouvrage own term node:node-1 load_power_w 1900
    ouvrage own term channel:vast fee 15%
    """
    with owning(site_of(about)) as here:
        here.exists(about)
        held = here.record.site(here.place.site)
        first = min(
            [held.valid_from if held else now_us(), *(n.valid_from for n in here.record.nodes)]
        )
        from_us = first if begins is None else here.place.moment(begins)
        stated = term_stated(
            here.place, about, name, value, from_us=from_us, since=begins or "", said_by=said_by
        )
        booked = book(here.ledger, [stated], typed=True)
    when = f" from {begins}" if begins else ""
    unit = stated.value.unit
    shown = stated.value.value if unit == "1" else f"{stated.value.value} {unit}"
    _say(stated, booked, f"{name} of {about} is {shown}{when}", as_json=as_json)


def _identity_options(verb: Any) -> Any:
    """Options that say which part of a machine was bought, and of whom."""
    for option in (
        click.option("--order", metavar="TEXT", help="The number on the bill."),
        click.option("--supplier", metavar="NAME", help="Who sold it."),
        click.option(
            "--slot", "slots", multiple=True, metavar="KIND:PLACE",
            help="Its place, where it tells no serial number: 'dimm:P0 A1'.",
        ),
        click.option(
            "--serial", "serials", multiple=True, metavar="TEXT", help="Its serial number, or several."
        ),
    ):  # fmt: skip
        verb = option(verb)
    return verb


def _part_of(asset: str, identity: Mapping[str, Any]) -> AssetPart | None:
    """What was said of which part it is; None where nothing was."""
    return AssetPart(asset=asset, **identity) if any(identity.values()) else None


@own.command("asset")
@click.argument("name")
@click.option(
    "--of", "about", metavar="ABOUT", required=True, help="node:node-1, device:ID or site:home."
)
@click.option("--price", metavar="AMOUNT", required=True, help="What it cost.")
@_dates(
    ("--bought", "bought", True, "The day from which it is used."),
    ("--warranty-until", "warranty", False, "The day its warranty ends."),
)
@click.option("--what", metavar="TEXT", default="", help="What it is: GPU, power supply, …")
@click.option(
    "--life-months", type=click.IntRange(1), metavar="N", help="Used up evenly over N months."
)
@click.option(
    "--life-hours", type=click.IntRange(1), metavar="N", help="Used up by N hours of work."
)
@click.option("--declining", metavar="SHARE", help="Loses this share of what is left each year.")
@click.option("--residual", metavar="AMOUNT", default="0", help="What it is worth at the end.")
@_identity_options
@json_option
def asset(
    name: str,
    about: str,
    price: str,
    bought: str,
    warranty: str | None,
    what: str,
    life_months: int | None,
    life_hours: int | None,
    declining: str | None,
    residual: str,
    as_json: bool,
    **identity: Any,
) -> None:
    """A part that was bought, with its price and how long it is used.

    With --serial or --slot `ouvrage node inventory` knows the part in its machine; without, an asset of a node is the machine.
    """  # fmt: skip
    ways = [way for way in (life_months, life_hours, declining) if way is not None]
    if len(ways) > 1:
        raise OuvrageError(
            "own/depreciation",
            "it is used up in one way",
            hint="--life-months, --life-hours or --declining",
        )
    with owning(site_of(about)) as here:
        currency = here.place.currency
        value = Asset(
            asset=name, about=here.exists(about), what=what or name, currency=currency,
            price=amount(price, "CUR", currency, "--price"),
            method="hours" if life_hours else "declining" if declining else "straight-line",
            life_months=life_months or (None if ways else 60), life_hours=life_hours,
            declining_share=None if declining is None else amount(declining, "1", currency, "--declining"),
            residual=amount(residual, "CUR", currency, "--residual"), warranty_until=warranty,
        )  # fmt: skip
        stated = asset_stated(value, here.place.moment(bought))
        stated = stated if ways else replace(stated, grade=Grade.ASSUMED)
        parts = _part_of(name, identity)
        more = [] if parts is None else [asset_part_stated(parts, about, stated.valid_from)]
        booked = book(here.ledger, [stated, *more], typed=True)
    life = "" if ways else ", used for 60 months as is assumed (--life-months)"
    _say(
        stated,
        booked,
        f"{name} of {about} for {value.price} {currency} on {bought}{life}",
        as_json=as_json,
    )


@own.command("retire")
@click.argument("name")
@_dates(
    ("--on", "on", True, "The day it left use."),
)
@click.option("--proceeds", metavar="AMOUNT", default="0", help="What it was sold for.")
@click.option("--why", metavar="TEXT", required=True, help="Why it left.")
@json_option
def retire(name: str, on: str, proceeds: str, why: str, as_json: bool) -> None:
    """A part that left use: sold, broken or given away."""
    with owning(None) as here:
        held = next((each for each in here.record.assets if each.value.asset == name), None)
        if held is None:
            names = ", ".join(sorted(each.value.asset for each in here.record.assets))
            raise OuvrageError(
                "own/unknown", f"no part is called {name!r}", hint=f"there is {names or 'none'}"
            )
        currency = held.value.currency
        value = AssetRetired(
            asset=name,
            proceeds=amount(proceeds, "CUR", currency, "--proceeds"),
            currency=currency,
            why=why,
        )
        stated = retired_stated(value, held.value.about, here.place.moment(on))
        if stated.valid_from < held.valid_from:
            raise OuvrageError(
                "own/period", f"{name} left before it was bought", hint="--on a later day"
            )
        booked = book(here.ledger, [stated], typed=True)
    _say(stated, booked, f"{name} left use on {on}, {why}", as_json=as_json)


@own.command("loan")
@click.argument("name")
@click.option("--of", "about", metavar="ABOUT", required=True, help="node:node-1 or site:home.")
@click.option(
    "--amount", "borrowed", metavar="AMOUNT", required=True, help="How much was borrowed."
)
@click.option("--rate", metavar="SHARE", required=True, help="Interest a year: 6 %.")
@click.option("--months", type=click.IntRange(1), metavar="N", required=True, help="Its length.")
@click.option(
    "--shape",
    type=click.Choice(("annuity", "linear", "bullet")),
    default="annuity",
    show_default=True,
    help="How it is paid back.",
)
@_dates(
    ("--from", "begins", True, "The day it was paid out."),
)
@json_option
def loan(
    name: str,
    about: str,
    borrowed: str,
    rate: str,
    months: int,
    shape: str,
    begins: str,
    as_json: bool,
) -> None:
    """Money borrowed for a machine."""
    with owning(site_of(about)) as here:
        currency = here.place.currency
        value = Loan(
            loan=name, about=here.exists(about), currency=currency, months=months, shape=shape,
            principal=amount(borrowed, "CUR", currency, "--amount"),
            rate_per_year=amount(rate, "1", currency, "--rate"),
        )  # fmt: skip
        stated = loan_stated(value, here.place.moment(begins))
        booked = book(here.ledger, [stated], typed=True)
    words = (
        f"loan {name} of {value.principal} {currency} for {about}, {months} months from {begins}"
    )
    _say(stated, booked, words, as_json=as_json)


@own.command("lease")
@click.argument("name")
@click.option("--of", "about", metavar="ABOUT", required=True, help="node:node-1 or device:ID.")
@click.option(
    "--count",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many GPUs of it.",
)
@click.option("--tenant", metavar="WHO", required=True, help="Who has them.")
@click.option(
    "--channel", metavar="NAME", default="own", show_default=True, help="Through whom: own, vast, …"
)
@click.option("--price", metavar="AMOUNT/h", required=True, help="For one GPU and hour.")
@click.option("--list-price", metavar="AMOUNT/h", help="What was asked before any discount.")
@_dates(
    ("--from", "begins", True, "When it begins: a day, or 2026-05-01T08:00:00Z."),
    ("--to", "ends", True, "When it ends."),
)
@json_option
def lease(
    name: str,
    about: str,
    count: int,
    tenant: str,
    channel: str,
    price: str,
    list_price: str | None,
    begins: str,
    ends: str,
    as_json: bool,
) -> None:
    """GPUs that a tenant has for a time, whether they work or not."""  # fmt: skip
    with owning(site_of(about)) as here:
        currency = here.place.currency
        value = OwnerLease(
            lease=name, about=here.exists(about), count=count, tenant=tenant, channel=channel, currency=currency,
            price=amount(price, "CUR/h", currency, "--price"),
            list_price=None if list_price is None else amount(list_price, "CUR/h", currency, "--list-price"),
        )  # fmt: skip
        stated = lease_stated(value, here.place.moment(begins), here.place.moment(ends))
        _refuse_overlap(here.record, stated)
        booked = book(here.ledger, [stated], typed=True)
    words = f"{tenant} has {count} of {about} at {value.price} {currency}/h from {begins} to {ends}"
    _say(stated, booked, words, as_json=as_json)


def _refuse_overlap(record: OwnerRecord, stated: Stated) -> None:
    """Raise ``OuvrageError`` ``lease/overlap`` where there are not so many GPUs free at that time."""
    lease: OwnerLease = stated.value
    others = [each for each in record.leases if each.value.lease != lease.lease]
    new = Known(
        value=lease,
        valid_from=stated.valid_from,
        valid_to=stated.valid_to,
        grade=stated.grade,
        key="new",
    )
    sort, _, name = lease.about.partition(":")
    nodes = (
        [t.value.node for t in placements(record) if t.value.device == name]
        if sort == "device"
        else [name]
    )
    period = Period(
        from_us=stated.valid_from, to_us=stated.valid_to or FOR_EVER, name="", zone="UTC"
    )
    with_new = replace(record, leases=(*others, new))
    without = {
        each.key
        for node in nodes
        for each in leases_of(replace(record, leases=tuple(others)), node, period).homeless
    }
    for node in nodes:
        for homeless in leases_of(with_new, node, period).homeless:
            if homeless.key not in without:
                raise _overlap(lease, node, others, stated)


def _overlap(
    lease: OwnerLease, node: str, others: Sequence[Known[OwnerLease]], stated: Stated
) -> OuvrageError:
    end = stated.valid_to or FOR_EVER
    meeting = [
        f"{each.value.lease}: {each.value.count} of {each.value.about} for {each.value.tenant} from "
        f"{utc_text(each.valid_from)[:16]}Z to {utc_text(each.end)[:16]}Z   {each.key}"
        for each in others
        if each.meets(stated.valid_from, end)
    ]
    return OuvrageError(
        "lease/overlap",
        f"{lease.lease} wants {lease.count} of {lease.about}, and {node} has not so many free all that time",
        where=tuple(meeting),
        hint="a GPU is leased to one tenant at a time; end one lease earlier or name another machine",
    )


@own.command("state")
@click.argument("about", metavar="ABOUT")
@click.argument("state")
@_dates(
    ("--from", "begins", True, "When it began: a day, or 2026-05-01T08:00:00Z."),
    ("--to", "ends", True, "When it ended."),
)
@click.option("--cause", metavar="TEXT", default="", help="Why: no demand, fan broken, …")
@click.option("--count", type=click.IntRange(1), metavar="N", help="So many of a node's GPUs.")
@click.option("--channel", metavar="NAME", help="On which channel it was sold.")
@click.option("--tenant", metavar="WHO", help="Who had it.")
@json_option
def state_(
    about: str,
    state: str,
    begins: str,
    ends: str,
    cause: str,
    count: int | None,
    channel: str | None,
    tenant: str | None,
    as_json: bool,
) -> None:
    """What a GPU, or every GPU of a node, was doing for a while.

    STATE is working, held, reserved, free, maintenance, down or unknown.
    """  # fmt: skip
    with owning(site_of(about)) as here:
        sort, _, name = here.exists(about).partition(":")
        if sort not in ("node", "device"):
            raise OuvrageError(
                "own/about", f"{about} has no state", hint="node:node-1 or device:ID"
            )
        value = DeviceState(
            device=name if sort == "device" else None, node=name if sort == "node" else None,
            count=count if sort == "node" else None, state=state, cause=cause, channel=channel,
            tenant=tenant, lease=None,
        )  # fmt: skip
        stated = state_stated(value, here.place.moment(begins), here.place.moment(ends))
        booked = book(here.ledger, [stated], typed=True)
    _say(stated, booked, f"{about} was {state} from {begins} to {ends}", as_json=as_json)


own.add_command(tariff)
own.add_command(plan)
own.add_command(withdraw)
own.add_command(show)
