"""``/v1/offers``: what is for sale here.

Decides only the form of the addresses. There is none for changing an offer: withdrawn and made anew is what can be done.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import offers
from ouvrage.wire.api import Listed
from ouvrage.wire.work import NewOffer, OfferTold, Why

router = APIRouter(tags=["offers"])


@router.get("/v1/offers", **acts("offer.read"))
def listed(
    platform: PlatformDep,
    actor: UserDep,
    page: PageDep,
    withdrawn: Annotated[bool, Query(description="Those no longer for sale too.")] = False,
) -> Listed[OfferTold]:
    """Offers that the asker may take, newest first."""
    rows = offers.listed(
        platform, actor, withdrawn=withdrawn, cursor=page.after or None, limit=page.limit
    )
    items, following = cut(rows, page, lambda row: row.offer)
    return Listed[OfferTold](items=list(items), next=following)


@router.post("/v1/offers", **acts("offer.create", status=201))
def create(once: OnceDep, asked: NewOffer) -> OfferTold:
    """Put a configuration up for sale; its terms never change after."""
    return once.do(OfferTold, asked, lambda tx: offers.create(tx, once.platform, once.actor, asked))


@router.get("/v1/offers/{offer}", **acts("offer.read"))
def shown(platform: PlatformDep, actor: UserDep, offer: str) -> OfferTold:
    """One offer, by name, code or id."""
    return offers.shown(platform, actor, offer)


@router.post("/v1/offers/{offer}/withdraw", **acts("offer.withdraw"))
def withdraw(once: OnceDep, offer: str, asked: Why) -> OfferTold:
    """Take an offer off sale; leases under it run on."""
    return once.do(
        OfferTold, asked, lambda tx: offers.withdraw(tx, once.platform, once.actor, offer, asked)
    )
