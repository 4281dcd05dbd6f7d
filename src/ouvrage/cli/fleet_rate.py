"""``ouvrage fleet rate``: the price of an hour in a partition, from a day on.

Decides that a price is for one GPU (or, with ``--per cpu``, for one core of a job without GPUs), that it is billed by a rate plan, and that
a later price takes the place of an earlier one from its own beginning. Nothing is charged by stating one.
"""

from __future__ import annotations

from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.feeds.told import key_part, name_part
from ouvrage.adapters.rate_files import frozen_plan
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, number
from ouvrage.base.price import PER_US, parse_price
from ouvrage.base.time import HOUR
from ouvrage.books.fleet.record import FLEET_KINDS, Fleet
from ouvrage.books.period import day_named, day_start
from ouvrage.cli.booking import book
from ouvrage.cli.fleet_asked import the_fleet
from ouvrage.cli.import_told import site_zone
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.ledger.stated import Stated
from ouvrage.model.fleet import ClusterRate
from ouvrage.pricing.rates.frozen import check_for_sale, thawed


@click.command()
@click.argument("partition")
@click.option(
    "--price",
    "price_text",
    metavar="2.10/h",
    required=True,
    help="For one GPU, or with --per cpu for one core.",
)
@click.option(
    "--per",
    type=click.Choice(("gpu", "cpu")),
    default="gpu",
    show_default=True,
    help="What it is the price of.",
)
@click.option("--qos", metavar="NAME", help="Only for jobs of this class.")
@click.option(
    "--plan",
    metavar="PLAN",
    default="per-second",
    help="Billing rules: a shipped plan's name or a TOML file (per-second).",
)
@click.option("--from", "begins", metavar="DAY", help="Since when (since the cluster is known).")
@click.option("--cluster", metavar="NAME", help="The cluster, where several are known.")
@json_option
def rate(
    partition: str,
    price_text: str,
    per: str,
    qos: str | None,
    plan: str,
    begins: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """What an hour costs in PARTITION: one GPU of a job, or one core of a job without."""
    price = parse_price(price_text)
    hourly = number(price.amount) * HOUR / PER_US[price.per]
    if number(decimal_text(hourly)) != hourly:
        raise OuvrageError(
            "fleet/price",
            f"{price_text} is no exact price of an hour",
            hint="give it per hour: --price 2.10/h",
        )
    name, text = frozen_plan(plan)
    check_for_sale(thawed(text), decimal_text(hourly), price.currency)
    with opened() as ledger:
        found = the_fleet(ledger.store.lines(FLEET_KINDS), cluster)
        _check(found, partition, qos)
        since = found.from_us or now_us()
        if begins is not None:
            since = _day(begins, site_zone(ledger, None))
        value = ClusterRate(
            cluster=found.cluster, partition=partition, qos=qos, per=per, rate=decimal_text(hourly), currency=price.currency,
            plan_name=name, plan=text,
        )  # fmt: skip
        booked = book(ledger, [_stated(value, since)], typed=True)
    words = f"{partition}{f' ({qos})' if qos else ''}: {price.text()} for one {'GPU' if per == 'gpu' else 'core'}, billed {name}"
    if as_json:
        say_json({"cluster": found.cluster, "partition": partition, "qos": qos, "per": per, "rate": value.rate,
                  "currency": value.currency, "plan": name, "recorded": booked.words})  # fmt: skip
        return
    say_text(f"{words} ({booked.words})\nWhat it comes to: ouvrage fleet report")


def _day(text: str, zone: str) -> int:
    try:
        return day_start(day_named(text), zone)
    except ValueError as error:
        raise OuvrageError("fleet/day", str(error), hint="--from 2026-11-01") from error


def _check(found: Fleet, partition: str, qos: str | None) -> None:
    for what, name, known in (("partition", partition, found.partitions), ("qos", qos, found.qos)):
        if name is not None and known and name not in known:
            raise OuvrageError(
                f"fleet/{what}", f"{found.cluster} has no {what} {name!r}", where=tuple(sorted(known)),
                hint=f"it has {', '.join(sorted(known))}",
            )  # fmt: skip


def _stated(value: ClusterRate, since: int) -> Stated:
    parts: tuple[Any, ...] = (value.cluster, value.partition, value.qos or "any", value.per)
    return Stated(
        natural=f"cluster-rate/{'/'.join(map(key_part, parts))}/{since}", value=value, subject=f"cluster:{name_part(value.cluster)}",
        valid_from=since, valid_to=None, grade=Grade.REPORTED,
    )  # fmt: skip
