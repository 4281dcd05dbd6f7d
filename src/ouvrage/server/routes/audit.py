"""``/v1/audit``: who did what, and what was refused.

Reads alone: lines are written where things are done, in the same transaction.
"""

from __future__ import annotations

from fastapi import APIRouter

from ouvrage.server.access import PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.routes.projects import OfOrg
from ouvrage.server.services import audit as services
from ouvrage.wire.api import AuditTold, Listed

router = APIRouter(prefix="/v1/audit", tags=["people"])


@router.get("", **acts("audit.read"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: OfOrg = None
) -> Listed[AuditTold]:
    """Lines of the trail, newest first."""
    rows = services.listed(platform, actor, org, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: str(row.seq))
    return Listed(items=list(items), next=after)
