"""Why one job waits, with all the figures: what is missing where, who is ahead, when it can start at the latest and why.

Decides nothing: it makes the same plan and reads what led to it. A moment is given only where time limits bind it; where
they do not, it says what lacks one. What a tenant may not see of machines and of others' jobs stands in a part that is
the owner's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ouvrage.base.time import utc_text
from ouvrage.placement.decide import Plan, Planning
from ouvrage.placement.places import Room, asked
from ouvrage.placement.snapshot import Needs, Snapshot, Waiting
from ouvrage.placement.why import Why, amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One thing that the job needs, and the most of it that is free on one node it could run on."""

    resource: str
    needed: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNode:
    """A node the job could run on: what it lacks there now; ``kept`` says that it is kept for a job that is before.

    ``closed`` is the next window of maintenance, where the job would run into it if it started now.
    """

    node: str
    lacks: tuple[Missing, ...]
    kept: bool
    closed: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """``starts`` now, or ``why`` not. ``latest_us`` is the moment by which it can start (None: nothing bounds it),

    ``latest_why`` what that rests on. ``ahead`` counts jobs that are before it and wait too, ``ahead_own`` names its
    project's own among them. ``nodes`` are for the owner.
    """

    job: str
    starts: bool
    why: Why | None
    missing: tuple[Missing, ...]
    ahead: int
    ahead_own: tuple[str, ...]
    latest_us: int | None
    latest_why: str
    nodes: tuple[OnNode, ...]

    def as_json(self, *, owner: bool = False) -> dict[str, Any]:
        """The explanation as data; with the owner's part on request."""
        told: dict[str, Any] = {
            "job": self.job,
            "starts": self.starts,
            "why": self.why and self.why.as_json(owner=owner),
            "missing": [_missing_json(each) for each in self.missing],
            "ahead": self.ahead,
            "ahead_own": list(self.ahead_own),
            "latest": None if self.latest_us is None else utc_text(self.latest_us),
            "latest_why": self.latest_why,
        }
        if owner:
            told["nodes"] = [
                {
                    "node": each.node,
                    "lacks": [_missing_json(lack) for lack in each.lacks],
                    "kept": each.kept,
                    "maintenance": each.closed and [utc_text(at) for at in each.closed],
                }
                for each in self.nodes
            ]
        return told

    def lines(self) -> list[str]:
        """The explanation for a terminal: the answer first."""
        if self.why is None:
            return ["It starts now."]
        words = self.why.words
        lines = [f"It {words}." if words[0].islower() else f"{words}."]
        for each in self.missing:
            needed = amount(each.resource, each.needed)
            lines.append(f"  needs     {needed}; at most {each.free} free on one node")
        if self.ahead:
            own = f", {len(self.ahead_own)} of them your project's" if self.ahead_own else ""
            lines.append(f"  ahead     {self.ahead} in the queue{own}")
        at = "not known" if self.latest_us is None else utc_text(self.latest_us)
        return [*lines, f"  at latest {at}: {self.latest_why}"]


def _missing_json(missing: Missing) -> dict[str, Any]:
    return {"resource": missing.resource, "needed": missing.needed, "free": missing.free}


def explain(snapshot: Snapshot, job: str, now_us: int) -> Explanation | None:
    """Everything about one waiting job; None where no such job waits."""
    waiting = next((each for each in snapshot.waiting if each.job == job), None)
    if waiting is None:
        return None
    planning = Planning(snapshot, now_us)
    return explained(waiting, planning, planning.plan())


def explained(job: Waiting, planning: Planning, made: Plan) -> Explanation:
    """The same from a plan that was made already."""
    why = next((each for each in made.waits if each.job == job.job), None)
    place = next((n for n, b in enumerate(planning.blocked) if b.job.job == job.job), None)
    before = [b.job for b in planning.blocked[: place or 0]]
    rooms = tuple(planning.reach(job).rooms) if place is not None else ()
    latest, latest_why = _latest(job, planning, why)
    return Explanation(
        job=job.job,
        starts=why is None,
        why=why,
        missing=_missing(job.needs, rooms),
        ahead=len(before) if job.lease is None else _ahead_in_lease(why),
        ahead_own=tuple(each.job for each in before if each.project == job.project),
        latest_us=latest,
        latest_why=latest_why,
        nodes=tuple(
            OnNode(
                node=room.node.name,
                lacks=_missing(job.needs, (room,)),
                kept=planning.kept_for_another(room.node.node, job.job),
                closed=planning.closed(room, job),
            )
            for room in rooms
        ),
    )


def _ahead_in_lease(why: Why | None) -> int:
    return int(why.detail.get("ahead", 0)) if why else 0


def _missing(needs: Needs, rooms: tuple[Room, ...]) -> tuple[Missing, ...]:
    found: list[Missing] = []
    for resource, needed in asked(needs).items():
        free = max((room.free.of(resource, needs.gpu) for room in rooms), default=needed)
        if free < needed:
            found.append(Missing(resource=resource, needed=needed, free=max(0, free)))
    return tuple(found)


def _latest(job: Waiting, planning: Planning, why: Why | None) -> tuple[int | None, str]:
    if why is None:
        return planning.now_us, "it starts now"
    by = why.detail.get("by")
    if why.code == "placement/maintenance":
        return by or why.detail["to"], "the maintenance that it would run into is over then"
    if by is not None:
        where = "in its lease" if job.lease else "on the node that is kept for it"
        return (
            by,
            f"what is {where} has to end by then, and nothing may go before it that ends later",
        )
    if job.lease:
        return None, "work before it in the lease has no time limit, or has not started"
    if job.job in planning.promises:
        return (
            None,
            "nothing bounds what runs on the node that is kept for it: no time limit is set there",
        )
    if any(blocked.job.job == job.job for blocked in planning.blocked):
        return (
            None,
            "a node is kept only for the first jobs of the queue; jobs ahead of it have to start first",
        )
    return None, "something else than room keeps it back"
