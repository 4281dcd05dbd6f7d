"""What an owner has and what is agreed about it: sites, nodes, devices in them, terms.

A term is one named figure about one of these (the rent of a site, the fee of a channel), in its own
fact, so that each has its own grade, date and successor. What a term's name means, and what is assumed
where nobody stated it, is decided by the books.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

OBJECTS = ("site", "node", "device", "channel", "tenant")
"""What a term can be about; subjects are written ``site:garage``, ``device:GPU-8f31``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A place with one currency for its books and one IANA ``zone`` for its days and months."""

    KIND: ClassVar[str] = "owner.site"
    VERSION: ClassVar[int] = 1

    site: str
    currency: str
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the owner's at a site, in service from the fact's ``valid_from`` to ``valid_to``."""

    KIND: ClassVar[str] = "owner.node"
    VERSION: ClassVar[int] = 1

    node: str
    site: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlaced:
    """A GPU stands in a node for the fact's period. ``device`` is its UUID, serial or given name.

    ``slot`` is its index in the node where one is known. Moved elsewhere, it is placed anew.
    """

    KIND: ClassVar[str] = "owner.device"
    VERSION: ClassVar[int] = 1

    device: str
    node: str
    model: str | None
    slot: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """``name`` of ``about`` is ``value`` (decimal text) in ``unit``, from ``valid_from`` on.

    ``about`` is ``site:NAME``, ``node:NAME``, ``device:ID``, ``channel:NAME`` or ``tenant:NAME``;
    ``unit`` is like ``EUR/kWh``, ``EUR/month``, ``EUR/h`` or ``1``; ``said_by`` names who says it, or
    the document. The later of two terms of one name about one thing holds from its own beginning.
    """

    KIND: ClassVar[str] = "owner.term"
    VERSION: ClassVar[int] = 1

    about: str
    name: str
    value: str
    unit: str
    said_by: str
