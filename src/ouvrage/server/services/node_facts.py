"""A node tells about itself: verdicts of its checks, what its kernel said, what it is made of, which rung it climbed.

Decides that a node speaks of itself alone, in kinds that are a node's to state; how it stands, and who fences it, is the
server's to say. What comes again counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY
from ouvrage.health.ladder import AUTOMATIC
from ouvrage.health.states import AUTOMATION
from ouvrage.ledger.admission import admit
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import read
from ouvrage.metering.exchange import Exported
from ouvrage.model.health import (
    ACTIONS,
    FENCES,
    VERDICTS,
    HealthEvent,
    NodeCertificate,
    NodeInventory,
    NodePatched,
    Remedy,
    Verdict,
)
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import unreadable
from ouvrage.server.services.meant import node_meant
from ouvrage.server.wakes import HEALTH
from ouvrage.store.platform.machines import NodeRow
from ouvrage.store.store import Outcome
from ouvrage.wire.facts import ConflictTold
from ouvrage.wire.health import NodeFactsTaken

SUBJECT = "node:"
"""How the subject of such a file begins."""

STATES_OF_A_NODE = (Verdict, HealthEvent, NodeInventory, NodeCertificate, NodePatched, Remedy)
"""What a node may state."""

_LONGEST_BOOT_US = 100 * 366 * DAY
_KINDS = frozenset(kind.KIND for kind in STATES_OF_A_NODE)


def receive(platform: Platform, actor: Actor, exported: Exported) -> NodeFactsTaken:
    """Record what a node says of itself. Raises ``OuvrageError`` with nothing recorded."""
    with platform.reading() as connection:
        node = node_meant(connection, actor.id)
    for number, fact in enumerate(exported.facts, 1):
        admit(fact)
        found = _fault(fact, node, platform.source)
        if found is not None:
            raise _refused(f"fact {number} of {len(exported.facts)}, {fact.key}: {found}")
    with platform.writing() as tx:
        outcomes = tx.append(exported.facts)
    with platform.reading() as connection, platform.health.at(connection) as record:
        epoch = record.machine(node.node).moves
    platform.wakes.tell(HEALTH)
    return _taken(node, exported.facts, outcomes, epoch)


def _fault(fact: Fact, node: NodeRow, own_source: str) -> str | None:
    """What is wrong with one fact."""
    if fact.kind not in _KINDS:
        return f"facts of the kind {fact.kind} are not a node's to state"
    if fact.source == own_source:
        return "its source is the platform itself"
    if fact.corrects is not None:
        return "a node corrects nothing"
    value: Any = read(fact)
    own = (node.node, node.name)
    if getattr(value, "node", None) not in own or fact.subject.removeprefix(SUBJECT) not in own:
        return "it is about another node"
    if isinstance(value, Verdict):
        return _verdict_fault(value)
    return _remedy_fault(value) if isinstance(value, Remedy) else None


def _verdict_fault(said: Verdict) -> str | None:
    if said.verdict not in VERDICTS or not {said.action, said.at_drain} <= {*ACTIONS} or said.fence not in FENCES:  # fmt: skip
        return "it uses words that no verdict has"
    if not said.boot or not 0 <= said.since_us <= _LONGEST_BOOT_US or said.epoch < 0:
        return "no boot can have seen that"
    return None


def _remedy_fault(said: Remedy) -> str | None:
    """A node tells what it climbed by itself: a person's work, and whether it helped, are not its to say."""
    if said.rung not in AUTOMATIC or said.outcome not in ("waiting", "done", "failed", "refused"):
        return "it is no rung that a node climbs"
    if said.by != AUTOMATION or said.dry_run or said.verified is not None:
        return "it says what others did or found"
    return None


def _refused(found: str) -> OuvrageError:
    return unreadable(
        "node/facts",
        f"these facts can't be taken: {found}",
        hint="a node sends verdicts, events, inventories, certificates, patches and remedies of its own",
        field="facts",
    )


def _taken(
    node: NodeRow, facts: Sequence[Fact], outcomes: Sequence[Outcome], epoch: int
) -> NodeFactsTaken:
    by_key = {outcome.key: outcome for outcome in outcomes}
    results = [by_key[fact.key].result for fact in facts]
    return NodeFactsTaken(
        node=node.node,
        name=node.name,
        accepted=results.count("accepted"),
        exists=results.count("exists"),
        conflict=results.count("conflict"),
        results=results,
        conflicts=[
            ConflictTold(fact=each.key, field=each.field or "")
            for each in outcomes
            if each.result == "conflict"
        ],
        epoch=epoch,
    )
