"""``ouvrage own tariff``: a supplier's sheet of prices, from a file.

Decides for which site and from when it holds where the file does not say, and tells what a steady
kilowatt would cost on a common day, so that a person sees at once whether it was read as meant.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.tariff_files import Asked, TariffRead, read_tariff
from ouvrage.adapters.toml_text import read_text
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe
from ouvrage.books.charges import energy_cost
from ouvrage.books.period import day_of, span
from ouvrage.books.record import Known, OwnerRecord
from ouvrage.books.tariffs import DAYS
from ouvrage.cli.booking import Stated, book
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.own_context import Owning, owning

_KILOWATT_DAY = Fraction(24 * 3_600_000)


@click.command("tariff")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--site", metavar="NAME", help="Whose, where there are several sites.")
@click.option("--name", metavar="NAME", help="What you call it (as in the file).")
@click.option("--zone", metavar="ZONE", help="The zone of its hours (the file's, the site's).")
@click.option("--from", "begins", metavar="DAY", help="From when it holds, if the file is silent.")
@json_option
def tariff(
    file: Path,
    site: str | None,
    name: str | None,
    zone: str | None,
    begins: str | None,
    as_json: bool,
) -> None:
    """What a kilowatt-hour costs by the clock, from a file: TOML, or a rate of OpenEI in JSON.

    \b
    name = "day-and-night"          [[band]]
    from = 2026-01-01               name = "night"
    standing_per_day = "0.41"       hours = "22-6"         # the end not included
    demand_per_kw_month = "4.50"    weekdays = "mon-fri"   # else every day
                                    months = "oct-mar"     # else every month
    [[tier]]                        per_kwh = "0.1612"
    up_to_kwh = 500                 export_per_kwh = "0.08"
    add_per_kwh = "0.02"

    A tariff that leaves an hour without a price is refused with these hours.
    """
    text = read_text(file, "tariff")
    with owning(site) as here:
        held = here.record.site(here.place.site)
        since = min(
            [held.valid_from if held else now_us(), *(n.valid_from for n in here.record.nodes)]
        )
        asked = Asked(
            site=here.place.site,
            currency=here.place.currency,
            zone=zone or here.place.zone,
            name=name,
            since_us=since if begins is None else here.place.moment(begins),
        )
        found = read_tariff(str(file), text, asked)
        stated = _stated(found)
        days = _days(here, found)
        booked = book(here.ledger, [stated], typed=True)
    result = "corrected" if booked.corrected else "recorded" if booked.new else "said before"
    _tell(found, stated.natural, days, result, as_json=as_json)


def _stated(found: TariffRead) -> Stated:
    value = found.tariff
    since = day_of(found.from_us, value.zone).isoformat()
    return Stated(
        natural=f"own/tariff/{value.site}/{value.name}/{since}", value=value,
        subject=f"site:{value.site}", valid_from=found.from_us, valid_to=found.to_us,
        grade=Grade.LISTED,
    )  # fmt: skip


def _days(here: Owning, found: TariffRead) -> dict[str, Fraction]:
    """What the energy of one kilowatt costs on the first Wednesday and the first Saturday."""
    value = found.tariff
    known = Known(
        value=value, valid_from=found.from_us, valid_to=found.to_us, grade=Grade.LISTED, key=""
    )
    bare = replace(value, tiers=(), standing_per_day=None, standing_per_month=None,
                   demand_per_kw_month=None)  # fmt: skip
    record = replace(here.record, tariffs=(replace(known, value=bare),), spots=())
    first = day_of(found.from_us, value.zone) + timedelta(days=1)
    return {
        DAYS[weekday]: _day(record, value.site, first + timedelta((weekday - first.weekday()) % 7), value.zone)
        for weekday in (2, 5)
    }  # fmt: skip


def _day(record: OwnerRecord, site: str, day: date, zone: str) -> Fraction:
    period = span(day, day + timedelta(days=1), zone, "")
    piece = (period.from_us, period.to_us, _KILOWATT_DAY)
    return energy_cost(record, site, [piece], period).total


def _tell(
    found: TariffRead, natural: str, days: dict[str, Fraction], result: str, *, as_json: bool
) -> None:
    value = found.tariff
    begins = day_of(found.from_us, value.zone).isoformat()
    ends = None if found.to_us is None else day_of(found.to_us, value.zone).isoformat()
    if as_json:
        say_json({
            "natural": natural, "result": result, "name": value.name, "zone": value.zone,
            "from": begins, "to": ends, "bands": len(value.bands),
            "kilowatt_day": {day: decimal_text(cost) for day, cost in days.items()},
        })  # fmt: skip
        return
    until = f" until {ends}" if ends else ""
    costs = ", ".join(f"{decimal_text(cost)} on a {day}" for day, cost in days.items())
    beside = [
        f"{amount} {value.currency} {words}"
        for amount, words in (
            (value.standing_per_day, "a day"),
            (value.standing_per_month, "a month"),
            (value.demand_per_kw_month, "for each kW of a month's highest quarter-hour"),
        )
        if amount is not None
    ]
    lines = [
        f"tariff {safe(value.name)} of {value.site} from {begins}{until}: {result}.",
        f"  a steady kilowatt costs {costs} ({value.currency}, by the clock of {value.zone})",
        *([f"  beside it: {', '.join(beside)}"] if beside else []),
        "What power cost: ouvrage books energy      Never so: ouvrage own withdraw "
        f"{natural.removeprefix('own/')} --why TEXT",
    ]
    say_text("\n".join(lines))
