"""A node's health for those who keep it running, what it is to do about itself, and what a person did about it.

Decides that a person's steps and decisions are recorded as theirs, under the epoch in which they were made, and that a rung which they
say was done is verified before anything is free. What follows is ``health/response``'s.
"""

from __future__ import annotations

from typing import Any

from ouvrage.adapters.health_owner import owner_in
from ouvrage.adapters.health_tables import thresholds
from ouvrage.base.time import DAY
from ouvrage.health.account import account_of, account_plain
from ouvrage.health.record import HealthRecord
from ouvrage.health.response import Situation, respond
from ouvrage.health.states import Wish, moved
from ouvrage.model.health import MaintenanceWindow, Remedy, RepairStep
from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict, unreadable
from ouvrage.server.recording import record, stated
from ouvrage.server.services.meant import node_meant
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

LONGEST_US = 366 * DAY


def duties(platform: Platform, actor: Actor, turned_on: frozenset[str]) -> NodeDuties:
    """What a node is to climb by itself now, and what its checks are to verify."""
    node, now_us = actor.id, platform.clock()
    with platform.reading() as connection, platform.health.at(connection) as known:
        busy = frozenset(
            (each.node, device)
            for each in open_attempts(connection)
            for device in (each.placed.devices or (None,))
        )
        situation = Situation(record=known, nodes=frozenset({node}), busy=busy, turned_on=turned_on)
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
                    why=each.why,
                )
                for each in found.ordered
                # What would only follow from a move that is not recorded yet is not ordered yet.
                if known.standing(each.place).epoch == each.epoch
            ],
            verify=verify,
        )  # fmt: skip


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
        values = _recorded(known, node, actor, asked, tx.now_us)
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


def _recorded(
    known: HealthRecord, node: NodeRow, actor: Actor, asked: NewRepair, now_us: int
) -> list[Any]:
    place = (node.node, asked.device)
    epoch = known.standing(place).epoch
    values: list[Any] = []
    if asked.stepped is not None:
        values.append(
            RepairStep(
                node=node.node, device=asked.device, rung=asked.rung, number=asked.number,
                step=asked.step, outcome=asked.stepped, note=asked.note, by=actor.login,
                epoch=epoch,
            )
        )  # fmt: skip
    if asked.outcome is not None:
        values.append(
            Remedy(
                node=node.node, device=asked.device, rung=asked.rung, outcome=asked.outcome,
                verified=None, dry_run=False, by=actor.login, why=asked.note or "by hand",
                epoch=epoch,
            )
        )  # fmt: skip
    if asked.state is not None:
        values.append(_decided(known, place, actor, asked, now_us))
    return values


def _decided(
    known: HealthRecord, place: tuple[str, str | None], actor: Actor, asked: NewRepair, now_us: int
) -> Any:
    """The move that a person makes. ``Refused`` 409 where there is no such move."""
    standing = known.standing(place)
    wish = Wish(
        to_state=asked.state or "", actor=actor.login, reason=asked.note, evidence=(), boot=None,
        epoch=standing.epoch, at_us=now_us,
    )  # fmt: skip
    found = moved(standing, wish)
    if found.move is None:
        raise conflict(
            "node/move", f"{found.why_not}", hint="a reason is needed: --why; states: the guide on repairs",
            field="state",
        )  # fmt: skip
    return found.move


def maintain(
    tx: Transaction, platform: Platform, actor: Actor, name: str, asked: NewMaintenance
) -> NodeHealthTold:
    """Set a window of maintenance, or call one off."""
    authorise(actor, "node.change", org=None)
    node = node_meant(tx.connection, name)
    with platform.health.at(tx.connection) as known:
        window = _window(known, platform, node, actor, asked)
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


def _window(
    known: HealthRecord, platform: Platform, node: NodeRow, actor: Actor, asked: NewMaintenance
) -> MaintenanceWindow:
    if asked.cancel is not None:
        found = known.windows.get(asked.cancel)
        if found is None or found.node != node.node:
            raise unreadable(
                "maintenance/unknown", f"{node.name} has no window {asked.cancel}",
                hint="ouvrage node health lists them", field="cancel",
            )  # fmt: skip
        return MaintenanceWindow(
            window=found.window, node=node.node, from_us=found.from_us, to_us=found.to_us,
            why=found.why, by=actor.login, cancelled=True,
        )  # fmt: skip
    if not 0 < asked.to_us - asked.from_us <= LONGEST_US:
        raise unreadable(
            "maintenance/period", "a window ends after it begins, within a year",
            hint="--from TIME --to TIME", field="to_us",
        )  # fmt: skip
    return MaintenanceWindow(
        window=platform.ids(), node=node.node, from_us=asked.from_us, to_us=asked.to_us,
        why=asked.why, by=actor.login, cancelled=False,
    )  # fmt: skip
