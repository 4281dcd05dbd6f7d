"""The report of a job over several machines, as JSON and as text.

Decides the words: what a unit of the job cost with all its machines, what is missing, which machine holds
the others up. All numbers come from the job's sheet, so that each can be explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.base.numbers import decimal_text, fixed
from ouvrage.base.text import safe
from ouvrage.base.time import utc_text
from ouvrage.evidence.figures import Sheet
from ouvrage.metering.around import communications_of, job_of, link_tests_of, xids_of
from ouvrage.metering.jobs import WHOLE, Apart, Host, Job, marks_apart
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView
from ouvrage.metering.straggler import Straggling, straggling
from ouvrage.metering.xid import meaning
from ouvrage.model.offers import ExchangeRate
from ouvrage.pricing.communication import (
    NO_EVIDENCE,
    communication_json,
    communication_words,
    run_topology,
    spoken,
)
from ouvrage.pricing.job_cost import HostCost, Money, missing_words, money_of
from ouvrage.pricing.job_sheet import CLOCKS, hourly, job_sheet
from ouvrage.pricing.summary import money, row
from ouvrage.pricing.words import counted, duration, mark, percent, rounded, shortened

MOST_HOSTS = 16
MOST_XIDS = 4
_FIGURES = (
    *("wall_s", "wall_s_at_least", "coverage", "gpu_time_s", "gpu_busy", "energy_j"),
    *("seconds_per_unit.median",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """A job, its money, its pace and its figures, as known at one moment."""

    job: Job
    money: Money
    pace: Straggling
    sheet: Sheet


def job_report(
    job: Job, rates: Callable[[str, set[str]], Mapping[str, ExchangeRate]], as_of: int
) -> JobReport:
    """Everything that a report of a job says. ``rates`` gives recorded rates of exchange."""
    paid, pace = money_of(job, rates), straggling(job)
    return JobReport(job=job, money=paid, pace=pace, sheet=job_sheet(job, paid, pace, as_of))


def job_json(report: JobReport) -> dict[str, Any]:
    """A job as ``report --job ID --json`` prints it; money is decimal text."""
    job, sheet = report.job, report.sheet
    said = [each for run in job.runs for each in communications_of(run)]
    tests = [each for run in job.runs for each in link_tests_of(run)]
    total = sheet["cost.total"]
    return {
        "job": job.job,
        "named_by": sorted({place.via for run in job.runs if (place := job_of(run))}),
        "unit": job.units.name,
        "units": _whole(sheet, "units"),
        "units_redone": job.units.redone,
        **{path.replace(".", "_"): _plain(sheet, path) for path in _FIGURES},
        "nodes_stated": job.nodes_stated,
        "nodes_missing": job.missing,
        "missing": list(job.missing_nodes),
        "currency": None if report.money.currency == "1" else report.money.currency,
        "cost": {
            "total": _money(sheet, "cost.total"),
            "known": _money(sheet, "cost.known"),
            "by_currency": {
                name: decimal_text(amount)
                for name, amount in sorted(report.money.by_currency.items())
            },
            "rates": [_rate_json(rate) for rate in report.money.rates],
        },
        "cost_per_unit": {
            name: _money(sheet, f"cost_per_unit.{name}") for name in ("marginal", "all_in")
        },
        "gpus": _whole(sheet, "gpus"),
        "energy": {
            name: _plain(sheet, f"energy.{name}")
            for name in ("coverage", "wall_j", "wall_coverage", "host_j", "host_coverage")
        },
        "hosts": [_host_json(report, each) for each in report.money.hosts],
        "straggler": _straggler_json(report),
        "clocks": {
            "by": CLOCKS if len(job.hosts) > 1 else "one machine's clock",
            "marks_apart": [_apart_json(job, each) for each in marks_apart(job)],
        },
        "communication": {
            **communication_json(spoken(said, tests), said, tests),
            **{
                name: _plain(sheet, f"communication.{name}")
                for name in ("modelled_s", "share_at_most")
            },
        },
        "xids": [_xid_json(job, *each) for each in _xids(job)],
        "grade": total.grade.word if total.grade is not None else None,
        "notes": notes_of(report),
        "unknown": {f.path: f.why for f in sheet.figures.values() if f.value is None},
        "as_of": utc_text(sheet.as_of),
    }


def _host_json(report: JobReport, each: HostCost) -> dict[str, Any]:
    host = each.host
    return {
        "host": host.host,
        "name": host.name,
        "nodes": list(host.nodes),
        "wall_s": _plain(report.sheet, f"hosts.{host.index}.wall_s"),
        "price": None if each.price is None else each.price.text(),
        "currency": each.currency,
        "cost": None if each.cost is None else decimal_text(each.cost),
        "why": each.why,
        "runs": [_run_json(run) for run in host.runs],
    }


def _run_json(run: RunView) -> dict[str, Any]:
    place, units = job_of(run), reckon(run).units
    return {
        "run": run.run,
        "code": run.code,
        "rank": place.rank if place else None,
        "node": place.node if place else None,
        "restart": place.restart if place else None,
        "outcome": run.outcome,
        "started": utc_text(run.started.started_us),
        "wall_s": run.wall_us / 1_000_000,
        "unit": units.name,
        "units": units.finished,
    }


def _straggler_json(report: JobReport) -> dict[str, Any]:
    pace, job = report.pace, report.job
    return {
        "host": None if pace.host is None else job.hosts[pace.host].name,
        "why": pace.why,
        "units": pace.units,
        "later_s": None if pace.later_us is None else float(fixed(pace.later_us / 1_000_000, 6)),
        "paces": [
            {
                "host": job.hosts[each.host].name,
                "median_s": float(fixed(each.median_us / 1_000_000, 6)),
                "slowest": each.slowest,
            }
            for each in pace.paces
        ],
        "differences": [
            {
                "host": job.hosts[each.host].name,
                "what": each.what,
                "share": float(fixed(each.share, 6)),
                "others": float(fixed(each.others, 6)),
            }
            for each in pace.differences
        ],
    }


def _apart_json(job: Job, each: Apart) -> dict[str, Any]:
    return {
        "host": job.hosts[each.host].name,
        "units": each.units,
        "median_s": float(fixed(each.median_us / 1_000_000, 6)),
        "spread_s": each.spread_us / 1_000_000,
    }


def _rate_json(rate: ExchangeRate) -> dict[str, str]:
    return {name: getattr(rate, name) for name in ("base", "quote", "rate", "day", "said_by")}


def _xids(job: Job) -> list[tuple[Host, RunView, int]]:
    """Each error once: several ranks of a machine hear the same one, each in a reading of its own."""
    found: list[tuple[Host, RunView, int]] = []
    for host in job.hosts:
        for stretch in host.stretches:
            runs = max(stretch.runs, key=lambda run: (len(xids_of(run)), run.run))
            found += [(host, runs, index) for index in range(len(xids_of(runs)))]
    return found


def _xid_json(job: Job, host: Host, run: RunView, index: int) -> dict[str, Any]:
    each = xids_of(run)[index]
    return {
        "host": host.name,
        "run": run.code,
        "gpu": each.gpu,
        "at_s": each.at_us / 1_000_000,
        "xid": each.xid,
        "meaning": meaning(each.xid) or None,
    }


def _plain(sheet: Sheet, path: str) -> float | None:
    value = sheet.number(path)
    return None if value is None else float(fixed(value, 6))


def _whole(sheet: Sheet, path: str) -> int | None:
    value = sheet.number(path)
    return None if value is None else int(value)


def _money(sheet: Sheet, path: str) -> str | None:
    value = sheet.number(path)
    return None if value is None else decimal_text(value)


def answer(report: JobReport, plain: bool) -> str:
    """One line: what a unit of the job cost with all its machines, or why that is not known."""
    job, sheet = report.job, report.sheet
    units = counted(job.units.finished, job.units.name)
    where = f"on {counted(len(job.hosts), 'host')}"
    each = money(sheet, "cost_per_unit.marginal", plain) or money(
        sheet, "cost_per_unit.all_in", plain
    )
    total = money(sheet, "cost.total", plain)
    if each and job.units.name != WHOLE:
        return (
            f"{each} per {safe(job.units.name)} with all machines: {units} {where}, {total} in all."
        )
    if total:
        return f"{total} in all, {units} {where}."
    known = money(sheet, "cost.known", plain)
    paid = f"at least {known}; " if known else ""
    return f"{units} {where}: {paid}{report.money.why}."


def notes_of(report: JobReport) -> list[str]:
    """What a reader should know before believing the figures."""
    job = report.job
    notes = [*job.units.notes]
    if job.missing:
        notes.append(missing_words(job))
    failed = [run.code for run in job.runs if run.outcome != "completed"]
    if failed:
        notes.append(f"not completed: {', '.join(failed[:8])}")
    notes += [_apart_words(job, each) for each in marks_apart(job)]
    return notes


def _apart_words(job: Job, each: Apart) -> str:
    first = job.hosts[0].name
    size, later = abs(each.median_us), "after" if each.median_us >= 0 else "before"
    return (
        f"the marks of {safe(job.hosts[each.host].name)} come {fixed(size / 1_000_000, 3)} s {later} those of"
        f" {safe(first)} at the median of {counted(each.units, 'unit')}: clocks and delay together"
    )


def job_text(report: JobReport, *, plain: bool) -> str:
    """The report as a person reads it."""
    job = report.job
    lines = [answer(report, plain), ""]
    lines += [row(name, words) for name, words in _rows(report, plain)]
    lines += _host_lines(report, plain)
    lines += [f"  note: {note}" for note in notes_of(report)]
    why = f"Why: ouvrage explain job/{job.job}:cost.total"
    more = f"Each run: ouvrage report {job.runs[0].code}"
    return "\n".join([*lines, "", f"{more}      {why}"])


def _rows(report: JobReport, plain: bool) -> Iterator[tuple[str, str]]:
    job, sheet = report.job, report.sheet
    ways = sorted({place.via for run in job.runs if (place := job_of(run))})
    yield "job", f"{job.job} ({', '.join(ways)}), {counted(len(job.runs), 'run')}"
    began = min(host.stretches[0].from_us for host in job.hosts)
    wall = sheet["wall_s"]
    words = f"{duration(round((sheet.number('wall_s') or 0) * 1_000_000))}{mark(wall.grade, plain)}"
    yield "from first to last", f"{words} from {utc_text(began)[:19]}Z, by {_clock(job)}"
    per_hour = hourly(report.money)
    if per_hour is not None:
        yield (
            "price of all",
            f"{rounded(per_hour)} {report.money.currency}/h{mark(Grade.ASSUMED, plain)}",
        )
    seconds = sheet.number("seconds_per_unit.median")
    if seconds is not None:
        grade = mark(sheet["seconds_per_unit.median"].grade, plain)
        yield f"seconds per {safe(job.units.name)}", f"{rounded(seconds)}{grade}"
    all_in = money(sheet, "cost_per_unit.all_in", plain)
    if all_in:
        yield f"all-in, {counted(job.units.finished, job.units.name)}", f"{all_in} each"
    yield from _gpu_rows(report, plain)
    if len(job.hosts) > 1:
        yield "straggler", _straggler_words(report, plain)
    yield "communication", _communication_words(job, plain)
    yield from _xid_rows(job, plain)
    covered = sheet.number("coverage")
    if covered is not None and covered < Fraction(99, 100):
        yield "coverage", f"{percent(covered)} of the job's machine time was sampled"


def _clock(job: Job) -> str:
    return CLOCKS if len(job.hosts) > 1 else "the machine's clock"


def _gpu_rows(report: JobReport, plain: bool) -> Iterator[tuple[str, str]]:
    sheet = report.sheet
    held, busy = sheet.number("gpu_time_s"), sheet.number("gpu_busy")
    if held is not None:
        grade = mark(sheet["gpu_time_s"].grade, plain)
        words = f"{counted(int(sheet.number('gpus') or 0), 'GPU')}, {rounded(held / 3600)} GPU hours{grade}"
        yield "GPU time", words + (f", busy {percent(busy)}{grade}" if busy is not None else "")
    joules, covered = sheet.number("energy_j"), sheet.number("energy.coverage")
    if joules is not None and covered is not None:
        grade = mark(sheet["energy_j"].grade, plain)
        yield (
            "energy of the GPUs",
            f"{rounded(joules / 1000)} kJ{grade} over {percent(covered)} of their time",
        )


def _straggler_words(report: JobReport, plain: bool) -> str:
    pace, job = report.pace, report.job
    words = pace.why
    if pace.host is not None and pace.later_us is not None:
        grade = mark(report.sheet["straggler.later_s"].grade, plain)
        name = safe(job.hosts[pace.host].name)
        words = f"{name}, {rounded(pace.later_us / 1_000_000)} s{grade} a unit; {pace.why}"
    told = [
        f"{safe(job.hosts[each.host].name)}: {percent(each.share)} {each.what}, others {percent(each.others)}"
        for each in pace.differences[:3]
    ]
    return "; ".join([words, *told])


def _communication_words(job: Job, plain: bool) -> str:
    said = [each for run in job.runs for each in communications_of(run)]
    tests = [each for run in job.runs for each in link_tests_of(run)]
    found = spoken(said, tests)
    topologies = [found_ for run in job.runs if (found_ := run_topology(run))]
    if found is None:
        return NO_EVIDENCE
    longest = max(host.length_us for host in job.hosts)
    return communication_words(found, topologies[0] if topologies else None, longest, plain)


def _xid_rows(job: Job, plain: bool) -> Iterator[tuple[str, str]]:
    found = _xids(job)
    for host, run, index in found[:MOST_XIDS]:
        each = xids_of(run)[index]
        where = "a GPU" if each.gpu is None else f"GPU {each.gpu}"
        words = meaning(each.xid) or "not in our table"
        yield (
            f"Xid {each.xid}",
            f"{where} of {safe(host.name)}{mark(Grade.MEASURED, plain)}: {words}",
        )
    if len(found) > MOST_XIDS:
        yield "", f"and {len(found) - MOST_XIDS} more errors of GPUs: --json"


def _host_lines(report: JobReport, plain: bool) -> list[str]:
    rows: list[Sequence[str]] = []
    for each in report.money.hosts[:MOST_HOSTS]:
        host = each.host
        cost = "cost not known"
        if each.cost is not None:
            cost = f"{rounded(each.cost)} {each.currency}{mark(Grade.ASSUMED, plain)}"
        price = each.price.text() if each.price else "-"
        node = f"node {', '.join(map(str, host.nodes))}" if host.nodes else ""
        codes = ", ".join(code_of(run.run) for run in host.runs[:4])
        codes += " …" if len(host.runs) > 4 else ""
        rows.append((shortened(host.name, 24), node, duration(host.length_us), price, cost, codes))
    widths = [max(len(line[i]) for line in rows) for i in range(6)]
    lines = [
        "    "
        + "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in rows
    ]
    left = len(report.money.hosts) - len(rows)
    return ["", "  hosts", *lines, *([f"    and {left} more: --json"] if left > 0 else [])]
