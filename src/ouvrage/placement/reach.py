"""Where a job could ever run as the machines stand, or the one reason why it can run nowhere.

Decides by leaving nodes out in a fixed order (the offer's choice, size, isolation, failures, fences, listing): the
reason is the step that leaves none. What is merely in use now is no reason here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ouvrage.placement.places import Room, lack
from ouvrage.placement.snapshot import Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """``rooms`` by node, or a ``code`` of ``why.WORDS`` with its figures."""

    rooms: tuple[Room, ...] = ()
    code: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


def reach(needs: Needs, not_on: tuple[str, ...], rooms: Mapping[str, Room]) -> Reach:
    """The rooms that are large enough when nothing runs in them, and open to this job."""
    left = [room for room in rooms.values() if not needs.nodes or room.node.node in needs.nodes]
    if not left:
        return Reach(code="placement/not-here" if rooms else "placement/no-nodes")
    large = [room for room in left if room.built.model_for(needs) is not None]
    if not large:
        return _too_large(needs, left)
    isolating = [room for room in large if needs.isolation in room.node.isolations]
    if not isolating:
        return Reach(code="placement/isolation", detail={"isolation": needs.isolation})
    sound = [room for room in isolating if room.node.node not in not_on]
    if not sound:
        return Reach(code="placement/failed-everywhere", detail={"nodes": len(isolating)})
    unfenced = [
        room for room in sound if not room.node.fenced and room.whole.model_for(needs) is not None
    ]
    if not unfenced:
        return Reach(code="placement/fenced", detail={"nodes": len(sound)})
    listed = tuple(room for room in unfenced if room.node.listed)
    if not listed:
        return Reach(code="placement/unlisted", detail={"nodes": len(unfenced)})
    return Reach(rooms=listed)


def _too_large(needs: Needs, rooms: list[Room]) -> Reach:
    short = lack(needs, [room.built for room in rooms])
    if short is None:
        return Reach(code="placement/never-together")
    gpu = {"gpu": needs.gpu} if short.resource == "gpu" and needs.gpu else {}
    detail = {"resource": short.resource, "needed": short.needed, "most": short.most, **gpu}
    return Reach(code="placement/never-fits", detail=detail)
