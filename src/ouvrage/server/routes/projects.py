"""``/v1/projects``: where an organisation's work is kept apart.

A project is named by its id, or by its name where only one that the asker may see has it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from ouvrage.server.access import OnceDep, PageDep, PlatformDep, UserDep, acts, cut
from ouvrage.server.services import projects as services
from ouvrage.wire.api import ChangeProject, Listed, NewProject, ProjectTold

router = APIRouter(prefix="/v1/projects", tags=["projects"])
ProjectName = Annotated[str, Path(max_length=63, description="An id, or a name that is unique.")]
OfOrg = Annotated[str | None, Query(max_length=63, description="An organisation's id or name.")]


@router.get("", **acts("project.read"))
def listed(
    platform: PlatformDep, actor: UserDep, page: PageDep, org: OfOrg = None
) -> Listed[ProjectTold]:
    """The projects that one may see."""
    rows = services.listed(platform, actor, org, page.after, page.limit + 1)
    items, after = cut(rows, page, lambda row: row.project)
    return Listed(items=list(items), next=after)


@router.post("", **acts("project.create", status=201))
def create(once: OnceDep, asked: NewProject) -> ProjectTold:
    """A new project."""
    return once.do(
        ProjectTold, asked, lambda tx: services.create(tx, once.platform, once.actor, asked)
    )


@router.get("/{project}", **acts("project.read"))
def one(platform: PlatformDep, actor: UserDep, project: ProjectName) -> ProjectTold:
    """One project."""
    return services.one(platform, actor, project)


@router.patch("/{project}", **acts("project.change"))
def change(once: OnceDep, project: ProjectName, asked: ChangeProject) -> ProjectTold:
    """What is said of it from now on."""
    return once.do(
        ProjectTold,
        asked,
        lambda tx: services.change(tx, once.platform, once.actor, project, asked),
    )
