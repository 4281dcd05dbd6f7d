"""``/v1/members``: who belongs to an organisation, and as what.

A member is named by id or login. Passwords of new ones are shown in the answer and kept nowhere.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.routes.projects import OfOrg
from ouvrage.server.services import members as services
from ouvrage.wire.api import Listed, MemberMade, MemberTold, NewMember

router = APIRouter(prefix="/v1/members", tags=["people"])
Member = Annotated[str, Path(max_length=140, description="A user's id or login.")]


@router.get("", **acts("member.read"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: OfOrg = None
) -> Listed[MemberTold]:
    """The members of an organisation."""
    rows = services.listed(platform, actor, org, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.login)
    return Listed(items=list(items), next=after)


@router.post("", **acts("member.create", status=201))
def create(once: OnceDep, asked: NewMember) -> MemberMade:
    """A role for somebody; a new person's password is shown this once."""
    return once.do(
        MemberMade, asked, lambda tx: services.create(tx, once.platform, once.actor, asked)
    )


@router.delete("/{member}", **acts("member.change"))
def end(
    once: OnceDep,
    member: Member,
    project: Annotated[str | None, Query(max_length=128)] = None,
) -> MemberTold:
    """Take every role, or the one in a project; without any, somebody is signed out everywhere."""
    return once.do(
        MemberTold,
        None,
        lambda tx: services.end(tx, once.platform, once.actor, member, project),
    )


@router.post("/{member}/password", **acts("member.password"))
def password(once: OnceDep, member: Member) -> MemberMade:
    """A new password, shown this once; their sessions and tokens end."""
    return once.do(
        MemberMade,
        None,
        lambda tx: services.reset_password(tx, once.platform, once.actor, member),
    )
