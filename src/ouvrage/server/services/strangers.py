"""Whether a node is proven for strangers: its isolation tried out, its audit passed, no certificate that speaks against it.

Decides that work of people nobody knows is offered from proven nodes alone, and that a tenant's new work under such an offer waits
for an audit that has expired or failed since. An owner may override it with a reason, which is a fact; what is proved of a node comes
from the node, through whoever keeps it running.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ouvrage.adapters.audit_tables import audit_table, need_table
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY, HOUR
from ouvrage.health.certificates import Standing, longest_us, part_ids, standing
from ouvrage.ledger.facts import Fact
from ouvrage.ledger.kinds import read
from ouvrage.ledger.lines import read_fact_line
from ouvrage.ledger.view import in_force
from ouvrage.model.health import (
    CRITICAL,
    UNKNOWN,
    NodeAudited,
    NodeCertificate,
    NodeInventory,
)
from ouvrage.model.selling import OfferOverridden, OwnOffer
from ouvrage.placement.snapshot import Hold
from ouvrage.server.authorise import authorise, is_owner_side
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unreadable
from ouvrage.server.recording import audited
from ouvrage.server.services.meant import node_meant
from ouvrage.server.services.snapshots import Holds
from ouvrage.store.platform.machines import NodeRow, all_nodes, node_called
from ouvrage.store.platform.selling import offers_by_id
from ouvrage.store.platform.tenancy import owners_organisation
from ouvrage.store.platform.work import JobRow
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.work import NewOffer, NewProofs, ProofsTaken

PUBLIC = "public"
_AHEAD_US = HOUR
"""So far a node's clock may be ahead of the platform's."""
_MOST_SAID = 3
Kind = TypeVar("Kind")


def receive(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: NewProofs
) -> ProofsTaken:
    """Record certificates and audits of a node; each counts once."""
    authorise(actor, "node.change", org=None)
    node = node_meant(tx.connection, name)
    facts = [_proof(line, node, platform.source, tx.now_us) for line in asked.facts]
    outcomes = {outcome.key: outcome.result for outcome in tx.append(facts)}
    detail = ", ".join(fact.id for fact in facts)
    tx.note([audited(platform, actor, "node.prove", at_us=tx.now_us, org=None, target=node.node, detail=detail)])  # fmt: skip
    new = [fact for fact in facts if outcomes[fact.key] == "accepted"]
    return ProofsTaken(
        results=[outcomes[fact.key] for fact in facts],
        against=against(platform, node, "sandbox", tx.now_us, new),
    )


def _proof(line: str, node: NodeRow, own_source: str, now_us: int) -> Fact:
    """The fact on a line, if it is a proof about this node. ``Refused`` 422 else."""
    try:
        fact, _ = read_fact_line(line)
        value = read(fact)
    except (ValueError, OuvrageError) as error:
        raise _not_taken(f"a line is no fact: {error}") from error
    if not isinstance(value, NodeCertificate | NodeAudited):
        raise _not_taken(f"facts of the kind {fact.kind} are no proofs")
    own = value.certificate if isinstance(value, NodeCertificate) else value.audit
    if value.node not in (node.name, node.node):
        raise _not_taken(f"{own} is about {value.node}, not about {node.name}")
    named = (f"{fact.kind}/{own}", f"node:{value.node}", None)
    if fact.source == own_source or (fact.id, fact.subject, fact.corrects) != named:
        raise _not_taken(f"{own} is not named as a proof is")
    if fact.valid_from > now_us + _AHEAD_US:
        raise _not_taken(f"{own} is from the future: the machine's clock is ahead")
    return fact


def _not_taken(found: str) -> OuvrageError:
    return unreadable(
        "proof/not-taken",
        found,
        hint="ouvrage node audit --push, ouvrage node qualify --push, on the node itself",
        field="facts",
    )


def against(
    platform: Platform, node: NodeRow, isolation: str, now_us: int, more: Sequence[Fact] = ()
) -> list[str]:
    """What speaks against strangers' work on a node; ``more`` are facts that are about to be recorded."""
    words: list[str] = []
    if isolation not in node.seen.isolations:
        words.append(f"{node.name}: {isolation} is not proven there (ouvrage doctor --isolation)")
    audits = [value for _, value in _said(platform, node, NodeAudited, now_us, more)]
    if not audits:
        words.append(f"{node.name}: no audit is on record (ouvrage node audit --push)")
    elif audits[-1].verdict in (CRITICAL, UNKNOWN):
        bad = [each for each in audits[-1].results if each.verdict == audits[-1].verdict]
        words.append(f"{node.name}: its audit is {audits[-1].verdict}: {bad[0].reason if bad else 'nothing was looked at'}")  # fmt: skip
    elif audits[-1].expires_us <= now_us:
        words.append(f"{node.name}: its audit is too old (ouvrage node audit --push)")
    return [*words, *_certificates(platform, node, now_us, more)]


def _certificates(platform: Platform, node: NodeRow, now_us: int, more: Sequence[Fact]) -> list[str]:  # fmt: skip
    """A machine that was proved for nothing and failed at something is known to be bad; an unproved one is not."""
    held = {value.work_class: (at, value) for at, value in _said(platform, node, NodeCertificate, now_us, more)}  # fmt: skip
    made_of = _said(platform, node, NodeInventory, now_us, more)[-1:]
    found = [_standing(each, at, made_of, now_us) for at, each in held.values()]
    if not found or any(each.holds for each in found):
        return []
    worst = found[-1]
    why = f": {worst.reasons[0]}" if worst.reasons else ""
    return [f"{node.name}: its certificate for {worst.certificate.work_class} is {worst.state}{why}"]  # fmt: skip


def _standing(
    certificate: NodeCertificate, at_us: int, made_of: list[tuple[int, NodeInventory]], now_us: int
) -> Standing:
    """With the parts that the node told of since; those it had before are not what was proved."""
    for told_us, inventory in made_of:
        if told_us >= at_us:
            untold = frozenset(each.name for each in inventory.untold)
            return standing(certificate, part_ids(inventory.parts), now_us, untold)
    return standing(certificate, None, now_us)


def _said(
    platform: Platform, node: NodeRow, kind: type[Kind], now_us: int, more: Sequence[Fact]
) -> list[tuple[int, Kind]]:
    """What is on record of a node, under its name or its id, with its moment, in order of time.

    What is from the future does not count yet: it would be the last word on the node until then. No proof counts longer than one made
    by the tables may.
    """
    named: Any = kind
    subjects = dict.fromkeys((f"node:{node.name}", f"node:{node.node}"))
    entries = [e for s in subjects for e in platform.store.records(subject=s, kind=named.KIND)]
    facts = [*(each.fact for each in in_force(entries)), *(f for f in more if f.kind == named.KIND)]
    facts = [each for each in facts if each.valid_from <= now_us + _AHEAD_US]
    facts.sort(key=lambda fact: fact.valid_from)
    found = [(fact.valid_from, _bounded(read(fact), fact.valid_from)) for fact in facts]
    return [(at, value) for at, value in found if isinstance(value, kind)]


def _bounded(value: object, at_us: int) -> object:
    """A proof that ends when it may end at the latest."""
    if isinstance(value, NodeAudited):
        return replace(value, expires_us=min(value.expires_us, at_us + int(audit_table().valid_days * DAY)))  # fmt: skip
    if isinstance(value, NodeCertificate):
        return replace(value, expires_us=min(value.expires_us, at_us + longest_us(need_table().bounds)))  # fmt: skip
    return value


def proven_nodes(
    tx: Transaction, platform: Platform, asked: NewOffer, nodes: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The nodes that an offer is met from, and what an owner overrides with it.

    An offer to strangers that names no nodes is met from those that are proven now: one that joins later is not.
    ``Refused`` 409 where a node that is named, or every node, is not proven and nobody says ``anyway``.
    """
    if asked.audience != PUBLIC:
        return nodes, ()
    rows = [row for row in all_nodes(tx.connection) if not nodes or row.node in nodes]
    found = {row.node: against(platform, row, asked.isolation, tx.now_us) for row in rows}
    proven = tuple(node for node, words in found.items() if not words)
    if proven and (not nodes or len(proven) == len(nodes)):
        return proven, ()
    words = tuple(word for each in found.values() for word in each) or ("no node has joined",)
    if asked.anyway and asked.why.strip():
        return nodes, words
    raise _unproven(words)


def _unproven(words: Sequence[str]) -> OuvrageError:
    more = f"; and {len(words) - _MOST_SAID} more" if len(words) > _MOST_SAID else ""
    return conflict(
        "offer/unproven",
        f"nothing is offered to strangers from machines that are not proven for them: {'; '.join(words[:_MOST_SAID])}{more}",
        hint="prove them, or take it on yourself with a reason on record: --anyway --why TEXT; --audience tenants is for those you know",
        field="audience",
    )


def refuse_unproven(
    connection: Connection, platform: Platform, actor: Actor, terms: OwnOffer, now_us: int
) -> None:
    """Refuse a tenant's new work under an offer to strangers whose machines are no longer proven for them."""
    if not is_owner_side(actor) and _is_unproven(connection, platform, terms, now_us):
        raise conflict(
            "offer/unproven",
            _waits(terms),
            hint="what runs goes on; try again later, or another offer: ouvrage offer list",
            field="offer",
        )


def _waits(terms: OwnOffer) -> str:
    return f"{terms.name} takes no new work for now: its machines wait for an audit"


def _is_unproven(connection: Connection, platform: Platform, terms: OwnOffer, now_us: int) -> bool:
    """Whether an offer to strangers is met from machines that are not proven now, and nobody took that on themselves."""
    subject = f"offer:{terms.offer}"
    if terms.audience != PUBLIC or platform.store.records(
        subject=subject, kind=OfferOverridden.KIND
    ):
        return False
    rows = [row for node in terms.nodes if (row := node_called(connection, node)) is not None]
    return any(against(platform, row, terms.isolation, now_us) for row in rows)


def waits_for_proof(platform: Platform) -> Callable[[Connection, Sequence[JobRow], int], Holds]:
    """What keeps back tenants' jobs that waited already when the machines of their offer to strangers ceased to be proven."""

    def holds(connection: Connection, waiting: Sequence[JobRow], now_us: int) -> Holds:
        offers = offers_by_id(connection, {job.offer for job in waiting if job.offer})
        bad = {
            offer: _waits(row.terms)
            for offer, row in offers.items()
            if _is_unproven(connection, platform, row.terms, now_us)
        }
        if not bad:
            return {}
        own = owners_organisation(connection)
        return {
            job.job: [Hold(kind="held", words=bad[job.offer])]
            for job in waiting
            if job.offer in bad and (own is None or job.org != own.org)
        }

    return holds
