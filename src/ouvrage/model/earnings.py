"""What a channel says it earned for an owner, what it invoices and what it pays, kept apart.

Earned, invoiced and paid are three statements at three moments, often of three amounts. None is made
from another here; the books reconcile them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

COMPONENTS = ("gpu", "storage", "upload", "download", "idle-job", "own-use", "credit", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Earning:
    """A channel says that ``amount`` was earned in the fact's period by ``about``.

    ``about`` is ``node:NAME``, ``device:ID`` or ``site:NAME`` where no machine is named. ``amount`` is
    decimal text in ``currency`` before the channel's fee; ``fee`` is that fee, None where the feed does
    not say. ``sold_us`` is the device time sold, in microseconds, where stated; ``list_price`` per
    device-hour what was asked. A negative amount is a credit given.
    """

    KIND: ClassVar[str] = "channel.earning"
    VERSION: ClassVar[int] = 1

    channel: str
    about: str
    component: str
    amount: str
    currency: str
    fee: str | None
    sold_us: int | None
    list_price: str | None
    tenant: str | None
    document: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInvoice:
    """A channel (or the owner, to a tenant) issued document ``number`` over the fact's period.

    ``issued_us`` is its moment; ``gross``, ``fee``, ``tax`` and ``net`` (what will be paid) are decimal
    texts in ``currency``, None where the document does not say.
    """

    KIND: ClassVar[str] = "channel.invoice"
    VERSION: ClassVar[int] = 1

    channel: str
    number: str
    issued_us: int
    gross: str | None
    fee: str | None
    tax: str | None
    net: str
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerLease:
    """A lease that the owner states: ``tenant`` has ``count`` devices of ``about`` at ``price``.

    For the fact's period, whether it works or not. ``price`` is decimal text in ``currency`` for one
    device-hour; ``list_price`` what was asked before any discount.
    """

    KIND: ClassVar[str] = "owner.lease"
    VERSION: ClassVar[int] = 1

    lease: str
    about: str
    count: int
    tenant: str
    channel: str
    price: str
    list_price: str | None
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMachine:
    """A channel's ``machine`` (its own id of it, as its exports name it) is the owner's ``node``."""

    KIND: ClassVar[str] = "channel.machine"
    VERSION: ClassVar[int] = 1

    channel: str
    machine: str
    node: str
