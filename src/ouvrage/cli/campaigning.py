"""A campaign for the verbs that report or explain it: its runs, the rentals they stood in, records.

Decides the moment it is known at: the last at which anything about it was recorded or, while one of
its machines is still paid for, now.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from ouvrage.adapters.clock import now_us
from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import is_campaign
from ouvrage.cli.ledger import Ledger
from ouvrage.cli.renting import accounted, rental_records
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.view import in_force
from ouvrage.metering.rental_view import RentalView, rental_views
from ouvrage.metering.run_view import RunView, run_views
from ouvrage.model.accepted import RunCampaign
from ouvrage.model.records import Withdrawal
from ouvrage.pricing.campaign import Campaign, campaign_of

FIRST = "ouvrage run --campaign NAME … -- COMMAND, or ouvrage campaign add NAME RUN…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A campaign added up, and every record it stands on."""

    campaign: Campaign
    records: tuple[Recorded, ...]


def members(ledger: Ledger, as_of: int | None) -> dict[str, dict[str, Recorded]]:
    """By campaign, then by run: the fact in force that the run is an attempt in it."""
    kinds = (RunCampaign.KIND, Withdrawal.KIND)
    records = [r for kind in kinds for r in ledger.store.records(kind=kind, as_of=as_of)]
    found: dict[str, dict[str, Recorded]] = {}
    for entry in in_force(records):
        value = read(entry.fact)
        if isinstance(value, RunCampaign) and is_campaign(value.campaign):
            found.setdefault(value.campaign, {})[value.run] = entry
    return found


def campaign_found(ledger: Ledger, name: str, as_of: int | None) -> Found:
    """Add up the campaign of this name. Raises ``OuvrageError`` ``campaign/...``."""
    rented = rental_records(ledger, as_of)
    rentals = rental_views(rented)
    runs = members(ledger, as_of).get(name, {})
    if not runs and not any(name in view.campaigns for view in rentals.values()):
        raise _unknown(ledger, name, rentals, as_of)
    records = ledger.records(list(runs), as_of)
    views = list(run_views(records).values())
    used = [view for view in rentals.values() if _concerns(view, name, views)]
    of_rentals = {view.rental for view in used}
    behind = [*records, *(entry for entry in rented if entry.fact.subject in of_rentals)]
    moment = _moment(behind, used, as_of)
    accounts = [accounted(ledger, view, moment, live=as_of is None) for view in used]
    others = {key for account in accounts for key in account.time.shares} - runs.keys()
    behind += ledger.records(sorted(others), as_of)
    return Found(campaign=campaign_of(name, views, accounts, moment), records=tuple(behind))


def _concerns(view: RentalView, name: str, runs: Sequence[RunView]) -> bool:
    return name in view.campaigns or any(view.holds(run.run, run.source) for run in runs)


def _moment(records: Sequence[Recorded], rentals: Sequence[RentalView], as_of: int | None) -> int:
    if as_of is not None:
        return as_of
    if any(view.ended_us is None for view in rentals):
        return now_us()
    return max(entry.recorded_at for entry in records)


def names(ledger: Ledger, rentals: dict[str, RentalView], as_of: int | None) -> list[str]:
    """Every campaign that a run or a rental belongs to."""
    named = {name for view in rentals.values() for name in view.campaigns}
    return sorted(named | members(ledger, as_of).keys())


def _unknown(
    ledger: Ledger, name: str, rentals: dict[str, RentalView], as_of: int | None
) -> OuvrageError:
    known = names(ledger, rentals, as_of)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else FIRST
    return OuvrageError(
        "campaign/unknown",
        f"no run and no rental belongs to a campaign {name!r}",
        where=tuple(known[:5]),
        hint=hint,
    )
