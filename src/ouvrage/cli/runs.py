"""``ouvrage runs``: what was metered here, newest first, and what is being metered now.

Decides the columns of the list. Figures are those of the kept reports; nothing is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.base.grades import grade_of
from ouvrage.base.ids import code_of
from ouvrage.base.time import utc_text
from ouvrage.cli.ledger import Ledger, opened
from ouvrage.cli.naming import FIRST_RUN
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.metering.run_view import RunView
from ouvrage.metering.units import units_of
from ouvrage.pricing.words import counted, duration, mark, rounded
from ouvrage.store.intake import Running
from ouvrage.store.projections import current_runs

_HEAD = ("run", "label", "started (UTC)", "outcome", "finished", "seconds each", "cost each")
_SIDES = "<<<<>>>"
_SHOWN = 20


@click.command()
@click.option("--all", "everything", is_flag=True, help=f"Not only the latest {_SHOWN}.")
@json_option
@plain_option
def runs(everything: bool, as_json: bool, plain: bool) -> None:
    """List the runs, newest first: how far each is, and what a unit of it took and cost."""
    with opened() as ledger:
        reports = [json.loads(row.report_json) for row in current_runs(ledger.store).rows]
        running = _running(ledger)
    if as_json:
        say_json({"runs": [*running, *reports[::-1]]})
        return
    rows = [*(_live_row(live) for live in running), *(_row(r, plain) for r in reports[::-1])]
    if not rows:
        say_text(f"No runs yet.\n  {FIRST_RUN}\n  then: ouvrage report last")
        return
    kept = rows if everything else rows[:_SHOWN]
    say_text(table(_HEAD, kept, _SIDES))
    say_text("")
    if len(kept) < len(rows):
        say_text(f"{len(rows) - len(kept)} older ones: ouvrage runs --all")
    say_text(_next(reports))


def _next(reports: list[dict[str, Any]]) -> str:
    """The next useful step: two runs can be compared, one can be read."""
    if len(reports) > 1:
        codes = " ".join(report["code"] for report in reports[-2:])
        return f"One of them: ouvrage report RUN      Two of them: ouvrage compare {codes}"
    if reports:
        return f"More about it: ouvrage report {reports[0]['code']}"
    return "Each is reported when it ends: ouvrage report last"


def _row(report: Mapping[str, Any], plain: bool) -> tuple[str, ...]:
    price, each = report["price"], report["seconds_per_unit"]["median"]
    cost = report["cost_per_unit"]["marginal"] or report["cost_per_unit"]["all_in"]
    many = "–" if report["unit"] == "command" else counted(report["units"], report["unit"])
    return (
        report["code"],
        shortened(report["label"] or "", 24),
        report["started"][:16].replace("T", " "),
        report["outcome"],
        many,
        "–" if each is None else f"{rounded(Fraction(str(each)))} s{mark(_MEASURED, plain)}",
        "–"
        if cost is None or price is None
        else f"{rounded(Fraction(cost))} {price['currency']}{_mark(report, plain)}",
    )


_MEASURED = grade_of("measured")


def _mark(report: Mapping[str, Any], plain: bool) -> str:
    return mark(grade_of(report["price"]["grade"]), plain)


def _running(ledger: Ledger) -> list[dict[str, Any]]:
    """The runs whose meter lives, latest first, as far as they have written."""
    live = sorted(ledger.intake.running, key=lambda each: each.started_us, reverse=True)
    return [_live(each) for each in live]


def _live(live: Running) -> dict[str, Any]:
    finished, name = _finished(live)
    return {
        "run": live.run,
        "code": code_of(live.run),
        "label": live.label,
        "outcome": "running",
        "started": utc_text(live.started_us),
        "wall_s": max(0, now_us() - live.started_us) / 1_000_000,
        "unit": name,
        "units": finished,
    }


def _finished(live: Running) -> tuple[int | None, str | None]:
    """How many units a running command has finished, as far as its spool tells."""
    if live.spool is None or not live.spool.marks:
        return None, None
    units = units_of(
        RunView(
            run=live.run,
            source=live.spool.source,
            started=live.spool.started,
            windows=(),
            marks=live.spool.marks,
            spans=live.spool.spans,
            ended=None,
            samples=None,
            keys={},
        )
    )
    return units.finished, units.name


def _live_row(live: Mapping[str, Any]) -> tuple[str, ...]:
    many = "–" if live["units"] is None else counted(live["units"], live["unit"])
    lasting = duration(round(live["wall_s"] * 1_000_000))
    return (
        live["code"],
        shortened(live["label"] or "", 24),
        live["started"][:16].replace("T", " "),
        f"running, {lasting}",
        many,
        "–",
        "–",
    )
