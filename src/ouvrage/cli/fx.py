"""``ouvrage fx``: dated rates of exchange, each a fact with who says it.

Decides which rate stands between two currencies: the one of the latest day, the last recorded of that
day. Nothing is fetched (files are read), and no rate is made from two others.
"""

from __future__ import annotations

import re

import click

from ouvrage.adapters.catalogues.rows import number_in
from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.time import DAY, utc_text
from ouvrage.cli.fx_import import import_
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, moment
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.ledger.view import in_force
from ouvrage.model.offers import ExchangeRate


@click.group()
def fx() -> None:
    """Rates of exchange, so that prices in two currencies can be compared.

    \b
    ouvrage fx set EUR/USD 1.08 --day 2026-11-30 --by "the central bank's reference rate"
    ouvrage fx import eurofxref-hist.csv --currency USD --since 2026-01-01
    """


fx.add_command(import_)


@fx.command("set")
@click.argument("pair", metavar="BASE/QUOTE")
@click.argument("rate", metavar="RATE")
@click.option("--day", metavar="DATE", required=True, help="The day of which it is said.")
@click.option("--by", "said_by", metavar="WHO", required=True, help="Who says it.")
@json_option
def set_(pair: str, rate: str, day: str, said_by: str, as_json: bool) -> None:
    """Record that one BASE is worth RATE of QUOTE on a day."""
    match = re.fullmatch("([A-Z][A-Z0-9]{1,9})/([A-Z][A-Z0-9]{1,9})", pair)
    value = number_in(rate)
    if not match or match[1] == match[2] or not value:
        raise OuvrageError(
            "fx/unreadable",
            f"{pair} {rate} is no rate of exchange",
            hint="write it as ouvrage fx set EUR/USD 1.08 --day 2026-11-30 --by WHO",
        )
    at = moment(day) // DAY * DAY
    if at > now_us():
        raise OuvrageError("fx/future", f"{day} has not come yet", hint="name the rate's own day")
    stated = ExchangeRate(
        base=match[1], quote=match[2], rate=rate.strip(), day=utc_text(at)[:10], said_by=said_by
    )
    with opened() as ledger:
        source = source_id(ledger.home)
        fact = fact_of(
            stated,
            source=source,
            id=f"fx/{pair}/{stated.day}/{rate.strip()}/{said_by[:100]}",
            subject=f"fx:{pair}",
            valid_from=at,
            valid_to=at + DAY,
            grade=Grade.REPORTED,
        )
        (outcome,) = ledger.store.append([fact], now_us=now_us(), own_source=source)
    told = _json(stated)
    if as_json:
        say_json({**told, "result": outcome.result})
        return
    say_text(f"1 {stated.base} = {stated.rate} {stated.quote} on {stated.day} ○: {outcome.result}")


@fx.command("list")
@json_option
def list_(as_json: bool) -> None:
    """The recorded rates, the latest day first."""
    with opened() as ledger:
        found = _recorded(ledger)[::-1]
    if as_json:
        say_json({"rates": [_json(each) for each in found]})
        return
    if not found:
        say_text("No rates yet: ouvrage fx set EUR/USD 1.08 --day 2026-11-30 --by WHO")
        return
    rows = [(each.day, f"{each.base}/{each.quote}", each.rate, each.said_by) for each in found]
    say_text(table(("day", "pair", "rate", "who says so"), rows, "<<><"))


def _json(rate: ExchangeRate) -> dict[str, str]:
    return {name: getattr(rate, name) for name in ("base", "quote", "rate", "day", "said_by")}


def _recorded(ledger: Ledger) -> list[ExchangeRate]:
    records = in_force(ledger.store.records(kind=ExchangeRate.KIND))
    found = [
        (value.day, entry.seq, value)
        for entry in records
        if isinstance(value := read(entry.fact), ExchangeRate)
    ]
    return [value for _, _, value in sorted(found, key=lambda each: each[:2])]


def rates_between(ledger: Ledger, currency: str, others: set[str]) -> dict[str, ExchangeRate]:
    """For each of the other currencies the latest rate to or from this one, where there is any."""
    found: dict[str, ExchangeRate] = {}
    for rate in _recorded(ledger):
        pair = {rate.base, rate.quote}
        if currency in pair and pair - {currency} <= others:
            found[(pair - {currency}).pop()] = rate
    return found
