"""What anybody may know of a platform, where its owner wants that: what is for sale to everybody, and whether there is room.

Decides that nothing of machines, tenants or work is told beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.model.selling import OwnOffer, Placed
from ouvrage.placement.decide import grant
from ouvrage.placement.spec import needs_of_offer
from ouvrage.server.context import Platform
from ouvrage.server.errors import Refused
from ouvrage.server.services.holds import ALWAYS
from ouvrage.server.services.snapshots import snapshot_of
from ouvrage.store.platform.selling import offer_page
from ouvrage.wire.work import ForSaleTold, StatusTold

MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ForSale:
    """An offer's terms, and whether it could be had at this moment."""

    terms: OwnOffer
    room: bool


def status(platform: Platform) -> StatusTold:
    """The same, as the interface tells it."""
    found = for_sale(platform)
    return StatusTold(
        as_of_us=platform.clock(),
        offers=[
            ForSaleTold(
                name=each.terms.name,
                gpu=each.terms.gpu,
                gpus=each.terms.gpus,
                cpus=each.terms.cpus,
                memory_mib=each.terms.memory_mib,
                disk_mib=each.terms.disk_mib,
                plan=each.terms.plan_name,
                rate=each.terms.rate,
                currency=each.terms.currency,
                interruptible=each.terms.interruptible,
                room=each.room,
            )
            for each in found
        ],
        free=sum(each.room for each in found),
    )


def for_sale(platform: Platform) -> list[ForSale]:
    """What is for sale to everybody; ``Refused`` 404 where the owner keeps that to themselves."""
    if not platform.settings.public_page:
        raise Refused(
            "public/closed", "there is no public page here", status=404, hint="sign in: /sign-in"
        )
    now = platform.clock()
    with platform.reading() as connection:
        rows = offer_page(
            connection, audiences=("public",), withdrawn=False, limit=MOST, cursor=None
        )
        stands = snapshot_of(connection, now, platform.limits, ALWAYS)
    return [
        ForSale(
            terms=row.terms,
            room=isinstance(grant(stands, needs_of_offer(row.terms), None, now), Placed),
        )
        for row in rows
    ]
