"""What an owner sells from their own machines: offers, and the leases that freeze an offer's terms.

What others list is ``model/offers``. An offer is never changed: another of the same name takes its place,
and leases keep the one they were granted under.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

AUDIENCES = ("public", "tenants", "own")
LEASE_KINDS = ("term", "job")
LEASE_ENDS = (
    "expired",
    "released",
    "attempt ended",
    "preempted",
    "fault",
    "budget",
    "abuse",
    "operator",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOffer:
    """A configuration, a rate plan and terms. ``offer`` is its id, ``name`` a slug unique among listed ones.

    ``gpus`` whole GPUs of ``gpu`` (None: no GPU), ``cpus`` whole cores, ``memory_mib``, ``disk_mib`` of scratch.
    ``plan`` is the rate plan as canonical JSON text (frozen), ``plan_name`` its name, ``rate`` what is charged per hour of
    the whole configuration as decimal text in ``currency``, where one figure says it. ``least_us`` and ``most_us``
    bound a lease's duration (None: unbounded); ``notice_us`` is the warning before an interruption. ``channel`` names where it is
    sold; ``nodes`` the nodes it may be met from (empty: any that fits). ``document`` is the terms' text or address.
    """

    KIND: ClassVar[str] = "platform.offer"
    VERSION: ClassVar[int] = 1

    offer: str
    name: str
    gpu: str | None
    gpus: int
    cpus: int
    memory_mib: int
    disk_mib: int
    plan_name: str
    plan: str
    rate: str | None
    currency: str
    interruptible: bool
    least_us: int | None
    most_us: int | None
    notice_us: int
    sla: str | None
    audience: str
    channel: str
    nodes: tuple[str, ...]
    isolation: str
    document: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferWithdrawn:
    """An offer is no longer for sale; leases under it run on."""

    KIND: ClassVar[str] = "offer.withdrawal"
    VERSION: ClassVar[int] = 1

    offer: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferOverridden:
    """An offer to strangers was made ``by`` an owner though ``refused`` spoke against it; ``why`` is their reason."""

    KIND: ClassVar[str] = "offer.override"
    VERSION: ClassVar[int] = 1

    offer: str
    refused: tuple[str, ...]
    why: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where something stands: a node, its GPUs and the numbers of its cores."""

    node: str
    devices: tuple[str, ...]
    cpus: tuple[int, ...]
    memory_mib: int
    disk_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGranted:
    """A tenant's right to devices from the fact's ``valid_from`` to ``until_us`` (None: until it is ended).

    ``kind`` is ``term`` (asked for by the tenant) or ``job`` (opened for one ``attempt`` and ended with it). The offer's fact is
    frozen by its id: offers never change.
    """

    KIND: ClassVar[str] = "lease.started"
    VERSION: ClassVar[int] = 1

    lease: str
    offer: str
    org: str
    project: str
    kind: str
    attempt: str | None
    placed: Placed
    until_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """A lease ended at ``at_us``; ``end`` is one of ``LEASE_ENDS``, ``billable_us`` the time that is charged."""

    KIND: ClassVar[str] = "lease.ended"
    VERSION: ClassVar[int] = 1

    lease: str
    at_us: int
    end: str
    why: str
    billable_us: int
