"""``ouvrage rental watch``: tell somebody when a machine is paid for and does not work.

Decides how an alarm is told: to every channel, again at the next look until all of them took it,
and then recorded, so that it is told at least once and not for ever. Each look is complete in
itself, so a watcher that is killed or runs twice does no harm; ``--once`` suits cron.
"""

from __future__ import annotations

import json
import re
import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.adapters.messenger import call, post
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.numbers import decimal_text
from ouvrage.base.price import PER_US
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.options import json_option
from ouvrage.cli.output import say_json, say_text
from ouvrage.cli.renting import (
    channels_file,
    check_channels,
    open_rental,
    rentals,
    runs_on,
)
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.rental_view import RentalView, end_of
from ouvrage.metering.run_view import RunView
from ouvrage.metering.statistics import median
from ouvrage.metering.units import units_of
from ouvrage.model.rentals import RentalAlarm
from ouvrage.pricing.alarms import Alarm, LiveRun, alarms_due
from ouvrage.store.intake import Running

_SPAN = re.compile(r"(?P<many>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>s|min|h)", re.ASCII)
_SOONEST_US = 10_000
"""Looks come no closer together, whatever was asked for."""
_LONGEST_US = 366 * PER_US["day"]
Channels = dict[str, str | None]


def _span(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """A length of time such as ``15min``, in microseconds."""
    match = _SPAN.fullmatch(value.strip())
    if not match:
        raise click.BadParameter(f"{value!r} is no length of time such as 30s, 15min or 1h")
    span = int(Fraction(Decimal(match["many"])) * PER_US[match["unit"]])
    if span > _LONGEST_US:
        raise click.BadParameter(f"{value!r} is longer than a year")
    return span


@click.command("watch")
@click.argument("name", metavar="[RENTAL]", required=False)
@click.option(
    "--idle",
    callback=_span,
    default="15min",
    show_default=True,
    metavar="TIME",
    help="Tell when nothing has run for so long.",
)
@click.option(
    "--hang",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    metavar="N",
    help="Tell when no unit came for N times the median of the run's units.",
)
@click.option(
    "--every",
    callback=_span,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How often to look.",
)
@click.option("--once", is_flag=True, help="Look once and end; exit code 1 where telling failed.")
@click.option("--webhook", metavar="URL", help="Where to post an alarm, besides what was stated.")
@click.option("--on-alarm-command", "command", metavar="CMD", help="What to run at an alarm.")
@json_option
def watch(
    name: str | None,
    idle: int,
    hang: int,
    every: int,
    once: bool,
    webhook: str | None,
    command: str | None,
    as_json: bool,
) -> int:
    """Raise an alarm when RENTAL is paid for and its work has ended, hangs, or never began.

    Each alarm has an id and is told at least once: again until every channel took it. Looks until
    the rental is given back.
    """  # fmt: skip
    check_channels(webhook, None)
    resting, first = threading.Event(), True
    while True:
        with opened() as ledger:
            view = open_rental(name, rentals(ledger))
            name = view.rental
            given: Channels = {"webhook": webhook, "command": command}
            alarms = [a for a in _due(ledger, view, idle, hang) if a.id not in view.alarms]
            told = [(a, _tell(ledger, view, a, given)) for a in alarms]
        if told or first:
            _say(view, told, as_json)
        first = False
        if once or view.ended_us is not None:
            return 1 if any(troubles for _, troubles in told) else 0
        resting.wait(max(every, _SOONEST_US) / 1_000_000)


def _due(ledger: Ledger, view: RentalView, idle: int, hang: int) -> list[Alarm]:
    now = now_us()
    live = [_live(run) for run in ledger.intake.running if _stands_on(view, run)]
    ends = [end_of(run) for run in runs_on(ledger, view, now)]
    return alarms_due(view, ends, live, now, idle_us=idle, hang_factor=Fraction(hang))


def _stands_on(view: RentalView, run: Running) -> bool:
    return view.holds(run.run, run.spool.source if run.spool else "")


def _live(run: Running) -> LiveRun:
    """What is known of a run that has not ended, as far as its spool tells."""
    spool = run.spool
    if spool is None or not spool.marks:
        return LiveRun(
            run=run.run, code=code_of(run.run), unit="unit", last_unit_us=None, median_us=None
        )
    units = units_of(
        RunView(
            run=run.run, source=spool.source, started=spool.started, windows=(), marks=spool.marks,
            spans=spool.spans, ended=None, samples=None, keys={},
        )
    )  # fmt: skip
    last = max((lap.to_us for lap in units.laps), default=None)
    return LiveRun(
        run=run.run,
        code=code_of(run.run),
        unit=units.name,
        last_unit_us=None if last is None else spool.started.started_us + last,
        median_us=median([lap.per_unit_us for lap in units.laps]) if units.laps else None,
    )


def _tell(ledger: Ledger, view: RentalView, alarm: Alarm, given: Channels) -> list[str]:
    """Tell an alarm to every channel and, when all took it, record that; the troubles met."""
    message = _message(view, alarm)
    troubles: list[str] = []
    for channels in (given, _kept(ledger, view)):
        webhook, command = channels.get("webhook"), channels.get("command")
        if webhook:
            found = post(webhook, message)
            troubles += [f"the webhook: {found}"] if found else []
        if command:
            found = call(command, message)
            troubles += [f"the command: {found}"] if found else []
    if not troubles:
        _remember(ledger, alarm)
    return troubles


def _kept(ledger: Ledger, view: RentalView) -> Channels:
    file = channels_file(ledger.home, view.rental)
    if not file.exists():
        return {}
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise OuvrageError(
            "rental/channels", f"{file} cannot be read: {error}",
            hint="remove it, and name the channels to `ouvrage rental watch`",
        ) from error  # fmt: skip


def _remember(ledger: Ledger, alarm: Alarm) -> None:
    stated = RentalAlarm(
        rental=alarm.rental,
        alarm=alarm.id,
        sort=alarm.sort,
        since_us=alarm.since_us,
        words=alarm.words,
    )
    own = source_id(ledger.home)
    fact = fact_of(
        stated,
        source=own,
        id=f"{alarm.rental}/alarm/{alarm.id}",
        subject=alarm.rental,
        valid_from=alarm.since_us,
        valid_to=None,
        grade=Grade.MEASURED,
    )
    ledger.store.append([fact], now_us=now_us(), own_source=own)


def _message(view: RentalView, alarm: Alarm) -> dict[str, Any]:
    price, now = view.started.price, now_us()
    return {
        "alarm": alarm.id,
        "sort": alarm.sort,
        "rental": view.rental,
        "code": view.code,
        "label": view.started.label,
        "run": alarm.run,
        "since": utc_text(alarm.since_us),
        "now": utc_text(now),
        "price": price.text(),
        "paid_since": decimal_text(price.cost_of(max(0, now - alarm.since_us))),
        "words": f"{view.name}: {alarm.words}",
    }


def _say(view: RentalView, told: list[tuple[Alarm, list[str]]], as_json: bool) -> None:
    if as_json:
        alarms = [{**_message(view, alarm), "troubles": found} for alarm, found in told]
        say_json({"rental": view.rental, "alarms": alarms})
        return
    for alarm, troubles in told:
        say_text(safe(f"alarm: {view.name}: {alarm.words}  [{alarm.id}]"))
        for trouble in troubles:
            say_text(safe(f"  not told to {trouble}; tried again at the next look"), err=True)
    if not told:
        say_text(f"{safe(view.name)}: nothing new to tell.")
