"""What nodes, people and programs say to the server about the health of machines, and what it answers.

A node's facts about itself come to ``POST /v1/facts`` as a file of the form of ``ouvrage run export`` whose subject is ``node:NAME``; what it
is to do about itself it asks at ``GET /v1/runner/health``. Moments are microseconds UTC.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ouvrage.model.health import RUNGS, STATES
from ouvrage.wire.api import Answer, Words
from ouvrage.wire.facts import ConflictTold
from ouvrage.wire.runner import Message, Moment
from ouvrage.wire.work import Device

_OUTCOMES = ("done", "failed", "refused")
_STEPPED = ("done", "skipped", "failed")
Line = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


def _one_of(words: tuple[str, ...]) -> Any:
    return Field(pattern=f"^({'|'.join(words)})$")


class NodeFactsTaken(Answer):
    """Answer to a node's facts about itself. ``epoch`` is the one that its next verdicts are to name.

    ``results`` says ``accepted``, ``exists`` or ``conflict`` of each fact, in the order sent.
    """

    node: str
    name: str
    accepted: int
    exists: int
    conflict: int
    results: list[str]
    conflicts: list[ConflictTold]
    epoch: int


class RungOrdered(Answer):
    """A rung that a node is to climb by itself: for a ``device``, or null for all of it; ``epoch`` comes back with its remedy.

    ``beside`` are GPUs that are held back with it: a reset that would take any other along is refused.
    """

    device: str | None
    rung: str
    epoch: int
    code: str
    why: str
    beside: list[str] = Field(default_factory=list[str])


class NodeDuties(Answer):
    """``GET /v1/runner/health``: the epoch to name, what to climb, and what waits to be verified (null: all of the node)."""

    node: str
    epoch: int
    ordered: list[RungOrdered]
    verify: list[str | None]


class NewRepair(Message):
    """``POST /v1/nodes/{node}/repair``: a step of a runbook that a person walked, or how the rung ended, or a move.

    ``step`` with ``number`` and ``stepped``; or ``outcome`` of the whole rung; or ``state``, where the person decides.
    """

    device: Device | None = None
    rung: Annotated[str, _one_of(RUNGS)] = "person"
    number: Annotated[int, Field(ge=0, le=100)] = 0
    step: Line = ""
    stepped: Annotated[str, _one_of(_STEPPED)] | None = None
    outcome: Annotated[str, _one_of(_OUTCOMES)] | None = None
    state: Annotated[str, _one_of(STATES)] | None = None
    note: Line = ""


class NewMaintenance(Message):
    """``POST /v1/nodes/{node}/maintenance``: a window in which a node is out of service; ``cancel`` one by its id."""

    from_us: Moment = 0
    to_us: Moment = 0
    why: Words = ""
    cancel: Words | None = None


class NodeHealthTold(Answer):
    """A node's health: ``told`` is what ``ouvrage node health --json`` prints."""

    node: str
    name: str
    told: dict[str, Any]
