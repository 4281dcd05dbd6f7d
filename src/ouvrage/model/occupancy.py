"""What a device was doing for a period, as somebody who could see it says.

Statements may overlap and disagree; the calendar decides by the order of precedence what counts, and
keeps the rest as what it set aside. A statement about a node holds for every device in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

STATES = ("down", "maintenance", "working", "held", "reserved", "free", "unknown")
"""In order of precedence where facts overlap; ``unknown`` where no fact covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """For the fact's period ``device`` (or every device of ``node``) was in ``state``.

    Exactly one of ``device`` and ``node`` is set. ``count`` with ``node`` says that so many of its
    devices were in this state without saying which. ``cause`` says why in a word or two: ``no demand``,
    ``xid 79``, ``contract``, ``no sample``. ``channel``, ``tenant`` and ``lease`` name who had it.
    """

    KIND: ClassVar[str] = "owner.state"
    VERSION: ClassVar[int] = 1

    device: str | None
    node: str | None
    count: int | None
    state: str
    cause: str
    channel: str | None
    tenant: str | None
    lease: str | None
