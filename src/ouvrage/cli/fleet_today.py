"""A machine held to its build, its certificate and the other nodes as it is today.

Decides that what is looked at is the last of each on record, read once. What a difference means is decided by ``fleet/joining`` and
``fleet/standing``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ouvrage.base.errors import OuvrageError
from ouvrage.cli.build import build_named
from ouvrage.cli.fleet_kept import Fleet, certificates_of, last_of
from ouvrage.cli.ledger import Ledger
from ouvrage.fleet.joining import Refusal, refusals
from ouvrage.fleet.shape import Shape, shape_of
from ouvrage.model.bringup import FleetMember
from ouvrage.model.builds import NodeBuild
from ouvrage.model.health import NodeInventory


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The machine as a member, by its last inventory and certificate, and why it would not join today."""

    member: FleetMember
    why_not: tuple[Refusal, ...]


class Today:
    """Every machine of a fleet at one moment; a build is read once, however many are held to it."""

    def __init__(self, ledger: Ledger, fleet: Fleet, at_us: int) -> None:
        self._ledger, self._fleet, self._at_us = ledger, fleet, at_us
        self._builds: dict[str, NodeBuild] = {}

    def _build(self, name: str) -> NodeBuild:
        if name not in self._builds:
            self._builds[name] = build_named(self._ledger, name)
        return self._builds[name]

    def look(self, member: FleetMember, *, gpu_type: str | None = None) -> Looked:
        """A machine today. Raises ``OuvrageError`` where its inventory or its build make no answer possible."""
        settings, node = self._fleet.settings, member.node
        found = last_of(self._ledger, NodeInventory, f"node:{node}")
        if found is None:
            raise OuvrageError(
                "inventory/none", f"no inventory of {node} is on record here",
                hint=f"on that machine: ouvrage node inventory; then here: ouvrage fleet learn {node}",
            )  # fmt: skip
        entry, now = found
        if gpu_type is None and "gpu_type" in member.said and member.gpus:
            gpu_type = member.gpus[0].type
        memory = member.memory_mib if "memory" in member.said else None
        shape = shape_of(now, memory_mib=memory, gpu_type=gpu_type)
        cores = _cores(member, shape)
        certificates = certificates_of(self._ledger, node)
        keys = [e.fact.key for e, value in certificates if value.work_class == settings.work_class]
        seen = replace(
            member, sockets=shape.sockets, cores=cores, threads=shape.threads, memory_mib=shape.memory_mib,
            gpus=shape.gpus, certificate=keys[-1] if keys else "", inventory=entry.fact.key,
        )  # fmt: skip
        proofs = [value for _, value in certificates]
        build, others = self._build(member.build), self._fleet.members
        return Looked(
            member=seen, why_not=refusals(settings, build, seen, now, proofs, others, self._at_us)
        )

    def judged(self, member: FleetMember) -> Looked:
        """The same where no answer is a reason too; the member is then as it was."""
        try:
            return self.look(member)
        except OuvrageError as error:
            why = Refusal(about="inventory", words=error.message, hint=error.hint or "")
            return Looked(member=member, why_not=(why,))


def _cores(member: FleetMember, shape: Shape) -> int:
    if "cores" not in member.said:
        return shape.cores
    if member.cores > shape.cores:
        raise OuvrageError(
            "fleet/not-told", f"--cores {member.cores}: a socket of {member.node} has {shape.cores}",
            hint=f"--cores {shape.cores}, or none: all of them",
        )  # fmt: skip
    return member.cores
