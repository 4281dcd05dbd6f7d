"""A member held to its build, its certificate and its inventory as they are today.

Decides that what is looked at is the last of each on record, and that a machine of which nothing is on record any more is no fault of
the others'. What a difference means is decided by ``fleet/joining`` and ``fleet/standing``.
"""

from __future__ import annotations

from dataclasses import replace

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.build import build_named
from ouvrage.cli.fleet_kept import Fleet, certificates_of
from ouvrage.cli.ledger import Ledger
from ouvrage.cli.node_inventory import inventories
from ouvrage.fleet.joining import Refusal, refusals
from ouvrage.fleet.shape import Shape, shape_of
from ouvrage.model.bringup import FleetMember


def reshaped(
    ledger: Ledger, fleet: Fleet, member: FleetMember, *, gpu_type: str | None = None
) -> FleetMember:
    """The member as its last inventory and certificate make it. Raises ``OuvrageError`` where they make nothing."""
    found = inventories(ledger, member.node)
    if not found:
        raise OuvrageError("inventory/none", f"no inventory of {member.node} is on record here")
    entry, now = found[-1]
    said = member.said
    shape: Shape = shape_of(
        now, memory_mib=member.memory_mib if "memory" in said else None,
        gpu_type=member.gpus[0].type if "gpu_type" in said and member.gpus else gpu_type,
    )  # fmt: skip
    keys = [
        each.fact.key
        for each, value in certificates_of(ledger, member.node)
        if value.work_class == fleet.settings.work_class
    ]
    return replace(
        member, sockets=shape.sockets, cores=shape.cores, threads=shape.threads, memory_mib=shape.memory_mib,
        gpus=shape.gpus, certificate=keys[-1] if keys else "", inventory=entry.fact.key,
    )  # fmt: skip


def why_not_today(
    ledger: Ledger, fleet: Fleet, member: FleetMember, at_us: int
) -> tuple[Refusal, ...]:
    """Why a machine would not join as it is today; none where it would."""
    found = inventories(ledger, member.node)
    if not found:
        words = "no inventory of it is on record here"
        hint = "ouvrage node inventory, on that machine"
        return (Refusal(about="inventory", words=words, hint=hint),)
    certificates = [value for _, value in certificates_of(ledger, member.node)]
    try:
        build = build_named(ledger, member.build)
    except OuvrageError as error:
        return (Refusal(about="build", words=error.message, hint="ouvrage build save"),)
    return refusals(fleet.settings, build, member, found[-1][1], certificates, fleet.members, at_us)
