"""Where a job could ever run as the machines stand, or the one reason why it can run nowhere.

Decides by leaving nodes out in a fixed order (the offer's choice, size, isolation, failures, fences, listing): the
reason is the step that leaves none. What is merely in use now is no reason here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ouvrage.placement.places import Changes, Group, Room, lack
from ouvrage.placement.snapshot import Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """``groups`` of rooms, or a ``code`` of ``why.WORDS`` with its figures."""

    groups: tuple[Group, ...] = ()
    code: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rooms(self) -> Iterator[Room]:
        """All the rooms."""
        return (room for group in self.groups for room in group.rooms)


def reach(
    needs: Needs, not_on: tuple[str, ...], groups: Sequence[Group], changes: Changes
) -> Reach:
    """The rooms that are large enough when nothing runs in them, and open to this job."""
    left = groups
    if needs.nodes:
        left = _only(groups, lambda node: node in needs.nodes, changes)
    if not left:
        return Reach(code="placement/not-here" if groups else "placement/no-nodes")
    large = [group for group in left if group.rooms[0].built.model_for(needs) is not None]
    if not large:
        return _too_large(needs, left)
    isolating = [group for group in large if needs.isolation in group.rooms[0].node.isolations]
    if not isolating:
        return Reach(code="placement/isolation", detail={"isolation": needs.isolation})
    sound = isolating
    if not_on:
        sound = _only(isolating, lambda node: node not in not_on, changes)
    if not sound:
        return Reach(code="placement/failed-everywhere", detail=_nodes(isolating))
    unfenced = [group for group in sound if _unfenced(group.rooms[0], needs)]
    if not unfenced:
        return Reach(code="placement/fenced", detail=_nodes(sound))
    listed = tuple(group for group in unfenced if group.rooms[0].node.listed)
    if not listed:
        return Reach(code="placement/unlisted", detail=_nodes(unfenced))
    return Reach(groups=listed)


def _only(groups: Sequence[Group], wanted: Callable[[str], bool], changes: Changes) -> list[Group]:
    kept = ([room for room in group.rooms if wanted(room.node.node)] for group in groups)
    return [Group(rooms, changes) for rooms in kept if rooms]


def _unfenced(room: Room, needs: Needs) -> bool:
    return not room.node.fenced and room.whole.model_for(needs) is not None


def _nodes(groups: Sequence[Group]) -> Mapping[str, int]:
    return {"nodes": sum(len(group.rooms) for group in groups)}


def _too_large(needs: Needs, groups: Sequence[Group]) -> Reach:
    short = lack(needs, [group.rooms[0].built for group in groups])
    if short is None:
        return Reach(code="placement/never-together")
    gpu = {"gpu": needs.gpu} if short.resource == "gpu" and needs.gpu else {}
    detail = {"resource": short.resource, "needed": short.needed, "most": short.most, **gpu}
    return Reach(code="placement/never-fits", detail=detail)
