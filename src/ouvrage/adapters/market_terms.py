"""How each offer of a market bills, and the few dated offers that come with the package.

Decides nothing about prices: a plan is read once for all offers that bill alike, and the starter catalogue stands in for an empty
market, named as such by whoever shows it.
"""

from __future__ import annotations

from ouvrage.adapters.catalogues.files import load_catalogue
from ouvrage.adapters.rate_files import load_plan, shipped_names
from ouvrage.model.offers import MarketOffer
from ouvrage.pricing.market.billing import Billing, billing_of
from ouvrage.pricing.market.listed import Listed
from ouvrage.pricing.market.lots import Lot, lots_of


class Billings:
    """How each offer bills: its plan read once, and one value for all offers that bill alike."""

    def __init__(self) -> None:
        self._plans = set(shipped_names())
        self._known: dict[tuple[object, ...], Billing] = {}

    def __call__(self, offer: MarketOffer) -> Billing:
        """The billing of one offer."""
        key = (offer.plan, offer.storage_gb_month, offer.egress_gb, offer.ingress_gb, offer.tax)
        found = self._known.get(key)
        if found is None:
            plan = load_plan(offer.plan) if offer.plan in self._plans else None
            rivals = () if plan is None else map(load_plan, plan.conflicts_with)
            found = self._known[key] = billing_of(offer, plan, rivals)
        return found


def starter() -> list[Lot]:
    """The package's own offers, each seen on the day that its row gives."""
    parsed, _, _ = load_catalogue("starter", read_on="2026-11-30")
    return lots_of(
        Listed(offer=offer, seen_on=offer.dated or offer.first_read) for offer in parsed.offers
    )
