"""Nodes: how they join, what stands on them, and what is withheld of them.

Decides that a one-time token enrols one node; that a name which is taken is refused unless the token was made for just that node (it lost
its key: it gets another, and its old one ends); that several may fence a node, each for themselves; and that an unlisted node shows when it
will be empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ouvrage.base.ids import code_of
from ouvrage.health.glance import Standings, standings_of
from ouvrage.model.machines import FenceSet, NodeListed
from ouvrage.model.selling import Placed
from ouvrage.placement.snapshot import Lease, Running
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.credentials import new_secret, presented, proves
from ouvrage.server.errors import conflict, unreadable, who_are_you
from ouvrage.server.recording import record, stated
from ouvrage.server.services.meant import node_meant
from ouvrage.server.services.runner import seen_of
from ouvrage.server.services.snapshots import under_way
from ouvrage.store.platform.machines import (
    FenceRow,
    NodeRow,
    RunnerRow,
    all_runners,
    fences_held,
    node_called,
    nodes_after,
    put_node,
    put_runner,
    set_fence,
)
from ouvrage.store.platform.people import (
    EnrolmentRow,
    NodeKeyRow,
    add_enrolment,
    add_node_key,
    enrolment_of,
    enrolment_used,
    revoke_node_keys,
)
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.runner import Enrol, Enrolled
from ouvrage.wire.work import (
    DeviceTold,
    EnrolmentMade,
    FenceTold,
    NewEnrolment,
    NewFence,
    NewListing,
    NodeTold,
)

T = TypeVar("T")


def enrolment(
    tx: Transaction, platform: Platform, actor: Actor, asked: NewEnrolment
) -> EnrolmentMade:
    """A one-time token for a node's runner."""
    authorise(actor, "node.enrol", org=None)
    again = None if asked.node is None else node_meant(tx.connection, asked.node)
    secret = new_secret(platform, "enrolment")
    expires_us = tx.now_us + platform.settings.enrolment_us
    add_enrolment(
        tx.connection,
        EnrolmentRow(
            enrolment=secret.id,
            hash=secret.hash,
            created_us=tx.now_us,
            expires_us=expires_us,
            used_us=None,
            node=again.node if again else None,
        ),
    )
    detail = f"again: {again.name}" if again else ""
    record(tx, platform, actor, "node.enrol", org=None, target=secret.id, detail=detail)
    return EnrolmentMade(enrolment=secret.id, secret=secret.text, expires_us=expires_us)


def enrol(platform: Platform, asked: Enrol, address: str | None) -> Enrolled:
    """A runner joins with its one-time token, and gets a key of its own."""
    shown = presented(asked.token)
    if shown is None or shown.kind != "enrolment":
        raise who_are_you("that is no token to enrol with")
    with platform.writing() as tx:
        row = enrolment_of(tx.connection, shown.id)
        if row is None or not proves(shown, row.hash) or row.expires_us <= tx.now_us:
            raise who_are_you("that token to enrol with is not known, or its hour is over")
        node = _node_id(tx.connection, platform, asked.inventory.name, row.node)
        if not enrolment_used(tx.connection, shown.id, node, tx.now_us):
            raise who_are_you("that token to enrol with was used before")
        return _joined(tx, platform, asked, node, address)


def _node_id(connection: Connection, platform: Platform, name: str, again: str | None) -> str:
    there = node_called(connection, name)
    if there is None and again is None:
        return platform.ids()
    if there is not None and there.node == again:
        return there.node
    raise conflict(
        "node/name-taken" if there else "node/other-name",
        f"{name} is another node than the token was made for",
        hint="for a node that lost its key: ouvrage node enrol --again NAME; else choose another name",
        field="inventory.name",
    )


def _joined(
    tx: Transaction, platform: Platform, asked: Enrol, node: str, address: str | None
) -> Enrolled:
    before = node_called(tx.connection, node)
    seen = seen_of(node, asked.inventory)
    put_node(
        tx.connection,
        NodeRow(
            seen=seen,
            listed=before.listed if before else True,
            enrolled_us=before.enrolled_us if before else tx.now_us,
        ),
    )
    put_runner(
        tx.connection,
        RunnerRow(
            node=node, sequence=0, seen_us=tx.now_us, present_us=tx.now_us, told_us=tx.now_us
        ),
    )
    key = new_secret(platform, "node key")
    revoke_node_keys(tx.connection, node, tx.now_us)
    add_node_key(
        tx.connection,
        NodeKeyRow(
            node_key=key.id, node=node, hash=key.hash, created_us=tx.now_us, revoked_us=None
        ),
    )
    actor = Actor(kind="node", id=node, login=f"node:{seen.name}", address=address)
    fact = stated(platform, seen, subject=f"node:{seen.name}", at_us=tx.now_us)
    record(tx, platform, actor, "node.joined", org=None, target=node, facts=(fact,))
    return Enrolled(node=node, key=key.text)


def fence(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: NewFence
) -> NodeTold:
    """Hold a node or a device back, or let go."""
    authorise(actor, "node.change", org=None)
    node = node_meant(tx.connection, name)
    if asked.device is not None and asked.device not in {d.device for d in node.seen.devices}:
        raise unreadable(
            "node/device",
            f"{node.name} has no device {asked.device}",
            hint="ouvrage node show lists its devices",
            field="device",
        )
    stated_fence = FenceSet(
        node=node.node,
        device=asked.device,
        holder=asked.holder,
        held=asked.held,
        why=asked.why,
        by=actor.login,
    )
    if set_fence(tx.connection, stated_fence, tx.now_us):
        fact = stated(platform, stated_fence, subject=f"node:{node.name}", at_us=tx.now_us)
        action = "node.fence" if asked.held else "node.unfence"
        detail = f"{asked.device or 'all of it'}: {asked.why}"
        record(
            tx, platform, actor, action, org=None, target=node.node, detail=detail, facts=(fact,)
        )
    return told(tx.connection, platform, tx.now_us, node)


def listing(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: NewListing
) -> NodeTold:
    """Whether a node takes new leases; what runs there runs on."""
    authorise(actor, "node.change", org=None)
    node = node_meant(tx.connection, name)
    if node.listed != asked.listed:
        node = NodeRow(seen=node.seen, listed=asked.listed, enrolled_us=node.enrolled_us)
        put_node(tx.connection, node)
        listed_fact = NodeListed(node=node.node, listed=asked.listed, why=asked.why, by=actor.login)
        fact = stated(platform, listed_fact, subject=f"node:{node.name}", at_us=tx.now_us)
        action = "node.list" if asked.listed else "node.unlist"
        record(
            tx, platform, actor, action, org=None, target=node.node, detail=asked.why, facts=(fact,)
        )
    return told(tx.connection, platform, tx.now_us, node)


def shown(platform: Platform, actor: Actor, name: str) -> NodeTold:
    """A node as it stands."""
    authorise(actor, "node.read", org=None)
    with platform.reading() as connection:
        return told(connection, platform, platform.clock(), node_meant(connection, name))


def listed(platform: Platform, actor: Actor, *, after: str, limit: int) -> list[NodeTold]:
    """The nodes after a name, one more than ``limit`` where more follow."""
    authorise(actor, "node.read", org=None)
    with platform.reading() as connection:
        rows = nodes_after(connection, after, limit + 1)
        return _all_told(connection, platform, platform.clock(), rows)


def told(connection: Connection, platform: Platform, now_us: int, row: NodeRow) -> NodeTold:
    """A node with what stands on it."""
    return _all_told(connection, platform, now_us, [row])[0]


def _all_told(
    connection: Connection, platform: Platform, now_us: int, rows: Sequence[NodeRow]
) -> list[NodeTold]:
    world = world_of(connection, platform, now_us)
    with platform.health.at(connection) as record:
        return [_told(world, row, standings_of(record, row.node)) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What stands on the nodes at a moment, by node. Attempts ``inside`` a lease of a term take none of their node's room."""

    now_us: int
    away_us: int
    runners: Mapping[str, RunnerRow]
    fences: Mapping[str, Sequence[FenceRow]]
    leases: Mapping[str, Sequence[Lease]]
    running: Mapping[str, Sequence[Running]]

    def here(self, node: str) -> bool:
        """Whether its runner is heard."""
        runner = self.runners.get(node)
        return runner is not None and runner.seen_us >= self.now_us - self.away_us

    def loose(self, node: str) -> list[Running]:
        """The attempts of a node that are in no lease of a term."""
        inside = {each.lease for each in self.leases.get(node, ())}
        return [each for each in self.running.get(node, ()) if each.lease not in inside]

    def taken(self, node: str) -> list[Placed]:
        """What is held of a node."""
        return [each.placed for each in (*self.leases.get(node, ()), *self.loose(node))]


def world_of(connection: Connection, platform: Platform, now_us: int) -> World:
    """What stands on all nodes."""
    leases, running = under_way(connection)
    return World(
        now_us=now_us,
        away_us=platform.limits.away_us,
        runners=all_runners(connection),
        fences=_by_node((each.node, each) for each in fences_held(connection)),
        leases=_by_node((each.placed.node, each) for each in leases),
        running=_by_node((each.placed.node, each) for each in running),
    )


def _by_node(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for node, each in pairs:
        found.setdefault(node, []).append(each)
    return found


def _told(world: World, row: NodeRow, health: Standings) -> NodeTold:
    seen, runner = row.seen, world.runners.get(row.node)
    leases, running = world.leases.get(row.node, ()), world.running.get(row.node, ())
    loose, taken = world.loose(row.node), world.taken(row.node)
    held = world.fences.get(row.node, ())
    ends = [*(each.until_us for each in leases), *(each.ends_by_us for each in loose)]
    last = max((us for us in ends if us is not None), default=None)
    return NodeTold(
        node=row.node,
        code=code_of(row.node),
        name=row.name,
        state="here" if world.here(row.node) else "away",
        seen_us=runner.seen_us if runner else None,
        listed=row.listed,
        fences=[
            FenceTold(device=f.device, holder=f.holder, why=f.why, since_us=f.since_us)
            for f in held
        ],
        cpus=len(seen.cpus),
        cpus_free=len(seen.cpus) - sum(len(each.cpus) for each in taken),
        memory_mib=seen.memory_mib,
        memory_free_mib=seen.memory_mib - sum(each.memory_mib for each in taken),
        disk_mib=seen.disk_mib,
        disk_free_mib=seen.disk_mib - sum(each.disk_mib for each in taken),
        devices=_devices(world, row, health),
        isolations=list(seen.isolations),
        cgroup=seen.cgroup,
        version=seen.version,
        enrolled_us=row.enrolled_us,
        attempts=len(running),
        leases=len(leases),
        empty_us=None if None in ends else last,
        empty=not taken,
        health=health.worst,
        health_why=health.why,
        health_since_us=health.since_us,
    )


def _devices(world: World, row: NodeRow, health: Standings) -> list[DeviceTold]:
    fenced = {each.device for each in world.fences.get(row.node, ())}
    whole = None in fenced or not world.here(row.node)
    running = world.running.get(row.node, ())
    leases = {d: e.lease for e in world.leases.get(row.node, ()) for d in e.placed.devices}
    attempts = {d: each.attempt for each in running for d in each.placed.devices}
    leases |= {d: each.lease for each in running for d in each.placed.devices}
    return [
        DeviceTold(
            device=d.device,
            slot=d.slot,
            model=d.model,
            memory_mib=d.memory_mib,
            fenced=whole or d.device in fenced,
            lease=leases.get(d.device),
            attempt=attempts.get(d.device),
            health=health.states.get(d.device, health.own),
        )
        for d in row.seen.devices
    ]
