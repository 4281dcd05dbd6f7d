"""Runs and rentals made up as facts, to reckon with: twenty seconds a run, three epochs each."""

from __future__ import annotations

import io
import json
from typing import Any

from ouvrage.base.grades import Grade
from ouvrage.base.price import Price
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.spool import facts_of, read_spool
from ouvrage.model.accepted import RunAccepted, RunCampaign
from ouvrage.model.rentals import RentalCampaign, RentalEnded, RentalRun, RentalStarted
from ouvrage.model.runs import RunSamples
from tests.support.facts import SOURCE
from tests.support.spools import STARTED, lines, run_id

SECOND = 1_000_000


def run_facts(number: int, at_s: int, wall_s: int = 20, **header: Any) -> list[Fact]:
    """The facts of a run that began ``at_s`` after ``STARTED``."""
    run = run_id(number)
    spool = lines(run, started_us=STARTED + at_s * SECOND, **header)
    spool[-1]["t"] = wall_s * SECOND
    text = "".join(json.dumps(line) + "\n" for line in spool)
    sealed = RunSamples(run=run, sha256="0" * 64, size_bytes=1, samples=3)
    return facts_of(read_spool(io.StringIO(text)), sealed=sealed)


def said(value: Any, id: str, subject: str, at_s: int = 0, **more: Any) -> Fact:
    """A statement of somebody's, at a moment."""
    return fact_of(
        value,
        source=SOURCE,
        id=id,
        subject=subject,
        valid_from=STARTED + at_s * SECOND,
        valid_to=None,
        grade=Grade.REPORTED,
        **more,
    )


def accepts(number: int, units: int, id: str = "judged", **more: Any) -> Fact:
    run = run_id(number)
    value = RunAccepted(run=run, units=units, unit="epoch", why="looked at")
    return said(value, f"{run}/{id}", run, **more)


def joins(number: int, campaign: str) -> Fact:
    run = run_id(number)
    return said(RunCampaign(run=run, campaign=campaign), f"{run}/in/{campaign}", run)


def rental_facts(
    number: int,
    start_s: int,
    end_s: int | None,
    *,
    amount: str = "36",
    machine: str | None = SOURCE,
    campaign: str | None = None,
    runs: tuple[int, ...] = (),
) -> list[Fact]:
    """A rental from one moment to another; 36 an hour is a cent a second."""
    rental = run_id(900 + number)
    value = RentalStarted(
        rental=rental,
        label=f"rental {number}",
        price=Price(amount=amount, currency="EUR", per="h"),
        started_us=STARTED + start_s * SECOND,
        machine=machine,
    )
    facts = [said(value, f"{rental}/start", rental, start_s)]
    if end_s is not None:
        end = RentalEnded(rental=rental, ended_us=STARTED + end_s * SECOND)
        facts.append(said(end, f"{rental}/end", rental, end_s))
    if campaign is not None:
        joined = RentalCampaign(rental=rental, campaign=campaign)
        facts.append(said(joined, f"{rental}/campaign", rental, start_s))
    for run in runs:
        there = RentalRun(rental=rental, run=run_id(run))
        facts.append(said(there, f"{rental}/run/{run}", rental, start_s))
    return facts


def in_ledger(*groups: list[Fact]) -> list[Recorded]:
    """Facts as a ledger holds them, recorded long after all of it."""
    facts = [fact for group in groups for fact in group]
    at = STARTED + 1_000_000 * SECOND
    return [Recorded(seq=seq, recorded_at=at + seq, fact=fact) for seq, fact in enumerate(facts, 1)]
