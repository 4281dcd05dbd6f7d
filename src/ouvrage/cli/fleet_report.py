"""``ouvrage fleet report``: who had the GPUs of a cluster, what stood idle and why, and what each account would owe.

Decides in which forms it is told: words, JSON, a page; for one account with the draft of its invoice in full. Nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import now_us
from ouvrage.base.numbers import NANO, decimal_text
from ouvrage.base.time import HOUR, SECOND, utc_text
from ouvrage.books.dues.invoice_json import invoice_json
from ouvrage.books.fleet.record import FLEET_KINDS
from ouvrage.books.fleet.report import FleetReport, fleet_report
from ouvrage.books.goodput import BOUND, Goodput
from ouvrage.books.known import Known, by_kind, known_of
from ouvrage.cli.fleet_asked import the_fleet, the_period
from ouvrage.cli.fleet_words import report_lines
from ouvrage.cli.import_told import in_words, site_zone
from ouvrage.cli.ledger import Ledger, opened, past
from ouvrage.cli.options import as_of_option, html_option, json_option, plain_option
from ouvrage.cli.output import say_json, say_text, write_file
from ouvrage.evidence.figures import Sheet
from ouvrage.ledger.facts import Recorded
from ouvrage.model.sites import Term


@click.command()
@click.option(
    "--period",
    "period_name",
    metavar="PERIOD",
    help="2026-11, 2026, a day, DAY..DAY (all that was read).",
)
@click.option(
    "--account",
    metavar="NAME",
    help="One account and those below it, with the draft of its invoice.",
)
@click.option("--cluster", metavar="NAME", help="The cluster, where several are known.")
@as_of_option
@html_option
@json_option
@plain_option
def report(
    period_name: str | None,
    account: str | None,
    cluster: str | None,
    as_of: int | None,
    html_file: Path | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Who had the GPUs, what stood idle and why, how long work waited, what failed, and what is owed.

    Of a cluster that `ouvrage fleet adopt` read. The hours of all GPUs add up to the calendar; what nobody says is
    unknown and no figure's.
    """  # fmt: skip
    with opened() as ledger:
        found = reported(ledger, period_name, account, cluster, past(as_of, ledger))
    lines = report_lines(found, _invoice_lines(found))
    said = "\n".join(in_words(line) if plain else line for line in lines)
    if html_file is not None:
        from ouvrage.console.fleet_page import fleet_page
        from ouvrage.console.page import html

        write_file(html_file, html(fleet_page(found, "\n".join(lines))))
    if as_json:
        say_json(report_json(found))
    else:
        say_text(said)


def reported(
    ledger: Ledger,
    period_name: str | None,
    account: str | None,
    cluster: str | None,
    as_of: int | None,
) -> FleetReport:
    """The report about a cluster as known at a moment (None: now)."""
    fleet = the_fleet(ledger.store.lines(FLEET_KINDS, as_of=as_of), cluster)
    period = the_period(fleet, period_name, site_zone(ledger, None))
    return fleet_report(fleet, period, account, _terms(ledger, as_of))


def fleet_figures(ledger: Ledger, text: str, as_of: int | None) -> tuple[Sheet, Sequence[Recorded]]:
    """The figures of ``fleet/CLUSTER/PERIOD`` (without PERIOD: of all that was read), and the facts behind them."""
    from ouvrage.books.fleet.sheet import fleet_sheet

    _, cluster, period = (*text.split("/", 2), "", "")[:3]
    found = reported(ledger, period or None, None, cluster or None, as_of)
    at = now_us() if as_of is None else as_of
    sheet = fleet_sheet(found, f"fleet/{found.fleet.cluster}{f'/{period}' if period else ''}", at)
    return sheet, [e for kind in FLEET_KINDS for e in ledger.store.records(kind=kind, as_of=as_of)]


def _terms(ledger: Ledger, as_of: int | None) -> Sequence[Known[Term]]:
    lines = ledger.store.lines((Term.KIND,), as_of=as_of)
    return [
        each
        for (kind, version), told in by_kind(lines).items()
        for each in known_of(kind, version, told)
    ]


def _invoice_lines(found: FleetReport) -> list[str]:
    """The draft of the one account that is asked about, as ``ouvrage invoice draft`` prints it."""
    if found.account is None or not found.billed.drafts:
        return []
    from ouvrage.cli.invoice import invoice_lines
    from ouvrage.console.invoice_view import shown
    from ouvrage.console.invoice_words import language

    lines: list[str] = []
    for each in found.billed.drafts.values():
        page = asdict(shown(each, language("en")))
        page["notes"] = (*page["notes"][:-1], _TIMES)
        lines += ["", *invoice_lines(page)]
    return lines


_TIMES = "Times are those of the cluster's accounting; every line is exact, only the total is rounded, and the difference is a line."


def _hours(us: int) -> str:
    return decimal_text(Fraction(us, HOUR))


def _seconds(us: int | None) -> str | None:
    return None if us is None else decimal_text(Fraction(us, SECOND))


def _goodput(found: Goodput) -> dict[str, Any]:
    return {
        "gpu_hours": decimal_text(found.total),
        "by_end": {name: decimal_text(hours) for name, hours in found.hours.items()},
        "jobs": dict(found.jobs),
        "completed_share": None if found.share is None else decimal_text(found.share),
        "gpu_hours_unknown": found.unknown,
    }


def report_json(found: FleetReport) -> dict[str, Any]:
    """What ``--json`` prints: every figure of the words and what they leave out."""
    period, time = found.period, found.time
    return {
        "cluster": found.fleet.cluster,
        "period": {"name": period.name, "from": utc_text(period.from_us), "to": utc_text(period.to_us)},
        "account": found.account,
        "gpus": sum(time.gpus.values()),
        "time": {
            "owned_us": time.owned_us,
            "by_state_us": time.by_state(),
            "by_cause": [
                {"state": state, "cause": cause, "us": us, "gpu_hours": _hours(us)} for (state, cause), us in time.by_cause().items()
            ],
            "by_node": [
                {"node": e.node, "state": e.state, "cause": e.cause, "account": e.account, "us": e.us} for e in time.spent
            ],
            "beside_gpu_hours": {why: decimal_text(hours) for why, hours in found.beside},
            "grade": "metered",
        },
        "goodput": {**_goodput(found.goodput), "bound": "upper", "why": BOUND},
        "accounts": [{"tenant": e.tenant, "account": e.account, **_goodput(e.goodput)} for e in found.accounts],
        "users": [{"tenant": e.tenant, "account": e.account, "user": e.user, **_goodput(e.goodput)} for e in found.users],
        "waits": [
            {"partition": e.partition, "jobs": e.jobs, "median_s": _seconds(e.median_us), "p95_s": _seconds(e.p95_us), "most_s": _seconds(e.most_us)}
            for e in found.waits
        ],
        **_json_of_work(found),
        **_json_of_money(found),
        "missing": list(found.fleet.missing),
    }  # fmt: skip


def _json_of_work(found: FleetReport) -> dict[str, Any]:
    names = ("no_process", "no_cpu", "busy", "unknown")
    return {
        "lost": [
            {"state": e.state, "gpu_hours": decimal_text(e.hours), "jobs": [a.name for a in e.attempts],
             "cost": _amount(sum(found.billed.nano.get(a.name, 0) for a in e.attempts)),
             "unpriced": sum(a.name not in found.billed.nano for a in e.attempts)}
            for e in found.lost
        ],
        "allotted": [
            {"node": e.node, "partitions": list(_partitions(found, e.node)), **{n: decimal_text(getattr(e, n)) for n in names}}
            for e in found.hollow
        ],
        "efficiency": [
            {"account": e.account, "user": e.user, "partition": e.partition, "jobs": e.jobs, "unknown": e.unknown,
             "core_hours": decimal_text(e.core_hours), "advice": list(e.advice),
             **{n: None if (v := getattr(e, n)) is None else decimal_text(v) for n in ("cores", "memory", "time_limit", "gpu_load")}}
            for e in found.efficiency
        ],
    }  # fmt: skip


def _partitions(found: FleetReport, node: str) -> tuple[str, ...]:
    listings = found.fleet.nodes.get(node, ())
    return listings[-1].value.partitions if listings else ()


def _amount(nano: int | Fraction) -> str:
    return decimal_text(Fraction(nano) / NANO)


def _json_of_money(found: FleetReport) -> dict[str, Any]:
    weighed = found.weighed
    return {
        "currency": found.billed.currency,
        "own": [each.name for each in found.billed.own],
        "drafts": {name: invoice_json(each) for name, each in found.billed.drafts.items()},
        "unpriced": [each.name for each in found.billed.unpriced],
        "billing_weights": None if weighed is None else {
            "worth_of_unit_hour": _amount(weighed.worth_of_unit), "jobs_without_units": weighed.without,
            "tenants": [
                {"tenant": s.tenant, "unit_hours": decimal_text(s.unit_hours), "worth": _amount(s.worth), "charged": _amount(s.charged),
                 "difference": {name: _amount(nano) for name, nano in s.parts.items()}}
                for s in weighed.splits
            ],
        },
    }  # fmt: skip
