"""The page of a job: what a unit cost with all its machines, and each machine beside the others.

Decides which figures lead and what stands in the table; words and digits are the command's own.
"""

from __future__ import annotations

from ouvrage.base.time import utc_text
from ouvrage.console.page import Page, Row, Shown, Tile
from ouvrage.console.shown import shown
from ouvrage.pricing.job_report import JobReport, answer, job_text, notes_of
from ouvrage.pricing.words import counted, duration

COLUMNS = ("time", "price", "cost")


def job_page(report: JobReport) -> Page:
    """The page of a job."""
    job, sheet = report.job, report.sheet
    unit, currency = job.units.name, f" {report.money.currency}"
    tiles = (
        Tile(
            label=f"Cost per {unit}, all machines",
            shown=shown(sheet, "cost_per_unit.all_in", currency),
            note=sheet["cost_per_unit.all_in"].why or sheet["cost_per_unit.all_in"].method,
        ),
        Tile(label="Spent in all", shown=shown(sheet, "cost.total", currency),
             note=sheet["cost.total"].why or counted(len(job.hosts), "host")),
        Tile(label="Units", shown=shown(sheet, "units"), note=sheet["units"].method),
        Tile(label="First start to last end", shown=shown(sheet, "wall_s", " s"),
             note=sheet["wall_s"].method),
    )  # fmt: skip
    return Page(
        title=f"{job.job} · Ouvrage",
        headline=answer(report, plain=False),
        lead=(
            f"The job {job.job}: {counted(len(job.runs), 'run')} on {counted(len(job.hosts), 'host')}.",
        ),
        tiles=tiles,
        columns=COLUMNS,
        rows=tuple(_row(report, index) for index in range(len(job.hosts))),
        notes=tuple(notes_of(report)),
        said=job_text(report, plain=False),
        as_of=utc_text(sheet.as_of),
    )


def _row(report: JobReport, index: int) -> Row:
    each = report.money.hosts[index]
    cost = shown(report.sheet, f"hosts.{index}.cost", f" {each.currency or ''}")
    price = each.price.text() if each.price else "not stated"
    cells = (Shown(text=duration(each.host.length_us)), Shown(text=price), cost)
    return Row(label=each.host.label, cells=cells)
