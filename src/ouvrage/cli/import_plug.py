"""``ouvrage import plug``: what a smart plug or a meter counted, from saved answers and exports.

Decides which meter it is and before what it hangs; how answers, counters and intervals are read is
``adapters/feeds``.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import click

from ouvrage.adapters.feeds.counters import (
    Meter,
    Reading,
    agreeing,
    fault_between,
    flag,
    kept,
    readings_known,
    readings_stated,
    used_between,
)
from ouvrage.adapters.feeds.intervals import by_hour, pieces_of
from ouvrage.adapters.feeds.moments import moment_in_name
from ouvrage.adapters.feeds.plugs import UNITS, Asked, Series, read_plug
from ouvrage.adapters.feeds.table import decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.base.time import HOUR
from ouvrage.cli.booking import book
from ouvrage.cli.import_told import (
    Imported,
    about_of,
    covered,
    holding,
    joined,
    missing_days,
    read_bytes,
    site_zone,
    tell,
)
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option, moment, plain_option
from ouvrage.ledger.stated import Stated
from ouvrage.model.meters import METER_SCOPES, EnergyRead, MeterReading
from ouvrage.pricing.rates.quantity import duration_us


@click.command(name="plug")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--meter", metavar="NAME", required=True, help="What you call this meter.")
@click.option("--about", metavar="WHAT", help="What it hangs before: node:n1, site:garage, …")
@click.option("--scope", type=click.Choice(METER_SCOPES), default="wall", help="Where (wall).")
@click.option("--zone", metavar="ZONE", help="The zone of its clock (the site's).")
@click.option("--outlet", metavar="N", type=click.IntRange(0, 63), default=0, help="Which (0).")
@click.option(
    "--every", metavar="TIME", default="5 min", help="How often power is sampled (5 min)."
)
@click.option("--at", metavar="TIME", help="The moment of a file that holds none.")
@click.option("--time-column", metavar="NAME", help="The column of the moment.")
@click.option("--counter-column", metavar="NAME", help="The column of the counter.")
@click.option("--unit", type=click.Choice(sorted(UNITS)), help="The unit of the counter.")
@json_option
@plain_option
def plug(
    files: tuple[Path, ...],
    meter: str,
    about: str | None,
    scope: str,
    zone: str | None,
    outlet: int,
    every: str,
    at: str | None,
    time_column: str | None,
    counter_column: str | None,
    unit: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Energy that a smart plug or a meter counted.

    FILE holds answers of a Shelly or Tasmota plug in JSON (one, a list, or one a line), Shelly's table
    of an energy meter, or a table with a moment and kWh. A counter that fell leaves a gap, and is told.
    """
    check_name("meter", meter, "--meter garage-plug")
    with opened() as ledger:
        hung = Meter(name=meter, about=about_of(ledger, about), scope=scope)
        where = site_zone(ledger, zone)
        read: list[tuple[Told, Series]] = []
        for path in files:
            told = Told(form="plug", file=str(path))
            said = moment(at) if at else moment_in_name(path.name)
            asked = Asked(
                zone=where,
                outlet=outlet,
                saved_us=said,
                time_column=time_column,
                counter_column=counter_column,
                unit=unit,
            )
            text = decoded(read_bytes(path), None, str(path))
            read.append((told, read_plug(text, told, asked)))
        done = _counted(ledger, hung, read, _limit(every))
    return tell(done, as_json, plain)


def _limit(every: str) -> int:
    try:
        return 2 * duration_us(every)
    except ValueError as error:
        raise OuvrageError(
            "import/every", f"{every!r} is {error}", hint="--every '5 min'"
        ) from error


def _counted(
    ledger: Ledger, meter: Meter, read: list[tuple[Told, Series]], limit_us: int
) -> Imported:
    """Record what is kept of the readings, and what was used between all of them."""
    every = [told for told, _ in read]
    known = readings_known(meter, holding(ledger, MeterReading.KIND))
    points = kept([each for _, series in read for each in series.readings])
    new = agreeing(points, {each.at_us: each.counter_j for each in known})
    booked = book(ledger, readings_stated(meter, new, Grade.MEASURED))
    series = _merged(known, new)
    used = used_between(meter, series, Grade.MEASURED)
    held = holding(ledger, EnergyRead.KIND)
    for told, found in read:
        hours = by_hour(meter, found.pieces, held, "stated", told)
        hours += by_hour(meter, pieces_of(found.power, limit_us), held, "integral", told)
        used += hours
        held += hours
    done = Imported(told=every, booked=joined(booked, book(ledger, used, typed=True)))
    done.missing = missing_days(each for each in used if each.value.covered_us)
    done.first = _first(meter, used)
    done.more = "What it cost: ouvrage books pnl"
    return done


def _merged(known: list[Reading], new: list[Reading]) -> list[Reading]:
    """What is recorded and what is new as one series; a bad step from the one to the other is told."""
    moments = {each.at_us for each in known}
    series = sorted([*known, *(e for e in new if e.at_us not in moments)], key=lambda e: e.at_us)
    for before, after in itertools.pairwise(series):
        why = fault_between(before, after)
        if why is not None and (before.told is None) != (after.told is None):
            mark = after if after.told is not None else replace(after, told=before.told)
            flag(before, mark, why)
    return series


def _first(meter: Meter, used: list[Stated]) -> str:
    joules = sum(each.value.energy_j for each in used)
    gaps = sum((e.valid_to or 0) - e.valid_from - e.value.covered_us for e in used)
    words = f"; {gaps / HOUR:.1f} h are gaps" if gaps else ""
    return (
        f"{meter.name}: {joules / 3_600_000:.3f} kWh ● before {meter.about}, {covered(used)}{words}"
    )
