"""The bill of materials of this machine, and what its owner last accepted of it.

Decides that it is read whole at one moment, with the driver asked in a child and only on the machine itself; and that what
was accepted lies in a file of its own, so that a check needs no store: a change stays one until somebody accepts it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouvrage.adapters import machine_parts as machine
from ouvrage.adapters.health_sources import NotTold, within_deadline
from ouvrage.adapters.home import home, make_private
from ouvrage.adapters.machine_parts import Roots
from ouvrage.adapters.nvml_child import Row
from ouvrage.adapters.nvml_parts import gpu_parts, part_of
from ouvrage.adapters.packages import installed
from ouvrage.base.errors import OuvrageError
from ouvrage.base.names import check_name
from ouvrage.health.bus import nvlinks_of, ways
from ouvrage.health.parts import completed
from ouvrage.health.patching import group_of
from ouvrage.ledger.kinds import from_plain, payload_of
from ouvrage.metering.topology import topology_in
from ouvrage.model.health import NodeInventory, Part
from ouvrage.model.work import Named

_ON_THE_BUS = ("gpu", "nic", "disk")
_LARGEST = 8 << 20
TOPOLOGY = ["nvidia-smi", "topo", "-m"]
Joined = dict[tuple[str, str], str]


def inventory_now(
    node: str,
    roots: Roots,
    *,
    topology: str | None = None,
    ask_topology: bool = True,
    cards: Sequence[Row] | None = None,
) -> NodeInventory:
    """What the machine under ``roots`` is made of now.

    ``topology`` is a saved table of ``nvidia-smi topo -m``; the tool is asked on the machine itself unless that is
    not wanted. ``cards`` are what the driver's library told of the GPUs already, so that it is not asked again.
    """
    parts, untold = _hardware(roots)
    told, settings = (
        _gpus(roots, untold) if cards is None else ([part_of(row) for row in cards], [])
    )
    gpus = machine.with_library(machine.graphics(roots), told)
    parts += [*gpus, *machine.firmwares(roots), *machine.running(roots)]
    packages = _packages(roots, untold)
    parts += [_software(each) for each in packages if group_of(each.name) in ("driver", "runtime")]
    places = list(machine.places(roots, [p.slot for p in parts if p.kind in _ON_THE_BUS]))
    order = [part.slot for part in told or gpus]
    if topology is not None:
        joined = _nvlinks(topology, order)
    else:
        joined = _asked(roots, order, untold) if ask_topology else {}
    return NodeInventory(
        node=node,
        boot=machine.boot_of(roots),
        parts=tuple(sorted(parts, key=lambda part: (part.kind, part.slot))),
        packages=packages,
        settings=(*machine.settings(roots), *settings),
        places=tuple(places),
        ways=ways(places, order, joined),
        untold=tuple(untold),
    )


def _hardware(roots: Roots) -> tuple[list[Part], list[Named]]:
    parts, untold = machine.processors(roots)
    more, silent = machine.firmware_table(roots)
    found = [*parts, *more, *machine.disks(roots), *machine.network_cards(roots)]
    return found, [*untold, *silent]


def _gpus(roots: Roots, untold: list[Named]) -> tuple[list[Part], list[Named]]:
    """What the driver's library tells, where there is one and this is its machine."""
    if not roots.are_here or not os.path.exists(f"{roots.proc}/driver/nvidia"):
        return [], []
    try:
        return gpu_parts()
    except NotTold as error:
        untold.append(Named(name="gpu serials", value=str(error)))
        return [], []


def _packages(roots: Roots, untold: list[Named]) -> tuple[Named, ...]:
    try:
        return installed(roots.var).packages
    except NotTold as error:
        untold.append(Named(name="packages", value=str(error)))
        return ()


def _software(package: Named) -> Part:
    return Part(
        kind="software", slot=package.name, maker=None, model=None, serial=None,
        version=package.value, size=None,
    )  # fmt: skip


def _asked(roots: Roots, gpus: list[str], untold: list[Named]) -> Joined:
    """The driver's table of what joins the GPUs, on a machine that has two; once a look, never in a loop."""
    if not roots.are_here or len(gpus) < 2:
        return {}
    try:
        code, text = within_deadline(TOPOLOGY)
        if code:
            raise NotTold(f"{TOPOLOGY[0]} ended with {code}")
        return _nvlinks(text, gpus)
    except (NotTold, OuvrageError) as error:
        untold.append(Named(name="nvlinks", value=str(error)))
        return {}


def _nvlinks(table: str, gpus: list[str]) -> Joined:
    return nvlinks_of(topology_in(table, run="", source=" ".join(TOPOLOGY)), gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known of a node here: ``accepted`` by its owner, and ``last`` put on record."""

    accepted: NodeInventory
    last: NodeInventory


def agent_dir() -> Path:
    """Where this home's agent keeps its state."""
    return home() / "agent"


def _file(state: Path, node: str) -> Path:
    check_name("node", node, "--node node-1")
    return state / "inventory" / f"{node}.json"


def kept(state: Path, node: str) -> Kept | None:
    """What is known of a node; None where nothing is. Raises ``OuvrageError`` for a file that is none of ours."""
    file = _file(state, node)
    try:
        with file.open("rb") as opened:
            told: Any = json.loads(opened.read(_LARGEST))
        accepted, last = (from_plain(NodeInventory, told[name]) for name in ("accepted", "last"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise OuvrageError(
            "inventory/kept", f"{file} cannot be read: {str(error)[:120]}",
            hint="remove it; the next ouvrage node inventory writes it anew",
        ) from error  # fmt: skip
    return Kept(accepted=accepted, last=last)


def keep(state: Path, found: Kept) -> None:
    """Put what is known in place of what was, whole or not at all."""
    file = _file(state, found.last.node)
    make_private(make_private(state) / "inventory")
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    text = f'{{"accepted":{payload_of(found.accepted)},"last":{payload_of(found.last)}}}\n'
    try:
        with draft.open("w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OuvrageError(
            "inventory/kept", f"{file} could not be written: {error.strerror}",
            hint="name a directory that you may write to: --state DIR",
        ) from error  # fmt: skip


def look(state: Path, now: NodeInventory, record: Callable[[NodeInventory], None]) -> Kept:
    """Record an inventory if it is the first of its boot or differs from the last, and keep what is known.

    The first one of a node is taken as accepted. Recorded before it is kept: a process that ends in between records
    the same again, which changes nothing.
    """
    before = kept(state, now.node)
    if before is None or before.last != now:
        record(now)
    accepted = now if before is None else completed(before.accepted, now)
    found = Kept(accepted=accepted, last=now)
    if found != before:
        keep(state, found)
    return found
