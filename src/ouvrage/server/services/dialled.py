"""To which of several server processes each node's runner is connected, so that another one can say so.

Decides that only a server that shares its database notes it: alone, whoever is not connected here is connected nowhere. A note is one of the claims,
taken over by whichever server the runner dials next and left to expire by one that was killed.
"""

from __future__ import annotations

from ouvrage.base.time import MINUTE
from ouvrage.server.context import Platform
from ouvrage.store.platform.claims import claimant, drop_claim, put_claim

HOLDS_US = 5 * MINUTE
AGAIN_S = 120.0


def _name(node: str) -> str:
    return f"streams:{node}"


def note(platform: Platform, node: str, server: str) -> None:
    """The node's runner is connected to this server."""
    with platform.writing() as tx:
        put_claim(tx.connection, _name(node), server, now_us=tx.now_us, for_us=HOLDS_US)


def forget(platform: Platform, node: str, server: str) -> None:
    """It is so no more; where it has gone to another meanwhile, nothing changes."""
    with platform.writing() as tx:
        drop_claim(tx.connection, _name(node), server)


def elsewhere(platform: Platform, node: str, server: str) -> bool:
    """Whether it is connected to another server than this."""
    if not platform.limits.several:
        return False
    with platform.reading() as connection:
        return claimant(connection, _name(node), platform.clock()) not in (None, server)
