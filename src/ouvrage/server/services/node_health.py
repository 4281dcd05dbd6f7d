"""A node's health for those who keep it running, what it is to do about itself, and what a person did about it.

Decides that a person's steps and decisions are recorded as theirs, under the epoch in which they were made, and that a rung which they
say was done is verified before anything is free. What follows is ``health/response``'s.
"""

from __future__ import annotations

from typing import Any

from ouvrage.adapters.health_owner import owner_in
from ouvrage.adapters.health_tables import thresholds
from ouvrage.base.time import DAY, MINUTE
from ouvrage.health import by_hand
from ouvrage.health.account import account_of, account_plain
from ouvrage.health.by_hand import ByHand, called_off, facts_of
from ouvrage.health.owner import Owner
from ouvrage.health.record import HealthRecord
from ouvrage.health.response import respond
from ouvrage.health.situation import Situation
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.meant import node_meant
from ouvrage.store.platform.claims import moments, note_moment
from ouvrage.store.platform.machines import NodeRow
from ouvrage.store.platform.work import open_attempts
from ouvrage.store.transaction import Transaction
from ouvrage.wire.health import (
    NewMaintenance,
    NewRepair,
    NodeDuties,
    NodeHealthTold,
    RungOrdered,
)

WATCH = "watch:"
"""Before a node's id: the name under which it is noted when its watch asked."""
_NOTED_US = MINUTE


def duties(platform: Platform, actor: Actor, owner: Owner) -> NodeDuties:
    """What a node is to climb by itself now, and what its checks are to verify."""
    node, now_us = actor.id, platform.clock()
    watched(platform, node)
    with platform.reading() as connection, platform.health.at(connection) as known:
        busy = frozenset(
            (each.node, device)
            for each in open_attempts(connection)
            for device in (each.placed.devices or (None,))
        )
        observed = known.machine(node).name in owner.observed
        situation = Situation(
            record=known, nodes=frozenset({node}), busy=busy, turned_on=owner.turned_on,
            observed=frozenset({node} if observed else ()),
        )  # fmt: skip
        found = respond(situation, now_us, thresholds())
        verify = [
            device
            for (owner, device), standing in known.standings.items()
            if owner == node and standing.state == "verifying"
        ]
        return NodeDuties(
            node=node,
            epoch=known.machine(node).moves,
            ordered=[
                RungOrdered(
                    device=each.place[1], rung=each.rung, epoch=each.epoch, code=each.code,
                    why=each.why, beside=list(each.beside),
                )
                for each in found.ordered
                # What would only follow from a move that is not recorded yet is not ordered yet.
                if known.standing(each.place).epoch == each.epoch
            ],
            verify=verify,
        )  # fmt: skip


def watched(platform: Platform, node: str) -> None:
    """A node's watch has asked: note it, once in a while. Of one that never asks, silence says nothing."""
    name, now_us = f"{WATCH}{node}", platform.clock()
    with platform.reading() as connection:
        before = moments(connection, name).get("", 0)
    if not before <= now_us < before + _NOTED_US:
        with platform.writing() as tx:
            note_moment(tx.connection, name, tx.now_us)


def told(platform: Platform, actor: Actor, name: str, days: int) -> NodeHealthTold:
    """A node's health over the last days."""
    authorise(actor, "node.read", org=None)
    now_us = platform.clock()
    with platform.reading() as connection:
        node = node_meant(connection, name)
        with platform.health.at(connection) as known:
            return _told(platform, known, node, now_us - days * DAY, now_us)


def _told(
    platform: Platform, known: HealthRecord, node: NodeRow, from_us: int, now_us: int
) -> NodeHealthTold:
    account = account_of(
        known, node.node, from_us, now_us, owner_in(platform.state_dir), thresholds()
    )
    plain: dict[str, Any] = account_plain(account)
    return NodeHealthTold(node=node.node, name=node.name, told=plain)


def repair(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: NewRepair
) -> NodeHealthTold:
    """Record a step that a person walked, how a rung ended, or where they put a node."""
    authorise(actor, "node.change", org=None)
    node = node_meant(tx.connection, name)
    if asked.device is not None and asked.device not in {d.device for d in node.seen.devices}:
        raise unreadable(
            "node/device", f"{node.name} has no device {asked.device}",
            hint="ouvrage node show lists its devices", field="device",
        )  # fmt: skip
    with platform.health.at(tx.connection) as known:
        said = ByHand(
            place=(node.node, asked.device), rung=asked.rung, by=actor.login, number=asked.number,
            step=asked.step, stepped=asked.stepped, outcome=asked.outcome, state=asked.state,
            note=asked.note,
        )  # fmt: skip
        values = facts_of(known, said, tx.now_us)
        facts = tuple(
            stated(
                platform, value, subject=f"node:{node.name}", at_us=tx.now_us, until_us=tx.now_us
            )
            for value in values
        )
        detail = " ".join(
            word for word in (asked.rung, asked.step, asked.stepped, asked.outcome, asked.state, asked.note) if word
        )  # fmt: skip
        record(
            tx, platform, actor, "node.repair", org=None, target=node.node, detail=detail,
            facts=facts,
        )  # fmt: skip
        return _told(platform, known, node, tx.now_us - 30 * DAY, tx.now_us)


def maintain(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: NewMaintenance
) -> NodeHealthTold:
    """Set a window of maintenance, or call one off."""
    authorise(actor, "node.change", org=None)
    node = node_meant(tx.connection, name)
    with platform.health.at(tx.connection) as known:
        window = (
            called_off(known, node.node, asked.cancel, actor.login)
            if asked.cancel is not None
            else by_hand.window(
                platform.ids(), node.node, asked.from_us, asked.to_us, asked.why, actor.login
            )
        )
        fact = stated(
            platform, window, subject=f"node:{node.name}", at_us=window.from_us,
            until_us=window.to_us,
        )  # fmt: skip
        action = "node.maintain" if asked.cancel is None else "node.maintain.cancel"
        record(
            tx, platform, actor, action, org=None, target=node.node, detail=window.why,
            facts=(fact,),
        )  # fmt: skip
        told = _told(platform, known, node, tx.now_us - 30 * DAY, tx.now_us)
    return told.model_copy(update={"told": {**told.told, "window": window.window}})
