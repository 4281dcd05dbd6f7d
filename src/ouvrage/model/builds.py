"""A machine as others are to be, and what is planned to change on it: standard builds and patch plans.

Decides only what is kept. What deviates from a build and what stands in the way of a plan is computed anew each time
(``health/builds``, ``health/patching``), so that a better rule judges old plans too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ouvrage.model.health import Part, Way
from ouvrage.model.work import Named


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBuild:
    """``build`` is how a machine should be, as ``node`` was. Serial numbers are no part of it.

    ``inventory`` is the key of the fact that it was taken from; ``proven_by`` that of the certificate which says that
    this machine works, None where its owner took it without one. ``allowed`` are patterns of what may differ,
    ``package:tz*``. ``removed``: it is not to be used any more.
    """

    KIND: ClassVar[str] = "node.build"
    VERSION: ClassVar[int] = 1

    build: str
    node: str
    inventory: str
    proven_by: str | None
    parts: tuple[Part, ...]
    packages: tuple[Named, ...]
    settings: tuple[Named, ...]
    ways: tuple[Way, ...]
    untold: tuple[Named, ...]
    allowed: tuple[str, ...]
    removed: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A package that has a newer version. ``security``: it closes a hole; ``held``: the owner keeps it back."""

    package: str
    from_version: str | None
    to_version: str
    security: bool
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What stands on a machine: a lease or a job, whose, and when it ends at the latest (None: no end is known)."""

    sort: str
    name: str
    whose: str
    ends_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPlan:
    """What will be changed on a machine in a window, and what stood on it when that was planned.

    Recorded before anything is touched. ``updates`` were pending; ``lift`` names the held packages that are meant to
    change all the same.
    """

    KIND: ClassVar[str] = "node.patch_plan"
    VERSION: ClassVar[int] = 1

    plan: str
    node: str
    begins_us: int
    ends_us: int
    updates: tuple[Update, ...]
    lift: tuple[str, ...]
    standing: tuple[Standing, ...]
    why: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryAccepted:
    """The owner says that ``changes`` of a machine are meant, as it is at this ``boot``. They are sentences."""

    KIND: ClassVar[str] = "node.inventory_accepted"
    VERSION: ClassVar[int] = 1

    node: str
    boot: str
    changes: tuple[str, ...]
    why: str


BUILDS = (NodeBuild, PatchPlan, InventoryAccepted)
