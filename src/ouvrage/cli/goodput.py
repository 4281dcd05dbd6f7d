"""``ouvrage books goodput``: how much of what was paid for became finished work, and what that cost.

Decides only which of four questions is asked (jobs of a cluster, a campaign, a published summary, a trace of pods) and how
the answer is told; figures are made in ``books``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.feeds.table import decoded
from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.feeds.traces import read_nodes, read_pods, read_summary
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.numbers import decimal_text, fixed, significant
from ouvrage.base.price import Price, parse_price
from ouvrage.base.text import safe
from ouvrage.base.time import HOUR
from ouvrage.books.cluster_jobs import Attempt, attempts_of
from ouvrage.books.goodput import BOUND, STATED, WORDS, Goodput, cluster_goodput
from ouvrage.books.known import Known
from ouvrage.books.period import Period, period_named
from ouvrage.books.pods import PodUse, pod_use
from ouvrage.cli.goodput_campaign import (
    UnitCost,
    also_of,
    chosen_of,
    unit_cost_json,
    unit_cost_lines,
    unit_cost_of,
)
from ouvrage.cli.import_told import counted, in_words, read_bytes, site_zone
from ouvrage.cli.ledger import Ledger, opened, past
from ouvrage.cli.options import as_of_option, json_option, period_options, plain_option
from ouvrage.cli.output import say_json, say_text, table
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.model.cluster import ClusterJobRow
from ouvrage.model.records import Withdrawal

_SORTS = click.Choice(("account", "user", "partition"))
_NEEDS_CLUSTER = "sacct … > jobs.txt; ouvrage import sacct jobs.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How an answer is told: as JSON, or as lines whose grades are ``plain`` words."""

    json: bool
    plain: bool

    def say(self, lines: Iterable[str]) -> None:
        """Print lines for a person."""
        say_text("\n".join(in_words(line) if self.plain else line for line in lines))


@click.command("goodput")
@click.option("--campaign", metavar="NAME", help="Of a campaign: its accepted unit, by part.")
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of a published summary of clusters.",
)
@click.option(
    "--pods",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of a trace of pods that hold fractions of GPUs.",
)
@click.option(
    "--nodes", type=click.Path(path_type=Path), metavar="FILE", help="The nodes of those pods."
)
@click.option("--by", type=_SORTS, help="Jobs of a cluster, a row for each.")
@click.option("--price", metavar="PRICE", help="What an hour of a GPU costs: 2.10/h.")
@click.option(
    "--gpus",
    type=click.IntRange(min=1),
    help="How many GPUs the cluster has, to see what was idle.",
)
@click.option(
    "--also",
    metavar="PART=AMOUNT",
    multiple=True,
    help=f"Another part of a campaign's cost: {', '.join(STATED)}; a tax also as a share, tax=20%.",
)
@click.option(
    "--charges",
    metavar="COLUMN=VALUE",
    multiple=True,
    help="Charges of a cloud's bill that are the campaign's, beside those tagged campaign=NAME.",
)
@click.option("--on", "node", metavar="NODE", help="The machine of your books that its runs had.")
@period_options
@as_of_option
@json_option
@plain_option
def goodput(
    campaign: str | None,
    summary: Path | None,
    pods: Path | None,
    nodes: Path | None,
    by: str | None,
    price: str | None,
    gpus: int | None,
    also: tuple[str, ...],
    charges: tuple[str, ...],
    node: str | None,
    period: str | None,
    as_of: int | None,
    as_json: bool,
    plain: bool,
) -> int:
    """How much of what was paid for became finished work, and what an hour or a unit of it cost.

    Of the jobs of a cluster (`ouvrage import sacct`), unless something else is named. A completed job is
    good here, and nothing else: the multiple is an upper bound.
    """
    if [campaign, summary, pods].count(None) < 2:
        raise OuvrageError(
            "goodput/which", "one thing is asked about", hint="--campaign, --summary or --pods"
        )
    how = How(json=as_json, plain=plain)
    stated = parse_price(price) if price else None
    if summary is not None:
        return _summary(summary, stated, how)
    if pods is not None:
        return _pods(pods, nodes, stated, how)
    with opened() as ledger:
        if campaign is not None:
            chosen = chosen_of(charges, node)
            return _campaign(unit_cost_of(ledger, campaign, also_of(also), chosen, as_of), how)
        within = period_named(period, site_zone(ledger, None)) if period else None
        attempts = _attempts(ledger, past(as_of, ledger))
    return _cluster(attempts, within, gpus, stated, by, how)


def _attempts(ledger: Ledger, as_of: int | None) -> Sequence[Attempt]:
    kinds = (ClusterJobRow.KIND, Withdrawal.KIND)
    records = [r for kind in kinds for r in ledger.store.records(kind=kind, as_of=as_of)]
    rows = [
        Known(
            value=value, valid_from=r.fact.valid_from, valid_to=r.fact.valid_to, grade=r.fact.grade,
            key=r.fact.key,
        )
        for r in in_force(records)
        if isinstance(value := read(r.fact), ClusterJobRow)
    ]  # fmt: skip
    if not rows:
        raise OuvrageError("goodput/none", "no job of a cluster is known", hint=_NEEDS_CLUSTER)
    return attempts_of(rows)


def _cluster(
    attempts: Sequence[Attempt],
    period: Period | None,
    gpus: int | None,
    price: Price | None,
    by: str | None,
    how: How,
) -> int:
    if gpus is not None and period is None:
        raise OuvrageError(
            "goodput/period", "idle time is of a period", hint="--gpus 8 --month 2026-11"
        )
    whole = cluster_goodput(attempts, period, gpus)
    groups: dict[str, list[Attempt]] = {}
    for each in attempts if by else ():
        groups.setdefault(getattr(each, by or "") or "not said", []).append(each)
    rows = [(name, cluster_goodput(ours, period)) for name, ours in sorted(groups.items())]
    if how.json:
        found = {**_json(whole, price), "by": {name: _json(each, price) for name, each in rows}}
        say_json({"period": period.name if period else None, **found})
        return 0
    lines = [_answer(whole, price), *_parts(whole, price)]
    if whole.unknown:
        lines.append(
            f"  {counted(whole.unknown, 'job')} without a known GPU time, in no part of it"
        )
    if whole.waited_us is not None:
        lines.append(
            f"  half of them waited {fixed(Fraction(whole.waited_us, HOUR), 2)} h or less to begin"
        )
    if rows:
        lines += ["", _by_table(by or "", rows), ""]
    how.say([*lines, "Who used it: ouvrage books goodput --by account"])
    return 0


def _campaign(found: UnitCost, how: How) -> int:
    if how.json:
        say_json(unit_cost_json(found))
    else:
        how.say(unit_cost_lines(found, how.plain))
    return 0


def _by_table(by: str, rows: Sequence[tuple[str, Goodput]]) -> str:
    cells = [
        (safe(name), fixed(each.total, 2), _percent(each.share), _times(each.multiple))
        for name, each in sorted(rows, key=lambda row: -row[1].total)
    ]
    return table((by, "GPU-hours", "completed", "a good hour costs"), cells, "<>>>")


def _percent(share: Fraction | None) -> str:
    return "unknown" if share is None else f"{fixed(share * 100, 1)} %"


def _times(multiple: Fraction | None) -> str:
    return "no good hour" if multiple is None else f"{fixed(multiple, 1)}×"


def _answer(found: Goodput, price: Price | None, name: str = "") -> str:
    mark = Grade.METERED.mark
    if found.share is None:
        return f"{name}no GPU time is known"
    if found.multiple is None:
        return f"{name}no job completed in {fixed(found.total, 1)} GPU-hours {mark}"
    cost = ""
    if price is not None:
        each = price.cost_of(HOUR) * found.multiple
        cost = f" ({significant(each, 4)} {price.currency} at {price.text()} {Grade.ASSUMED.mark})"
    return (
        f"{name}one completed GPU-hour costs {fixed(found.multiple, 1)}× the price of an hour {mark}"
        f"{cost}: {_percent(found.share)} of {fixed(found.total, 1)} GPU-hours completed"
    )


def _parts(found: Goodput, price: Price | None) -> list[str]:
    lines = [f"  {BOUND}"]
    for sort in WORDS:
        hours = found.hours.get(sort)
        if hours is None:
            continue
        cost = f"{fixed(price.cost_of(hours * HOUR), 2):>14} {price.currency}" if price else ""
        share = _percent(hours / found.total) if found.total else ""
        count = f"   {counted(found.jobs[sort], 'job')}" if sort in found.jobs else ""
        lines.append(
            f"  {sort:<10} {fixed(hours, 2):>14} h {share:>8}{cost}   {WORDS[sort]}{count}"
        )
    return lines


def _json(found: Goodput, price: Price | None) -> dict[str, Any]:
    return {
        "gpu_hours": {sort: decimal_text(hours) for sort, hours in found.hours.items()},
        "gpu_hours_total": decimal_text(found.total),
        "jobs": dict(found.jobs),
        "gpu_hours_unknown": found.unknown,
        "goodput": None if found.share is None else decimal_text(found.share),
        "multiple": None if found.multiple is None else decimal_text(found.multiple),
        "bound": "upper",
        "why": BOUND,
        "cost_per_completed_gpu_hour": (
            None
            if price is None or found.multiple is None
            else {
                "amount": decimal_text(price.cost_of(HOUR) * found.multiple),
                "currency": price.currency,
            }
        ),
    }


def _read(path: Path) -> tuple[str, Told]:
    return decoded(read_bytes(path), None, str(path)), Told(form="trace", file=str(path))


def _faults(told: Told) -> list[str]:
    return [f"  {fault.line}" for fault in told.faults[:20]]


def _summary(path: Path, price: Price | None, how: How) -> int:
    text, told = _read(path)
    found = read_summary(text, told)
    if how.json:
        say_json({
            "clusters": {name: _json(each, price) if each else None for name, each in found},
            "faults": [fault.as_json() for fault in told.faults],
        })  # fmt: skip
        return 1 if told.faults else 0
    lines: list[str] = []
    for name, each in found:
        called = f"{name}: "
        lines.append(_answer(each, price, called) if each else f"{called}its GPU time is not said")
    lines += [
        f"  {BOUND};",
        "  time in a summary may hold waiting in the queue (Kalos' does by its own example)",
    ]
    lines += _faults(told)
    how.say(safe(line) for line in [*lines, "Of your own cluster: ouvrage import sacct FILE"])
    return 1 if told.faults else 0


def _pods(path: Path, nodes: Path | None, price: Price | None, how: How) -> int:
    text, told = _read(path)
    pods = read_pods(text, told)
    every = [told]
    there = []
    if nodes is not None:
        node_text, node_told = _read(nodes)
        there = read_nodes(node_text, node_told)
        every.append(node_told)
    use = pod_use(pods, there)
    faults = [fault for each in every for fault in each.faults]
    if how.json:
        say_json({**_pods_json(use, price), "faults": [fault.as_json() for fault in faults]})
    else:
        lines = [*_pods_lines(use, price), *(line for each in every for line in _faults(each))]
        how.say(safe(line) for line in lines)
    return 1 if faults or use.over else 0


def _pods_json(use: PodUse, price: Price | None) -> dict[str, Any]:
    return {
        "gpu_hours": decimal_text(use.held),
        "by_phase": {phase: decimal_text(hours) for phase, hours in sorted(use.by_phase.items())},
        "scheduled": use.scheduled,
        "never_scheduled": use.never,
        "fractional": use.fractions,
        "there": None if use.there is None else decimal_text(use.there),
        "idle": None if use.idle is None else decimal_text(use.idle),
        "most_at_once": decimal_text(use.peak),
        "over": list(use.over),
        "cost": None if price is None else decimal_text(price.cost_of(use.held * HOUR)),
        "currency": price.currency if price else None,
    }


def _pods_lines(use: PodUse, price: Price | None) -> list[str]:
    cost = (
        f", {fixed(price.cost_of(use.held * HOUR), 2)} {price.currency} at {price.text()}"
        if price
        else ""
    )
    lines = [
        f"{fixed(use.held, 3)} GPU-hours {Grade.METERED.mark} held by {use.scheduled} pods{cost}; "
        f"{use.never} were never placed and cost nothing",
        f"  {use.fractions} pods hold a fraction of a GPU; at most {decimal_text(use.peak)} GPUs at once",
    ]
    lines += [
        f"  {phase:<10} {fixed(hours, 3):>14} GPU-hours"
        for phase, hours in sorted(use.by_phase.items())
    ]
    if use.there is not None and use.idle is not None:
        lines.append(
            f"  {fixed(use.there, 3)} were there: {fixed(use.idle, 3)} idle, {_percent(use.held / use.there if use.there else None)} held"
        )
    else:
        lines.append("  what was idle is unknown without the nodes: --nodes FILE")
    lines += [f"  more than there is: {words}" for words in use.over]
    return [*lines, "What of it was good: pods of a trace do not say; the phase is how they ended"]
