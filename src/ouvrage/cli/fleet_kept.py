"""The fleet as this home has it on record: its settings, its members, and what each machine last told and proved.

Decides that a home has one fleet, and that the last statement about a thing holds. What follows from it is decided by the verbs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.cli.ledger import Ledger
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.ledger.stated import Stated
from ouvrage.ledger.view import in_force
from ouvrage.model.bringup import FleetMember, FleetSettings
from ouvrage.model.health import NodeCertificate

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The settings, and the machines that belong to it now, by name."""

    settings: FleetSettings
    members: tuple[FleetMember, ...]

    def member(self, node: str) -> FleetMember:
        """A member by its name. Raises ``OuvrageError`` ``fleet/no-member``."""
        for each in self.members:
            if each.node == node:
                return each
        there = ", ".join(each.node for each in self.members) or "nobody yet"
        raise OuvrageError(
            "fleet/no-member", f"{node!r} is no node of {self.settings.cluster}", hint=f"in it: {there}"
        )  # fmt: skip


def entries_of(
    ledger: Ledger, kind: type[Kind], subject: str | None = None
) -> list[tuple[Recorded, Kind]]:
    """What is on record of a kind, in the order in which it was recorded."""
    asked: Any = kind
    found = in_force(ledger.store.records(kind=asked.KIND, subject=subject))
    values = [(entry, read(entry.fact)) for entry in sorted(found, key=lambda each: each.seq)]
    return [(entry, value) for entry, value in values if isinstance(value, kind)]


def last_of(ledger: Ledger, kind: type[Kind], subject: str) -> tuple[Recorded, Kind] | None:
    """The last of a kind about something; the others are not even read."""
    asked: Any = kind
    found = in_force(ledger.store.records(kind=asked.KIND, subject=subject))
    for entry in sorted(found, key=lambda each: each.seq, reverse=True):
        value = read(entry.fact)
        if isinstance(value, kind):
            return entry, value
    return None


def fleet_kept(ledger: Ledger) -> Fleet | None:
    """The fleet of this home; None where there is none."""
    settings = [value for _, value in entries_of(ledger, FleetSettings)]
    if not settings:
        return None
    members = {value.node: value for _, value in entries_of(ledger, FleetMember)}
    there = sorted((m for m in members.values() if not m.removed), key=lambda m: m.node)
    return Fleet(settings=settings[-1], members=tuple(there))


def the_fleet(ledger: Ledger) -> Fleet:
    """The fleet of this home. Raises ``OuvrageError`` ``fleet/none``."""
    found = fleet_kept(ledger)
    if found is None:
        raise OuvrageError(
            "fleet/none", "no fleet is on record here",
            hint="begin one: ouvrage fleet init lab --controller HOST --build BUILD --for batch",
        )  # fmt: skip
    return found


def certificates_of(ledger: Ledger, node: str) -> list[tuple[Recorded, NodeCertificate]]:
    """Every certificate of a node, the oldest first."""
    return entries_of(ledger, NodeCertificate, f"node:{node}")


def stated(value: FleetSettings | FleetMember, now_us: int) -> Stated:
    """A statement of the fleet's owner, from now on."""
    member = isinstance(value, FleetMember)
    return Stated(
        natural=f"fleet-member/{value.node}" if member else "fleet", value=value,
        subject=f"node:{value.node}" if member else f"fleet:{value.cluster}",
        valid_from=now_us, valid_to=None, grade=Grade.REPORTED,
    )  # fmt: skip
