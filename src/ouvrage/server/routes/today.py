"""``/v1/today`` and ``/v1/status``: how it stands now, for those who belong to the platform, and for anybody where its owner wants that.

Decides nothing; the pages ``/`` and ``/for-sale`` show the same.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends

from ouvrage.server.access import PlatformDep, UserDep, acts, stranger
from ouvrage.server.authorise import PUBLIC
from ouvrage.server.services import public
from ouvrage.server.services.today import today
from ouvrage.wire.work import StatusTold, TodayTold

router = APIRouter(tags=["server"])


@router.get("/v1/today", **acts("me.read"))
def now(platform: PlatformDep, actor: UserDep) -> TodayTold:
    """What needs a person, what is under way, and what there is to sell, as far as the asker may know."""
    return today(platform, actor)


@router.get("/v1/status", dependencies=[Depends(stranger)], **acts(PUBLIC))
def status(platform: PlatformDep) -> StatusTold:
    """What is for sale to everybody, and whether it can be had now; 404 where the owner keeps that to themselves."""
    return public.status(platform)
