"""What is to change on a machine and when it may: pending updates, versions that are held, who must be gone first.

Decides which packages an owner should hold (driver, kernel, container runtimes: one that changes under running work
breaks it), how apt's simulation is read, and whether everything that stands on a machine ends before a window begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ouvrage.health.parts import SOFT, Change
from ouvrage.model.builds import PatchPlan, Standing, Update
from ouvrage.model.health import NodeInventory, NodePatched
from ouvrage.model.work import Named

GUARDED: dict[str, tuple[str, ...]] = {
    "driver": (
        "nvidia-driver*", "nvidia-headless*", "nvidia-kernel*", "nvidia-dkms*", "nvidia-open*", "nvidia-utils*",
        "libnvidia-*", "libcuda1", "nvidia-fabricmanager*", "nvidia-imex*", "cuda-drivers*", "xserver-xorg-video-nvidia*",
    ),
    "kernel": ("linux-image*", "linux-headers*", "linux-modules*", "linux-generic*", "linux-virtual*"),
    "runtime": (
        "containerd*", "docker.io", "docker-ce*", "runc", "crun", "podman", "conmon", "bubblewrap",
        "nvidia-container*", "libnvidia-container*", "slurm*",
    ),
}  # fmt: skip
"""Packages that run under everybody's work, by what they are. Of two groups the later one names a package."""

_INST = re.compile(
    r"Inst (?P<name>[a-z0-9][a-z0-9+.:-]*)(?: \[(?P<old>[^\]\s]+)\])? \((?P<new>\S+) (?P<origin>[^()]*?)(?: \[\w+\])?\)"
)
_SECURITY = re.compile(r"\bsecurity\b", re.IGNORECASE)


def group_of(package: str) -> str | None:
    """``driver``, ``kernel`` or ``runtime``; None for a package that no running work hangs on."""
    found = [
        group
        for group, patterns in GUARDED.items()
        if any(fnmatchcase(package, pattern) for pattern in patterns)
    ]
    return found[-1] if found else None


def pending(text: str, held: Sequence[str]) -> tuple[Update, ...]:
    """The updates in what ``apt-get --simulate upgrade`` prints, security first; other lines are left out.

    ``held`` packages are marked: apt lists those apart and would not install them.
    """
    found: list[Update] = []
    for line in text.splitlines():
        match = _INST.match(line.strip())
        if match:
            found.append(
                Update(
                    package=match["name"], from_version=match["old"], to_version=match["new"],
                    security=bool(_SECURITY.search(match["origin"])), held=match["name"] in held,
                )
            )  # fmt: skip
    return tuple(sorted(found, key=lambda each: (not each.security, each.package)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One package that running work hangs on: its group, its version, and whether it is held."""

    package: str
    group: str
    version: str
    held: bool


def guards(packages: Sequence[Named], held: Sequence[str]) -> tuple[Guard, ...]:
    """The guarded packages that are installed, by group."""
    kept = set(held)
    found = [
        Guard(package=each.name, group=group, version=each.value, held=each.name in kept)
        for each in packages
        if (group := group_of(each.name)) is not None
    ]
    return tuple(sorted(found, key=lambda each: (list(GUARDED).index(each.group), each.package)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """When a machine is empty. ``in_the_way`` is what stands on it when the window begins, or may."""

    in_the_way: tuple[Standing, ...]
    ends_in_time: tuple[Standing, ...]
    empty_us: int | None
    """The moment at which all has ended at the latest; None where something has no known end."""

    @property
    def clear(self) -> bool:
        """Whether nothing stands in the way of the window."""
        return not self.in_the_way


def drain_of(plan: PatchPlan, now_us: int) -> Drain:
    """What of that which stood on the machine ends before the window, and what does not."""
    late = tuple(
        each for each in plan.standing if each.ends_us is None or each.ends_us > plan.begins_us
    )
    ends = [each.ends_us for each in plan.standing]
    known = [end for end in ends if end is not None]
    return Drain(
        in_the_way=late,
        ends_in_time=tuple(each for each in plan.standing if each not in late),
        empty_us=max([now_us, *known]) if len(known) == len(ends) else None,
    )


def will_change(plan: PatchPlan) -> tuple[Update, ...]:
    """The updates that the plan installs: those not held, and those for which the hold is lifted."""
    return tuple(each for each in plan.updates if not each.held or each.package in plan.lift)


def covering(plans: Sequence[PatchPlan], node: str, at_us: int) -> PatchPlan | None:
    """The last plan for a machine whose window holds a moment."""
    fitting = [
        each for each in plans if each.node == node and each.begins_us <= at_us < each.ends_us
    ]
    return fitting[-1] if fitting else None


def patched(
    before: NodeInventory,
    now: NodeInventory,
    found: Sequence[Change],
    plan: PatchPlan | None,
    by: str,
) -> tuple[NodePatched, ...]:
    """What changed of a machine's software and firmware, a fact each; ``found`` are the changes of its parts.

    ``planned``: a plan's window holds the moment. A package that the plan does not name was not planned, wherever the
    plan names any; what follows from packages (the running kernel, the loaded driver) was planned with them.
    """
    named = {each.package for each in will_change(plan)} if plan is not None else set[str]()
    changed = dict(_versions(before, now, found))
    return tuple(
        NodePatched(
            node=now.node, what=what, from_version=old, to_version=new,
            planned=plan is not None and (not named or what in named or what not in _packages(before, now)),
            by=by,
        )
        for what, (old, new) in sorted(changed.items())
    )  # fmt: skip


def _packages(*inventories: NodeInventory) -> set[str]:
    return {each.name for inventory in inventories for each in inventory.packages}


def _versions(
    before: NodeInventory, now: NodeInventory, found: Sequence[Change]
) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    """Packages first; a part of the same name is the same change."""
    for change in found:
        if change.kind in SOFT:
            yield change.slot, (change.before, change.after)
        elif change.what == "version":
            yield f"{change.kind} {change.slot} firmware", (change.before, change.after)
    if any(each.name == "packages" for each in (*before.untold, *now.untold)):
        return
    old = {each.name: each.value for each in before.packages}
    new = {each.name: each.value for each in now.packages}
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, (old.get(name), new.get(name))


def accepted_software(before: NodeInventory, now: NodeInventory) -> NodeInventory:
    """``before`` with the software, packages and versions of ``now``: its parts and settings stay as they were."""
    versions = {(part.kind, part.slot): part.version for part in now.parts}
    parts = [
        replace(part, version=versions.get((part.kind, part.slot)) or part.version)
        for part in before.parts
        if part.kind not in SOFT
    ]
    soft = [part for part in now.parts if part.kind in SOFT]
    return replace(
        before, boot=now.boot, parts=(*parts, *soft), packages=now.packages or before.packages
    )
