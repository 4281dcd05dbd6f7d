"""What must hold of every job in a ledger, whichever machines its runs came from.

They say that no moment of a machine is paid twice and that the parts of a job are the whole. They judge no
job and mend nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.laws import Law
from ouvrage.metering.around import job_of
from ouvrage.metering.jobs import Host, Job, job_from
from ouvrage.metering.reckoning import reckon
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.pricing.job_cost import money_of
from ouvrage.pricing.job_report import job_report

Found = Iterable[tuple[str, str]]


def _jobs_add_up(records: Sequence[Recorded]) -> Found:
    by_job: dict[str, list[RunView]] = {}
    for view in run_views(records).values():
        place = job_of(view)
        if place is not None:
            by_job.setdefault(place.job, []).append(view)
    for name, runs in by_job.items():
        yield from job_breaches(job_from(name, runs))


def job_breaches(job: Job) -> Found:
    """What does not add up in a job."""
    where = f"job/{job.job}"
    for host in job.hosts:
        yield from ((where, found) for found in _host_faults(host))
    money = money_of(job, lambda _currency, _others: {})
    parts = [each.cost for each in money.hosts if each.cost is not None]
    if money.total is not None and sum(parts, Fraction(0)) != money.total:
        yield where, f"its machines cost {sum(parts, Fraction(0))}, the job {money.total}"
    if job.units.finished > sum(_most(host) for host in job.hosts) and job.units.lead:
        yield where, f"{job.units.finished} units, more than all of its runs finished"
    sheet = job_report(job, lambda _currency, _others: {}, 0).sheet
    missing = {path for f in sheet.figures.values() for path in f.inputs} - sheet.figures.keys()
    if missing:
        yield where, f"figures stand on what is no figure: {', '.join(sorted(missing))}"


def _host_faults(host: Host) -> Iterable[str]:
    longest, together = max(r.wall_us for r in host.runs), sum(r.wall_us for r in host.runs)
    if not longest <= host.length_us <= together:
        yield f"{host.name} worked {host.length_us} us, its runs {longest} to {together} us"


def _most(host: Host) -> int:
    return sum(max(1, reckon(run).units.finished) for run in host.runs)


JOBS_ADD_UP = Law(
    name="pricing/job-adds-up",
    statement="each moment of a job's machine counts once, and what a job cost is what its machines did",
    check=_jobs_add_up,
)
