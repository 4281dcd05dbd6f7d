"""Which projects somebody's lists show.

Decides from the roles alone: a role in a whole organisation shows all of its projects, one in a project shows that.
"""

from __future__ import annotations

from ouvrage.server.authorise import is_owner_side
from ouvrage.server.context import Actor


def projects_seen(actor: Actor) -> frozenset[str] | None:
    """The projects to which somebody's lists are kept; None where their organisations say it all.

    Somebody with a role in a whole organisation and one in another's project sees, in lists, all of the first and that project.
    """
    held = actor.memberships
    if is_owner_side(actor) or any(each.project is None for each in held):
        return None
    return frozenset(each.project for each in held if each.project)
