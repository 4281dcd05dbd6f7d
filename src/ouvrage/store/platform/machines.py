"""Nodes, what their runners were heard to say, and fences, as rows.

Decides nothing about them: a node's row is its last inventory, a fence is there as long as somebody holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from ouvrage.model.machines import DeviceSeen, FenceSet, NodeEnrolled
from ouvrage.store.platform.json_rows import put, text_of, values_of
from ouvrage.store.platform.work_tables import fences, nodes, runners


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node as last inventoried, and whether it takes new leases."""

    seen: NodeEnrolled
    listed: bool
    enrolled_us: int

    @property
    def node(self) -> str:
        """Its id."""
        return self.seen.node

    @property
    def name(self) -> str:
        """The name it goes by, in the owner's books too."""
        return self.seen.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerRow:
    """``sequence`` of the last event had from a runner, ``seen_us`` when it was last heard.

    ``present_us`` since when it has been heard without a break, ``told_us`` up to when a fact says so.
    """

    node: str
    sequence: int
    seen_us: int
    present_us: int
    told_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceRow:
    """Somebody holds a node (``device`` None) or a device back since ``since_us``."""

    node: str
    device: str | None
    holder: str
    why: str
    by: str
    since_us: int


def put_node(connection: Connection, row: NodeRow) -> None:
    """Keep a node, new or changed."""
    put(connection, nodes, node_values(row))


def node_values(row: NodeRow) -> dict[str, Any]:
    """A node's row as its columns."""
    seen = row.seen
    return {
        "node": seen.node,
        "name": seen.name,
        "cpus": text_of(seen.cpus),
        "memory_mib": seen.memory_mib,
        "disk_mib": seen.disk_mib,
        "devices": text_of(seen.devices),
        "isolations": text_of(seen.isolations),
        "cgroup": seen.cgroup,
        "boot": seen.boot,
        "version": seen.version,
        "listed": int(row.listed),
        "enrolled_us": row.enrolled_us,
    }


def all_nodes(connection: Connection) -> list[NodeRow]:
    """Every node, by name."""
    return [_node(row) for row in connection.execute(select(nodes).order_by(nodes.c.name))]


def nodes_after(connection: Connection, name: str, limit: int) -> list[NodeRow]:
    """The first nodes whose name comes after one."""
    query = select(nodes).where(nodes.c.name > name).order_by(nodes.c.name).limit(limit)
    return [_node(row) for row in connection.execute(query)]


def node_called(connection: Connection, name: str) -> NodeRow | None:
    """The node of an id or a name."""
    query = select(nodes).where((nodes.c.node == name) | (nodes.c.name == name))
    row = connection.execute(query).first()
    return None if row is None else _node(row)


def _node(row: Row[Any]) -> NodeRow:
    seen = NodeEnrolled(
        node=row.node,
        name=row.name,
        cpus=values_of(int, row.cpus),
        memory_mib=row.memory_mib,
        disk_mib=row.disk_mib,
        devices=values_of(DeviceSeen, row.devices),
        isolations=values_of(str, row.isolations),
        cgroup=row.cgroup,
        boot=row.boot,
        version=row.version,
    )
    return NodeRow(seen=seen, listed=bool(row.listed), enrolled_us=row.enrolled_us)


def put_runner(connection: Connection, row: RunnerRow) -> None:
    """Keep what is known of a node's runner."""
    values = {name: getattr(row, name) for name in RunnerRow.__slots__}
    put(connection, runners, values)


def all_runners(connection: Connection) -> dict[str, RunnerRow]:
    """What is known of each runner, by its node."""
    return {row.node: _runner(row) for row in connection.execute(select(runners))}


def runner_of(connection: Connection, node: str) -> RunnerRow | None:
    """What is known of a node's runner."""
    row = connection.execute(select(runners).where(runners.c.node == node)).first()
    return None if row is None else _runner(row)


def _runner(row: Row[Any]) -> RunnerRow:
    return RunnerRow(**row._mapping)


def move_sequence(connection: Connection, node: str, sequence: int) -> None:
    """Say up to which event a runner's account is had."""
    connection.execute(update(runners).where(runners.c.node == node).values(sequence=sequence))


def fences_held(connection: Connection, node: str | None = None) -> list[FenceRow]:
    """The fences of a node, or of all."""
    query = select(fences).order_by(fences.c.since_us, fences.c.node, fences.c.device)
    if node is not None:
        query = query.where(fences.c.node == node)
    return [_fence(row) for row in connection.execute(query)]


def _fence(row: Row[Any]) -> FenceRow:
    return FenceRow(
        node=row.node,
        device=row.device or None,
        holder=row.holder,
        why=row.why,
        by=row.said_by,
        since_us=row.since_us,
    )


def set_fence(connection: Connection, fence: FenceSet, at_us: int) -> bool:
    """Hold or let go; whether that changed anything."""
    device = fence.device or ""
    mine = (
        (fences.c.node == fence.node)
        & (fences.c.device == device)
        & (fences.c.holder == fence.holder)
    )
    if not fence.held:
        return connection.execute(delete(fences).where(mine)).rowcount > 0
    if connection.execute(select(fences.c.node).where(mine)).first() is not None:
        return False
    values = {
        "node": fence.node,
        "device": device,
        "holder": fence.holder,
        "why": fence.why,
        "said_by": fence.by,
        "since_us": at_us,
    }
    connection.execute(insert(fences).values(**values))
    return True


def fenced_devices(held: Sequence[FenceRow]) -> set[tuple[str, str | None]]:
    """Nodes (with None) and devices that somebody holds."""
    return {(each.node, each.device) for each in held}
