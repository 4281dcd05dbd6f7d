"""A job for the verbs that report or explain it: its runs by its id, brought from whichever machine.

Decides which runs bear a job's id, and the moment it is known at: the last at which anything about them
was recorded, so that the same question has the same answer until another machine's run arrives.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.fx import rates_between
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.metering.jobs import job_from
from ouvrage.metering.run_view import run_views
from ouvrage.model.around import RunJob
from ouvrage.model.offers import ExchangeRate
from ouvrage.pricing.job_cost import currencies_of
from ouvrage.pricing.job_report import JobReport, job_report


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundJob:
    """A job with its figures, and every record it stands on."""

    report: JobReport
    records: tuple[Recorded, ...]


def members(ledger: Ledger, as_of: int | None) -> dict[str, list[str]]:
    """By job: the runs whose facts in force bear its id, in the order in which they were recorded."""
    found: dict[str, list[str]] = {}
    for entry in in_force(ledger.store.records(kind=RunJob.KIND, as_of=as_of)):
        value = read(entry.fact)
        if isinstance(value, RunJob) and value.run == entry.fact.subject:
            found.setdefault(value.job, []).append(value.run)
    return found


def job_found(ledger: Ledger, job: str, as_of: int | None) -> FoundJob:
    """The job of this id. Raises ``OuvrageError`` ``job/unknown``."""
    known = members(ledger, as_of)
    if job not in known:
        raise _unknown(job, known)
    records = ledger.records(list(dict.fromkeys(known[job])), as_of)
    found = job_from(job, run_views(records).values())
    if not found.hosts:
        raise _unknown(job, {})
    moment = as_of if as_of is not None else max(entry.recorded_at for entry in records)

    def rates(currency: str, others: set[str]) -> Mapping[str, ExchangeRate]:
        return rates_between(ledger, currency, others) if len(currencies_of(found)) > 1 else {}

    return FoundJob(report=job_report(found, rates, moment), records=tuple(records))


def _unknown(job: str, known: Mapping[str, list[str]]) -> OuvrageError:
    near = difflib.get_close_matches(job, list(known), n=1)
    hint = f"did you mean {near[0]}?" if near else "ouvrage run --job ID -- COMMAND, on every host"
    return OuvrageError(
        "job/unknown",
        f"no run here is a part of a job {job!r}",
        where=tuple(list(known)[-5:]),
        hint=hint,
    )
