"""A campaign is the sum of its parts: attempts, rentals, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.evidence.laws import sheet_breaches
from ouvrage.ledger.facts import Fact, Recorded
from ouvrage.metering.rental_view import rental_views, stay_of
from ouvrage.metering.run_view import run_views
from ouvrage.pricing.campaign import Campaign, campaign_of
from ouvrage.pricing.campaign_report import answer, campaign_json, campaign_text
from ouvrage.pricing.campaign_sheet import campaign_sheet
from ouvrage.pricing.laws import LAWS
from ouvrage.pricing.rental_cost import account_of
from ouvrage.pricing.spending_laws import campaign_breaches
from tests.support.attempts import accepts, in_ledger, joins, rental_facts, run_facts
from tests.support.facts import OTHER

CENT = {"amount": "36", "currency": "EUR", "per": "h"}


def summed(records: list[Recorded], name: str = "spring") -> Campaign:
    runs = list(run_views(records).values())
    accounts = [
        account_of(
            view,
            [stay_of(run) for run in runs if view.holds(run.run, run.source)],
            records[-1].recorded_at,
            run_facts=[key for run in runs for key in run.facts("run.started")],
        )
        for view in rental_views(records).values()
    ]
    return campaign_of(name, [run for run in runs if name in run.campaigns], accounts, 0)


def spent(campaign: Campaign) -> dict[str, Fraction]:
    return {sort: cost * 100 for sort, cost in campaign.parts.items() if cost}


def test_attempts_alone():
    campaign = summed(
        in_ledger(
            run_facts(1, 0, price=CENT),
            run_facts(2, 100, price=CENT),
            run_facts(3, 200, price=CENT),
            [joins(n, "spring") for n in (1, 2, 3)],
            [accepts(1, 2), accepts(2, 0)],
        )
    )
    assert spent(campaign) == {
        "accepted": Fraction(40, 3),
        "rejected": Fraction(20, 3) + 20,
        "unjudged": 20,
    }
    assert (campaign.units_accepted, campaign.results_accepted, campaign.unit) == (2, 1, "epoch")
    sheet = campaign_sheet(campaign)
    assert sheet.number("cost.total") == Fraction("0.60")
    assert sheet.number("cost_per_accepted_unit") == Fraction("0.30")
    assert sheet.number("cost_per_accepted_result") == Fraction("0.60")
    assert answer(campaign, plain=False) == (
        "spring: 0.300 EUR ? per accepted epoch, 0.600 EUR ? in all for 2 accepted epochs. "
        "44 % went into work that was not accepted, 33 % is not judged yet."
    )


def test_time_on_a_rented_machine_is_paid_by_the_rental():
    """Run 1 has a price of its own that must not be counted beside the rent; run 2 is a stranger."""
    campaign = summed(
        in_ledger(
            rental_facts(1, 0, 100, campaign="spring"),
            run_facts(1, 10, price=CENT),
            run_facts(2, 50, price=None),
            [joins(1, "spring"), accepts(1, 3)],
        )
    )
    assert spent(campaign) == {"accepted": 20, "held": 60, "other": 20}


def test_an_attempt_on_somebody_elses_rental_pays_its_share_alone():
    campaign = summed(
        in_ledger(
            rental_facts(1, 0, 100),
            run_facts(1, 10, price=None),
            run_facts(2, 20, price=None),
            [joins(1, "spring"), accepts(1, 3)],
        )
    )
    assert spent(campaign) == {"accepted": 15}


def test_a_run_partly_outside_costs_its_own_price_there():
    records = in_ledger(
        rental_facts(1, 0, 100, amount="72", campaign="spring"),
        run_facts(1, 90, price=CENT),
        [joins(1, "spring"), accepts(1, 3)],
    )
    assert spent(summed(records)) == {"accepted": 10 * 2 + 10, "held": 90 * 2}


def test_without_a_price_the_total_is_unknown_and_the_known_part_stands():
    campaign = summed(
        in_ledger(
            run_facts(1, 0, price=CENT),
            run_facts(2, 100, price=None),
            [joins(1, "spring"), joins(2, "spring"), accepts(1, 3)],
        )
    )
    sheet = campaign_sheet(campaign)
    assert sheet.number("cost.total") is None
    assert sheet.number("cost_per_accepted_unit") is None
    assert sheet.number("cost.known") == Fraction("0.20")
    assert "it has no price" in (sheet["cost.total"].why or "")
    assert answer(campaign, plain=False).startswith("spring: at least 0.200 EUR.")
    assert campaign_json(campaign)["cost"]["total"] is None


def test_two_currencies_are_refused():
    dollars = {"amount": "1", "currency": "USD", "per": "h"}
    records = in_ledger(
        run_facts(1, 0, price=CENT),
        run_facts(2, 100, price=dollars),
        [joins(1, "spring"), joins(2, "spring")],
    )
    with pytest.raises(OuvrageError, match="several currencies"):
        summed(records)


def _facts(
    runs: Iterable[tuple[int, int, bool, bool, int | None]],
    rentals: Iterable[tuple[int, int, bool, bool]],
) -> list[list[Fact]]:
    groups: list[list[Fact]] = []
    for number, (at, wall, priced, ours, units) in enumerate(runs, 1):
        groups.append(run_facts(number, at, wall, price=CENT if priced else None))
        groups.append([joins(number, "spring")] if ours else [])
        groups.append([] if units is None else [accepts(number, units)])
    for number, (start, length, ours, here) in enumerate(rentals, 1):
        campaign = "spring" if ours else None
        machine = {} if here else {"machine": OTHER}
        groups.append(rental_facts(number, start, start + length, campaign=campaign, **machine))
    return groups


_RUN = st.tuples(
    st.integers(0, 200),
    st.integers(20, 60),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 3),
)
_RENTAL = st.tuples(st.integers(0, 200), st.integers(0, 150), st.booleans(), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(_RUN, max_size=5), st.lists(_RENTAL, max_size=3))
def test_whatever_was_rented_and_run_it_adds_up(
    runs: list[tuple[int, int, bool, bool, int | None]], rentals: list[tuple[int, int, bool, bool]]
):
    groups = _facts(runs, rentals)
    if not any(groups):
        return
    records = in_ledger(*groups)
    for law in LAWS:
        assert not law.breaches(records), law.name
    campaign = summed(records)
    if campaign.attempts or campaign.rented:
        assert not list(campaign_breaches(campaign))
        keys = {entry.fact.key for entry in records}
        assert not list(sheet_breaches(campaign_sheet(campaign), keys))
        assert campaign_text(campaign, plain=True)
