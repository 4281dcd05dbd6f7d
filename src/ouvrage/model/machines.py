"""The platform's machines: what enrolled, what is withheld from new work, and by whom.

The owner's books know a node by name (``model/sites``); this is the same node as something that runs work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

FENCE_HOLDERS = ("automation", "operator", "scheduler", "scrub")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSeen:
    """A GPU as its node reports it; ``device`` is its UUID."""

    device: str
    slot: int
    model: str
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnrolled:
    """A machine joined, or reported a changed inventory. ``cpus`` are the numbers of its usable cores.

    ``isolations`` are those of ``model/work.ISOLATIONS`` that work on it, ``cgroup`` ``v1``, ``v2`` or ``none``.
    """

    KIND: ClassVar[str] = "platform.node"
    VERSION: ClassVar[int] = 1

    node: str
    name: str
    cpus: tuple[int, ...]
    memory_mib: int
    disk_mib: int
    devices: tuple[DeviceSeen, ...]
    isolations: tuple[str, ...]
    cgroup: str
    boot: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceSet:
    """``holder`` wants nothing placed on ``node`` (``device`` None) or on one device; ``held`` False lets go.

    Free when the last holder lets go.
    """

    KIND: ClassVar[str] = "platform.fence"
    VERSION: ClassVar[int] = 1

    node: str
    device: str | None
    holder: str
    held: bool
    why: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeListed:
    """Whether a node takes new leases; unlisted, it keeps those that run."""

    KIND: ClassVar[str] = "node.listing"
    VERSION: ClassVar[int] = 1

    node: str
    listed: bool
    why: str
    by: str
