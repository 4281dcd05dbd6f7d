"""Proofs about a machine in this home: which machine is meant, how a proof is recorded, and how a platform is told.

Decides that a machine goes by the name it was given, else by the only one in the books, else by its host name; and that a
proof is a fact of this home first, whoever else is told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.home import source_id
from ouvrage.base.grades import Grade
from ouvrage.base.names import check_name
from ouvrage.books.proven import Owned
from ouvrage.cli.agent import host_name
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.ledger import opened
from ouvrage.cli.talking import talk
from ouvrage.health.record import Moved
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.ledger.lines import fact_line
from ouvrage.ledger.view import in_force
from ouvrage.model.health import NodeAudited, NodeCertificate, StateMove
from ouvrage.model.sites import Node

Kind = TypeVar("Kind")


def node_named(given: str | None) -> str:
    """The name of the machine that is meant."""
    if given is not None:
        check_name("node", given, "ouvrage node qualify rig-1 --for inference")
        return given
    names = {each.node for each in facts_of(Node)}
    if len(names) == 1:
        return names.pop()
    return host_name()


def facts_of(kind: type[Kind], as_of: int | None = None) -> list[Kind]:
    """What this home holds of a kind, in the order in which it was recorded."""
    with opened() as ledger:
        name: Any = kind
        entries = in_force(ledger.store.records(kind=name.KIND, as_of=as_of))
        return [value for each in entries if isinstance(value := read(each.fact), kind)]


def recorded(proof: NodeCertificate | NodeAudited, *, grade: Grade) -> Fact:
    """Record a proof in this home; the fact."""
    own = proof.certificate if isinstance(proof, NodeCertificate) else proof.audit
    with opened() as ledger:
        source, now = source_id(ledger.home), now_us()
        fact = fact_of(
            proof,
            source=source,
            id=f"{proof.KIND}/{own}",
            subject=f"node:{proof.node}",
            valid_from=now,
            valid_to=proof.expires_us,
            grade=grade,
        )
        ledger.store.append([fact], now_us=now, own_source=source)
    return fact


def push(node: str, facts: Sequence[Fact]) -> Any:
    """Tell the platform that a node is part of what was proved of it."""
    with talk() as server:
        return server.post(f"/v1/nodes/{node}/proofs", {"facts": [fact_line(f) for f in facts]})


def owned_node(node: str, channel: str | None, at_us: int) -> Owned | None:
    """The machine in its owner's books; None where they do not know it."""
    with opened() as ledger:
        record = books_of(ledger, None).record
    site = next((n.value.site for n in reversed(record.nodes) if n.value.node == node), None)
    held = None if site is None else record.site(site)
    if site is None or held is None:
        return None
    return Owned(
        record=record, node=node, site=site, currency=held.value.currency, channel=channel, at_us=at_us
    )  # fmt: skip


def moves_of(node: str) -> list[Moved]:
    """The moves between states that are on record of a machine and its devices."""
    with opened() as ledger:
        entries = in_force(ledger.store.records(kind=StateMove.KIND))
    return [
        Moved(id=each.fact.key, at_us=each.fact.valid_from, move=value)
        for each in entries
        if isinstance(value := read(each.fact), StateMove) and value.node == node
    ]
