"""``/v1/organisations``: tenants, and the owner's own organisation.

An organisation is named by its id or its name; one that the asker may not know of does not exist for them.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ouvrage.server.access import EngineDep, OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import organisations as services
from ouvrage.wire.api import (
    ChangeOrganisation,
    CloseOrganisation,
    Listed,
    NewOrganisation,
    OrganisationMade,
    OrganisationTold,
)

router = APIRouter(prefix="/v1/organisations", tags=["organisations"])
Org = Annotated[str, Path(max_length=63, description="An id or a name.")]


@router.get("", **acts("organisation.read"))
def listed(platform: PlatformDep, actor: UserDep, page: PageDep) -> Listed[OrganisationTold]:
    """The organisations that one may see."""
    rows = services.listed(platform, actor, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.org)
    return Listed(items=list(items), next=after)


@router.post("", **acts("organisation.create", status=201))
def create(once: OnceDep, asked: NewOrganisation) -> OrganisationMade:
    """A new tenant, with a project and perhaps an administrator."""
    return once.do(
        OrganisationMade,
        asked,
        lambda tx: services.create(tx, once.platform, once.actor, asked),
    )


@router.get("/{org}", **acts("organisation.read"))
def one(platform: PlatformDep, actor: UserDep, org: Org) -> OrganisationTold:
    """One organisation."""
    return services.one(platform, actor, org)


@router.patch("/{org}", **acts("organisation.change"))
def change(once: OnceDep, org: Org, asked: ChangeOrganisation) -> OrganisationTold:
    """How it pays from now on."""
    return once.do(
        OrganisationTold,
        asked,
        lambda tx: services.change(tx, once.platform, once.actor, org, asked),
    )


@router.post("/{org}/close", **acts("organisation.close"))
def close(once: OnceDep, engine: EngineDep, org: Org, asked: CloseOrganisation) -> OrganisationTold:
    """End it and all that it has under way: every credential of its people is revoked, no work is taken; its record stays."""
    return once.do(
        OrganisationTold,
        asked,
        lambda tx: services.close(tx, once.platform, engine, once.actor, org, asked.why),
    )


@router.post("/{org}/reopen", **acts("organisation.close"))
def reopen(once: OnceDep, org: Org) -> OrganisationTold:
    """Let a closed one in again."""
    return once.do(
        OrganisationTold,
        None,
        lambda tx: services.reopen(tx, once.platform, once.actor, org),
    )
