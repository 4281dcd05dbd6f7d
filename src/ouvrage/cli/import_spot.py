"""``ouvrage import spot``: market prices of power, hour by hour or quarter by quarter.

Decides whose prices they are; how columns, moments and units are read is ``adapters/feeds/spot``.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from ouvrage.adapters.feeds.spot import Asked, read_spot
from ouvrage.adapters.feeds.table import decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.numbers import fixed
from ouvrage.cli.import_told import covered, missing_days, read_bytes, recorded, tell
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.own_context import owning
from ouvrage.model.tariffs import SpotPrices


@click.command(name="spot")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--site", metavar="NAME", help="Whose, where there are several sites.")
@click.option("--currency", metavar="CODE", help="Of the prices (the site's).")
@click.option("--zone", metavar="ZONE", help="Of the market's days (the site's).")
@click.option("--unit", type=click.Choice(("MWh", "kWh")), help="A price is per (as named, MWh).")
@click.option("--time-column", metavar="NAME", help="The column of the moment.")
@click.option("--price-column", metavar="NAME", help="The column of the price.")
@json_option
@plain_option
def spot(
    files: tuple[Path, ...],
    site: str | None,
    currency: str | None,
    zone: str | None,
    unit: str | None,
    time_column: str | None,
    price_column: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Market prices of power, for a contract that follows them.

    FILE is a table with a moment and a price (ENTSO-E's day-ahead export among them) or aWATTar's JSON.
    What the supplier makes of the price is stated once:

    \b
    ouvrage own term site:home spot_factor 1.03
    ouvrage own term site:home spot_addition 0.14
    """
    with owning(site) as here:
        asked = Asked(
            site=here.place.site,
            currency=currency or here.place.currency,
            zone=zone or here.place.zone,
            time_column=time_column,
            price_column=price_column,
            unit=unit,
        )
        every: list[Told] = []
        for path in files:
            told = Told(form="spot", file=str(path))
            read_spot(decoded(read_bytes(path), None, str(path)), told, asked)
            every.append(told)
        done = recorded(here.ledger, every, SpotPrices.KIND)
    stated = [each for told in every for each in told.stated]
    done.missing = missing_days(stated)
    prices = [Fraction(text) for each in stated for text in each.value.per_kwh]
    ends = f", {fixed(min(prices), 5)} to {fixed(max(prices), 5)} a kWh" if prices else ""
    done.first = (
        f"{len(prices)} prices of {len(stated)} days in {asked.currency}, {covered(stated)}{ends}"
    )
    done.more = "What power cost: ouvrage books energy"
    return tell(done, as_json, plain)
