"""What must hold over the facts about health: moves follow one another, remedies are of the ladder.

Decides from the order in which facts were recorded; what a machine is made of has one part in a place. A move begins in the state that the one before ended in, with the
next epoch; nothing that was only said was verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ouvrage.health.blame import BLAMES, UNKNOWN
from ouvrage.health.parts import KINDS
from ouvrage.health.states import MOVES
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.law_book import where_of
from ouvrage.ledger.laws import Law
from ouvrage.ledger.view import in_force
from ouvrage.model.builds import PatchPlan
from ouvrage.model.health import (
    ACTIONS,
    OUTCOMES,
    RUNGS,
    VERDICTS,
    JobBlamed,
    MaintenanceWindow,
    NodeInventory,
    Remedy,
    RepairStep,
    StateMove,
    Verdict,
)

STEPPED = ("done", "skipped", "failed")
Found = Iterator[tuple[str, str]]


def _told(records: Sequence[Recorded], kind: str) -> Iterator[tuple[Recorded, object]]:
    ours = [entry for entry in records if entry.fact.kind == kind]
    for entry in sorted(in_force(ours), key=lambda entry: entry.seq):
        yield entry, read(entry.fact)


def _moves(records: Sequence[Recorded]) -> Found:
    at: dict[tuple[str, str | None], tuple[str, int]] = {}
    for entry, move in _told(records, StateMove.KIND):
        if not isinstance(move, StateMove):
            continue
        place = (move.node, move.device)
        state, epoch = at.get(place, (move.from_state, 0))
        if move.from_state != state:
            yield where_of(entry), f"goes from {move.from_state}, and it was {state}"
        if move.epoch != epoch + 1:
            yield where_of(entry), f"has epoch {move.epoch}, and {epoch + 1} is next"
        if move.from_state not in MOVES or move.to_state not in MOVES:
            yield where_of(entry), f"names no state: {move.from_state}, {move.to_state}"
        if not move.actor or not move.reason:
            yield where_of(entry), "has no actor or no reason"
        at[place] = (move.to_state, move.epoch)


def _verdicts(records: Sequence[Recorded]) -> Found:
    for entry, verdict in _told(records, Verdict.KIND):
        if not isinstance(verdict, Verdict):
            continue
        if verdict.verdict not in VERDICTS or verdict.action not in ACTIONS:
            yield where_of(entry), f"says {verdict.verdict}, {verdict.action}"


def _remedies(records: Sequence[Recorded]) -> Found:
    for entry, remedy in _told(records, Remedy.KIND):
        if not isinstance(remedy, Remedy):
            continue
        if remedy.rung not in RUNGS or remedy.outcome not in OUTCOMES:
            yield where_of(entry), f"is no rung or has no outcome: {remedy.rung}, {remedy.outcome}"
        if remedy.dry_run and remedy.verified is not None:
            yield where_of(entry), "was only said, and yet verified"
        if remedy.verified and remedy.outcome != "done":
            yield where_of(entry), f"was {remedy.outcome}, and yet found to have helped"


def _hands(records: Sequence[Recorded]) -> Found:
    for entry, step in _told(records, RepairStep.KIND):
        if isinstance(step, RepairStep) and (
            step.rung not in RUNGS or step.outcome not in STEPPED or not step.by
        ):
            yield where_of(entry), f"is a step that nobody can have walked: {step.outcome}"
    for entry, window in _told(records, MaintenanceWindow.KIND):
        if isinstance(window, MaintenanceWindow) and (
            window.to_us <= window.from_us or not window.by
        ):
            yield where_of(entry), "is a window that does not end after it begins, or nobody's"


def _blames(records: Sequence[Recorded]) -> Found:
    for entry, blame in _told(records, JobBlamed.KIND):
        if not isinstance(blame, JobBlamed):
            continue
        if blame.cause not in BLAMES or not 0 <= blame.percent <= 100:
            yield where_of(entry), f"says {blame.cause}, {blame.percent} % sure"
        if blame.cause != UNKNOWN and not blame.evidence:
            yield where_of(entry), "blames somebody on no evidence"


def _inventories(records: Sequence[Recorded]) -> Found:
    for entry, found in _told(records, NodeInventory.KIND):
        if not isinstance(found, NodeInventory):
            continue
        places = Counter((part.kind, part.slot) for part in found.parts)
        for (kind, slot), many in places.items():
            if many > 1:
                yield where_of(entry), f"has {many} parts of kind {kind} in one place, {slot}"
        for kind in {part.kind for part in found.parts} - set(KINDS):
            yield where_of(entry), f"has a part of no known kind: {kind}"


def _plans(records: Sequence[Recorded]) -> Found:
    for entry, plan in _told(records, PatchPlan.KIND):
        if isinstance(plan, PatchPlan) and plan.begins_us >= plan.ends_us:
            yield where_of(entry), "has a window that ends before it begins"


LAWS = (
    Law(
        name="health/moves",
        statement="a move of health begins where the one before ended, with the next epoch, an actor and a reason",
        check=_moves,
    ),
    Law(
        name="health/verdicts",
        statement="a verdict and the action it asks for are of the known words",
        check=_verdicts,
    ),
    Law(
        name="health/inventories",
        statement="a machine has one part of a kind in a place, and parts of known kinds alone",
        check=_inventories,
    ),
    Law(
        name="health/plans",
        statement="the window of a patch plan begins before it ends",
        check=_plans,
    ),
    Law(
        name="health/remedies",
        statement="a remedy is a rung of the ladder; one that was not done did not help, one that was only said was not verified",
        check=_remedies,
    ),
    Law(
        name="health/hands",
        statement="a step of a repair and a window of maintenance are somebody's, and can have been",
        check=_hands,
    ),
    Law(
        name="health/blame",
        statement="whoever is blamed for a job's end is blamed on evidence, so sure as can be",
        check=_blames,
    ),
)
