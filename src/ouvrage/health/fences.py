"""Who keeps a node or a device from new work, and what automation wants kept away.

Decides that something is free when the last holder let go, whoever set a fence first; that a single GPU can be
fenced, and with it those that a reset would take along; and that what needs the whole machine fences the machine.
How many machines automation may take out is ``fleet``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ouvrage.health.findings import Finding
from ouvrage.model.health import RUNGS
from ouvrage.model.machines import FenceSet

Place = tuple[str, "str | None"]
"""A node, and one device of it or None for all of it."""

_WHOLE = frozenset(RUNGS[RUNGS.index("reboot") : RUNGS.index("power_cycle") + 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fences:
    """Every fence that is held: who holds which place, and why."""

    held: Mapping[Place, Mapping[str, str]]

    def holders(self, node: str, device: str | None = None) -> frozenset[str]:
        """Who keeps this from new work. A node's fence covers its devices."""
        own = set(self.held.get((node, device), ()))
        return frozenset(own | set(self.held.get((node, None), ())))

    def free(self, node: str, device: str | None = None) -> bool:
        """Whether nobody keeps this from new work."""
        return not self.holders(node, device)


def fences_of(facts: Iterable[FenceSet]) -> Fences:
    """The fences after these facts, in the order of their recording."""
    held: dict[Place, dict[str, str]] = {}
    for fact in facts:
        place = held.setdefault((fact.node, fact.device), {})
        if fact.held:
            place[fact.holder] = fact.why
        else:
            place.pop(fact.holder, None)
    return Fences(held={place: holders for place, holders in held.items() if holders})


def wanted(
    node: str, findings: Iterable[Finding], tied: Mapping[str, Sequence[str]]
) -> dict[Place, str]:
    """What automation wants kept from new work, and why; findings on trial want nothing.

    ``tied`` names for a GPU those that share its NVLink domain and are reset with it.
    """
    places: dict[Place, str] = {}
    for each in findings:
        if each.fence == "none" or each.shadow:
            continue
        if each.device is None or each.action in _WHOLE:
            places.setdefault((node, None), each.reason)
            continue
        also = tied.get(each.device, ()) if each.action == "gpu_reset" else ()
        for device in (each.device, *also):
            places.setdefault((node, device), each.reason)
    return places


def changes(
    fences: Fences, wants: Mapping[Place, str], verified: Iterable[Place], by: str
) -> list[FenceSet]:
    """The facts that bring automation's fences to what it wants. It lets go only of what was verified."""
    held = {place for place, holders in fences.held.items() if "automation" in holders}
    new = [
        FenceSet(node=node, device=device, holder="automation", held=True, why=why, by=by)
        for (node, device), why in wants.items()
        if (node, device) not in held
    ]
    gone = [
        FenceSet(node=node, device=device, holder="automation", held=False, why="verified", by=by)
        for node, device in verified
        if (node, device) in held and (node, device) not in wants
    ]
    return [*new, *gone]
