"""The figures of a campaign, each with the way back to the runs and rentals it is made of.

Decides their names (``campaign/NAME:cost.held``) and when one is unknown. Values are exact; the
adding up is ``campaign.py``'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.text import safe
from ouvrage.evidence.figures import Figure, Sheet, known, unknown
from ouvrage.metering.units import facts_of_units
from ouvrage.pricing.campaign import NO_COST, SORTS, Attempt, Campaign

WORDS = {
    "accepted": "accepted work",
    "rejected": "finished units that were not accepted",
    "failed": "work that failed",
    "cancelled": "work that was cancelled",
    "unjudged": "work that nobody has judged",
    "held": "rented, and nothing ran",
    "other": "rented, and other runs, or runs that are not over, ran",
}


def campaign_sheet(campaign: Campaign) -> Sheet:
    """Every figure about a campaign."""
    figures = [
        *_attempt_figures(campaign),
        *_rental_figures(campaign),
        *_sums(campaign),
        *_counts(campaign),
        *_per_accepted(campaign),
    ]
    return Sheet(
        object=f"campaign/{campaign.name}",
        as_of=campaign.as_of,
        figures={figure.path: figure for figure in figures},
    )


def missing_cost(campaign: Campaign) -> str | None:
    """Why the total is not known; None where it is."""
    codes = [attempt.code for attempt in campaign.unknown]
    if not codes:
        return None
    return f"the cost of {', '.join(codes)} is not known: {NO_COST}"


def _attempt_figures(campaign: Campaign) -> Iterable[Figure]:
    for attempt in campaign.attempts:
        path, method = f"attempts.{attempt.code}.cost", _attempt_method(attempt)
        if attempt.cost is None:
            yield unknown(path, campaign.currency, method, NO_COST)
            continue
        facts = (
            *attempt.view.facts("run.started", "run.ended"),
            *(key for each in _accounts_of(campaign, attempt) for key in each),
        )
        yield known(path, attempt.cost, campaign.currency, campaign.grade, method, facts=facts)
        units, said = f"attempts.{attempt.code}.accepted", attempt.view.acceptance
        if said is not None and attempt.judged:
            words = f"accepted of its {attempt.countable} units: {safe(said.why)}"
            facts = (said.key, *facts_of_units(attempt.view, attempt.units))
            yield known(units, said.units, attempt.units.name, said.grade, words, facts=facts)


def _attempt_method(attempt: Attempt) -> str:
    if attempt.rentals:
        return "its share of the rental's price, and its own price outside of it"
    return "price x wall time"


def _accounts_of(campaign: Campaign, attempt: Attempt) -> Iterable[tuple[str, ...]]:
    run = attempt.view.run
    return (each.view.keys for each in campaign.accounts if run in each.time.shares)


def _rental_figures(campaign: Campaign) -> Iterable[Figure]:
    for rented in campaign.rented:
        account = rented.account
        facts = (*account.view.keys, *account.run_facts)
        for name, cost, method in (
            ("held", rented.held, "price x the time in which nothing ran on it"),
            ("other", rented.other, "price x the time of runs that are no attempts, or not over"),
        ):
            path = f"rentals.{account.view.code}.{name}"
            yield known(path, cost, campaign.currency, campaign.grade, method, facts=facts)


def _sums(campaign: Campaign) -> Iterable[Figure]:
    costs = tuple(f"attempts.{each.code}.cost" for each in campaign.attempts)
    held = {
        name: tuple(f"rentals.{each.account.view.code}.{name}" for each in campaign.rented)
        for name in ("held", "other")
    }
    why, unit = missing_cost(campaign), campaign.currency
    method = "what all attempts cost, and what was paid for machines that did not work on them"
    inputs = (*costs, *held["held"], *held["other"])
    if not inputs:
        yield unknown("cost.total", unit, method, "the campaign has no attempts and no rentals")
        return
    if why is None:
        yield known("cost.total", campaign.known_cost, unit, campaign.grade, method, inputs=inputs)
    else:
        yield unknown("cost.total", unit, method, why, inputs=inputs)
    for sort in SORTS:
        yield _sum(campaign, sort, held.get(sort) or costs or inputs)
    method = "the part of the total that is known"
    yield known("cost.known", campaign.known_cost, unit, campaign.grade, method, inputs=inputs)


def _sum(campaign: Campaign, sort: str, inputs: tuple[str, ...]) -> Figure:
    path, why = f"cost.{sort}", missing_cost(campaign)
    if why is not None and sort not in ("held", "other"):
        return unknown(path, campaign.currency, WORDS[sort], why, inputs=inputs)
    cost = campaign.parts[sort]
    return known(path, cost, campaign.currency, campaign.grade, WORDS[sort], inputs=inputs)


def _counts(campaign: Campaign) -> Iterable[Figure]:
    judged = [each for each in campaign.attempts if each.judged]
    inputs = tuple(f"attempts.{each.code}.accepted" for each in judged if each.cost is not None)
    facts = tuple(
        each.view.acceptance.key for each in judged if each.cost is None and each.view.acceptance
    )
    said = [each.view.acceptance.grade for each in judged if each.view.acceptance]
    method = "accepted units of all attempts; those that nobody has judged count as none"
    if not judged:
        why = "nobody has judged any attempt; ouvrage accept RUN --units N --why TEXT"
        yield unknown("units_accepted", "1", method, why)
        yield unknown("results_accepted", "1", "attempts with accepted work", why)
        return
    grade = weakest([Grade.REPORTED, *said])
    unit = campaign.unit or "unit"
    yield known(
        "units_accepted", campaign.units_accepted, unit, grade, method, inputs=inputs, facts=facts
    )
    yield known(
        "results_accepted",
        campaign.results_accepted,
        "attempt",
        grade,
        "attempts with accepted work",
        inputs=inputs,
        facts=facts,
    )


def _per_accepted(campaign: Campaign) -> Iterable[Figure]:
    rows = (
        ("cost_per_accepted_unit", "units_accepted", campaign.units_accepted),
        ("cost_per_accepted_result", "results_accepted", campaign.results_accepted),
    )
    for path, of, many in rows:
        method, inputs = f"total cost / {of}", ("cost.total", of)
        why = missing_cost(campaign) or (None if many else "nothing was accepted")
        if of == "units_accepted" and many and campaign.unit is None:
            why = "the accepted units are not all of one name"
        if why is not None:
            yield unknown(path, campaign.currency, method, why, inputs=inputs)
            continue
        cost = campaign.known_cost / Fraction(many)
        yield known(path, cost, campaign.currency, campaign.grade, method, inputs=inputs)
