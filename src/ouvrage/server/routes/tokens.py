"""``/v1/tokens``: for people and programs.

A token's secret is shown when it is made and never again; from then on it is known by its id.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.routes.projects import OfOrg
from ouvrage.server.services import tokens as services
from ouvrage.wire.api import Done, Listed, NewToken, TokenShown, TokenTold

router = APIRouter(prefix="/v1/tokens", tags=["people"])


@router.get("", **acts("me.token"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: OfOrg = None
) -> Listed[TokenTold]:
    """One's own tokens; with `org`, those of all its people and programs."""
    rows = services.listed(platform, actor, org, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.token)
    return Listed(items=list(items), next=after)


@router.post("", **acts("me.token", status=201))
def create(once: OnceDep, asked: NewToken) -> TokenShown:
    """A token for oneself; with `machine`, for a program with a role of its own."""
    return once.do(
        TokenShown, asked, lambda tx: services.create(tx, once.platform, once.actor, asked)
    )


@router.delete("/{token}", **acts("me.token"))
def revoke(
    once: OnceDep, token: Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Its id.")]
) -> Done:
    """End a token; it is worth nothing from the next request on."""

    def work(tx: services.Transaction) -> Done:
        services.revoke(tx, once.platform, once.actor, token)
        return Done()

    return once.do(Done, None, work)
