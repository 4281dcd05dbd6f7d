"""``/v1/leases``: a right to devices for a time, taken and given back.

Decides only the form of the addresses. Whoever is concerned by a change is woken once it is committed.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import leases
from ouvrage.server.services.waking import after_change, after_stopping
from ouvrage.wire.api import Listed
from ouvrage.wire.work import LeaseTold, NewLease, Release

router = APIRouter(tags=["leases"])


@router.get("/v1/leases", **acts("lease.read"))
def listed(
    platform: PlatformDep,
    actor: UserDep,
    page: PageDep,
    kind: Annotated[str | None, Query(pattern="^(term|job)$")] = None,
    open_only: Annotated[bool, Query(alias="open")] = False,
) -> Listed[LeaseTold]:
    """Leases that the asker may see, newest first."""
    rows = leases.listed(
        platform, actor, kind=kind, open_only=open_only, cursor=page.after or None, limit=page.limit
    )
    items, following = cut(rows, page, lambda row: row.lease)
    return Listed[LeaseTold](items=list(items), next=following)


@router.post("/v1/leases", **acts("lease.create", status=201))
def take(once: OnceDep, asked: NewLease) -> LeaseTold:
    """Take an offer from now on; refused with the reason where there is no room."""
    told = once.do(LeaseTold, asked, lambda tx: leases.take(tx, once.platform, once.actor, asked))
    after_change(once.platform)
    return told


@router.get("/v1/leases/{lease}", **acts("lease.read"))
def shown(platform: PlatformDep, actor: UserDep, lease: str) -> LeaseTold:
    """One lease, by code or id."""
    return leases.shown(platform, actor, lease)


@router.post("/v1/leases/{lease}/release", **acts("lease.release"))
def release(once: OnceDep, lease: str, asked: Release) -> LeaseTold:
    """Give a lease back."""
    told = once.do(
        LeaseTold, asked, lambda tx: leases.release(tx, once.platform, once.actor, lease, asked)
    )
    after_stopping(once.platform, lease=told.lease)
    return told
