"""The states of a node or a device, and which move from which to which, by whom and on what grounds.

Decides that a move has an actor, a reason and, where automation makes it, evidence; that one decided under an older epoch
or seen in an older boot moves nothing; and that nothing becomes healthy again without having been verified,
unless an operator says so. Keeping a node from new work is ``fences``', what to try ``ladder``'s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ouvrage.model.health import STATES, StateMove

AUTOMATION, OPERATOR = "automation", "operator"

MOVES: dict[str, frozenset[str]] = {
    "healthy": frozenset({"suspect", "fenced", "unknown", "maintenance", "retired"}),
    "suspect": frozenset({"healthy", "fenced", "unknown", "maintenance", "retired"}),
    "fenced": frozenset({"draining", "verifying", "awaiting_hands", "maintenance", "retired"}),
    "draining": frozenset({"repairing", "verifying", "awaiting_hands", "maintenance", "retired"}),
    "repairing": frozenset({"verifying", "awaiting_hands", "maintenance", "retired"}),
    "verifying": frozenset({"healthy", "repairing", "awaiting_hands", "maintenance", "retired"}),
    "awaiting_hands": frozenset({"repairing", "verifying", "rma", "maintenance", "retired"}),
    "rma": frozenset({"verifying", "retired"}),
    "maintenance": frozenset({"verifying", "retired"}),
    "unknown": frozenset({"suspect", "fenced", "verifying", "maintenance", "retired"}),
    "retired": frozenset(),
}
"""Where each state may go. ``unknown`` is silence: it ends with being looked at, never with being healthy."""

BY_HAND = frozenset({"maintenance", "retired", "rma"})
"""States that a person alone puts something into."""

AWAY = frozenset(STATES) - {"healthy", "suspect"}
"""States in which nothing new is placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a node (``device`` None) or a device stands. ``past`` are boots that are over."""

    node: str
    device: str | None
    state: str
    boot: str
    epoch: int
    since_us: int
    past: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A move that somebody wants. ``boot`` is the one in which its evidence was seen, None where it is of no boot.

    ``epoch`` is the one under which it was decided. ``evidence`` are ids of facts.
    """

    to_state: str
    actor: str
    reason: str
    evidence: tuple[str, ...]
    boot: str | None
    epoch: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it stands now; the move, or why there was none."""

    standing: Standing
    move: StateMove | None
    why_not: str | None = None


def moved(standing: Standing, wish: Wish) -> Outcome:
    """Make a move, or say why not. The same wish again finds an older epoch and moves nothing."""
    why_not = _refused(standing, wish)
    if why_not is not None:
        return Outcome(standing=standing, move=None, why_not=why_not)
    after = replace(standing, state=wish.to_state, epoch=standing.epoch + 1, since_us=wish.at_us)
    move = StateMove(
        node=standing.node,
        device=standing.device,
        from_state=standing.state,
        to_state=wish.to_state,
        actor=wish.actor,
        reason=wish.reason,
        evidence=wish.evidence,
        epoch=after.epoch,
    )
    return Outcome(standing=after, move=move)


def _refused(standing: Standing, wish: Wish) -> str | None:
    if wish.epoch != standing.epoch:
        return f"decided under epoch {wish.epoch}, and it is {standing.epoch}"
    if wish.boot is not None and wish.boot != standing.boot:
        over = "an older boot" if wish.boot in standing.past else "a boot that is not known"
        return f"seen in {over}"
    if not wish.actor or not wish.reason.strip():
        return "a move has an actor and a reason"
    automatic = wish.actor == AUTOMATION
    if automatic and not wish.evidence:
        return "automation moves on evidence alone"
    if automatic and wish.to_state in BY_HAND:
        return f"a person alone decides on {wish.to_state}"
    by_hand = (
        not automatic
        and wish.to_state == "healthy"
        and standing.state not in ("retired", "healthy")
    )
    if wish.to_state not in MOVES[standing.state] and not by_hand:
        return f"from {standing.state} nothing goes to {wish.to_state}"
    return None


def booted(standing: Standing, boot: str) -> Standing:
    """The standing after a boot was heard of; one that is over, or still runs, changes nothing."""
    if boot == standing.boot or boot in standing.past:
        return standing
    past = (*standing.past, standing.boot) if standing.boot else standing.past
    return replace(standing, boot=boot, past=past)


def begun(node: str, device: str | None, boot: str, at_us: int) -> Standing:
    """How something stands that was never heard of: unknown, until it was looked at."""
    return Standing(node=node, device=device, state="unknown", boot=boot, epoch=0, since_us=at_us)
