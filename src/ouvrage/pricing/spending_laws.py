"""The laws of rentals and campaigns: paid time and spent money divide without a remainder.

They add up a second time, by another road than the accounts take. Whether a price or a moment is
right they do not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.laws import Law
from ouvrage.metering.rental_view import RentalView, rental_views, stay_of
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.pricing.campaign import Attempt, Campaign, campaign_of
from ouvrage.pricing.rental_cost import RentalAccount, account_of, rental_sheet

Found = Iterable[tuple[str, str]]


def _accounts(records: Sequence[Recorded], runs: Iterable[RunView]) -> list[RentalAccount]:
    as_of = max((entry.recorded_at for entry in records), default=0)
    held = list(runs)
    return [_account(view, held, as_of) for view in rental_views(records).values()]


def _account(view: RentalView, runs: Iterable[RunView], as_of: int) -> RentalAccount:
    there = [run for run in runs if view.holds(run.run, run.source)]
    facts = [key for run in there for key in run.facts("run.started", "run.ended")]
    return account_of(view, [stay_of(run) for run in there], as_of, run_facts=facts)


def _rentals_add_up(records: Sequence[Recorded]) -> Found:
    for account in _accounts(records, run_views(records).values()):
        yield from rental_breaches(account)


def rental_breaches(account: RentalAccount) -> Found:
    """What does not add up in the account of a rental."""
    view, time = account.view, account.time
    if view.ended_us is not None and view.ended_us < view.started.started_us:
        yield view.rental, f"ends at {view.ended_us}, begins at {view.started.started_us}"
    if time.working_us + time.held_us != time.paid_us:
        yield view.rental, f"{time.working_us} + {time.held_us} us are not {time.paid_us} us"
    if sum(time.shares.values()) != time.working_us:
        yield view.rental, f"the runs' shares are not its {time.working_us} us of work"
    parts = (time.working_us, time.before_us, time.between_us, time.after_us)
    if min(parts) < 0 or any(share < 0 for share in time.shares.values()):
        yield view.rental, f"a negative part: {parts}"
    sheet = rental_sheet(account)
    costs = [sheet.number(f"cost.{name}") for name in ("working", "held")]
    if sum(cost or 0 for cost in costs) != sheet.number("cost.total"):
        yield view.rental, f"{costs} are not the parts of its cost"


def _campaigns_add_up(records: Sequence[Recorded]) -> Found:
    runs = list(run_views(records).values())
    accounts = _accounts(records, runs)
    as_of = max((entry.recorded_at for entry in records), default=0)
    names = {name for run in runs for name in run.campaigns}
    names |= {name for account in accounts for name in account.view.campaigns}
    for name in sorted(names):
        ours = [run for run in runs if name in run.campaigns]
        ids = {run.run for run in ours}
        near = [a for a in accounts if name in a.view.campaigns or ids & a.time.shares.keys()]
        try:
            campaign = campaign_of(name, ours, near, as_of)
        except OuvrageError:  # several currencies: nothing is added up, so nothing is wrong
            continue
        yield from campaign_breaches(campaign)


def campaign_breaches(campaign: Campaign) -> Found:
    """What does not add up in a campaign."""
    where = f"campaign/{campaign.name}"
    for attempt in campaign.attempts:
        if attempt.cost is not None and sum(attempt.parts.values()) != attempt.cost:
            yield where, f"the parts of {attempt.code} are not its cost, {attempt.cost}"
    if min(campaign.parts.values()) < 0:
        yield where, "a negative part"
    if not campaign.unknown and campaign.known_cost != _paid(campaign):
        yield where, f"{campaign.known_cost} spent, {_paid(campaign)} paid"


def _paid(campaign: Campaign) -> Fraction:
    """Rents paid whole, and what attempts cost elsewhere."""
    own = [rented.account for rented in campaign.rented]
    rent = sum((each.cost_of(each.time.paid_us) for each in own), Fraction(0))
    elsewhere = (_outside(attempt, own) for attempt in campaign.attempts)
    return rent + sum(elsewhere, Fraction(0))


def _outside(attempt: Attempt, own: Iterable[RentalAccount]) -> Fraction:
    run = attempt.view.run
    inside = (each.cost_of(each.time.shares.get(run, Fraction(0))) for each in own)
    return (attempt.cost or Fraction(0)) - sum(inside, Fraction(0))


SPENDING_LAWS: tuple[Law, ...] = (
    Law(
        name="pricing/rental-adds-up",
        statement="every microsecond of a rental is working or held, and so is every part of its cost",
        check=_rentals_add_up,
    ),
    Law(
        name="pricing/campaign-adds-up",
        statement="what a campaign spent is the sum of its parts, and of what was paid for them",
        check=_campaigns_add_up,
    ),
)
