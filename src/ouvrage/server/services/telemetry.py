"""Telemetry of nodes: read as it comes, and shown to those who keep the machines running.

Decides that a node speaks for itself alone. Whether a batch counts is decided by its number, where it is kept.
"""

from __future__ import annotations

from ouvrage.server.authorise import authorise
from ouvrage.server.context import Actor, Platform
from ouvrage.server.recent import Recent
from ouvrage.server.services.meant import node_meant
from ouvrage.store.sample_frames import Frame
from ouvrage.store.telemetry import Offered
from ouvrage.wire.api import SamplesShown
from ouvrage.wire.samples import decode


def offered(platform: Platform, node: str, content: bytes) -> Offered:
    """A batch that a node sent. ``OuvrageError`` ``samples/unreadable`` where it is none."""
    batch = decode(content)
    return Offered(
        source=batch.source,
        sequence=batch.sequence,
        frame=Frame(node=node, at_us=platform.clock(), content=content),
        from_us=batch.times[0],
        to_us=batch.times[-1],
    )


def recent(
    platform: Platform, actor: Actor, held: Recent, name: str, since_us: int
) -> SamplesShown:
    """The last minutes of a node."""
    authorise(actor, "node.read", org=None)
    with platform.reading() as connection:
        node = node_meant(connection, name)
    seen = held.of(node.node, since_us)
    return SamplesShown(node=node.node, times=seen.times, columns=seen.node, gpus=seen.gpus)
